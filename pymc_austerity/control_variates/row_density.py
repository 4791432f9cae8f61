"""A log-posterior and its derivatives as sums over rows, or over some that represent all."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.rows import Block, RowSource, sum_over_rows

__all__ = ["Differentiable", "RowDensity"]


class Differentiable(Protocol):
    """First and second derivatives of a function of a point, and maybe of a block of rows."""

    @property
    def gradient(self) -> Callable[..., Sequence[NDArray]]:
        """``f(point, *block)``: value in nats, and gradient, shape (d,)."""
        ...

    @property
    def hessian(self) -> Callable[..., NDArray]:
        """``f(point, *block)``: Hessian, shape (d, d)."""
        ...


class RowDensity:
    """Log-posterior with the rows of some sources, each source with a weight.

    Parameters
    ----------
    rows, exact : Derivatives
        Of the two parts; see `pymc_austerity.model.Derivatives`.
    parts : sequence of (RowSource, float)
        Rows, and how many rows each of them represents.
    dtype : numpy.dtype
        Type of the points that the functions take.
    """

    def __init__(
        self,
        rows: Differentiable,
        exact: Differentiable,
        parts: Sequence[tuple[RowSource, float]],
        dtype: np.dtype,
    ) -> None:
        self._rows, self._exact = rows, exact
        self.parts, self._dtype = list(parts), dtype

    def on(self, parts: Sequence[tuple[RowSource, float]]) -> "RowDensity":
        """The same log-posterior with other rows."""
        return RowDensity(self._rows, self._exact, parts, self._dtype)

    def as_evaluated(self, point: NDArray) -> NDArray[np.float64]:
        """A point in the precision in which sums over rows are evaluated.

        An expansion must be about the point where its sums were taken, to the last digit.
        """
        return point.astype(self._dtype).astype(np.float64)

    def gradient(self, point: NDArray) -> tuple[float, NDArray[np.float64]]:
        """Log-density in nats, and its gradient, shape (d,)."""
        at = point.astype(self._dtype)
        value, gradient = self._exact.gradient(at)
        sums = self._row_sums(at)
        return float(value + sums[0]), gradient + sums[1:]

    def hessian(self, point: NDArray) -> NDArray[np.float64]:
        """Hessian of the log-density, shape (d, d)."""
        return self.row_hessian(point) + self.exact_hessian(point)

    def row_gradient(self, point: NDArray) -> NDArray[np.float64]:
        """Gradient of the row part, shape (d,)."""
        return self._row_sums(point.astype(self._dtype))[1:]

    def row_hessian(self, point: NDArray) -> NDArray[np.float64]:
        """Hessian of the row part, shape (d, d)."""
        at = point.astype(self._dtype)
        hessian = self._rows.hessian
        return _symmetric(self._sum(lambda block: hessian(at, *block), ("Hessian", at)))

    def row_derivatives(self, point: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gradient and Hessian of the row part, in one pass over the rows."""
        at, rows = point.astype(self._dtype), self._rows

        def block_sums(block: Block) -> NDArray[np.float64]:
            _, gradient = rows.gradient(at, *block)
            return np.concatenate([gradient, np.ravel(rows.hessian(at, *block))])

        sums, size = self._sum(block_sums, ("gradient and Hessian", at)), point.size
        return sums[:size], _symmetric(sums[size:].reshape(size, size))

    def exact_hessian(self, point: NDArray) -> NDArray[np.float64]:
        """Hessian of the exact part, shape (d, d)."""
        return _symmetric(self._exact.hessian(point.astype(self._dtype)))

    def _row_sums(self, at: NDArray) -> NDArray[np.float64]:
        gradient_of = self._rows.gradient

        def block_sums(block: Block) -> NDArray[np.float64]:
            value, gradient = gradient_of(at, *block)
            return np.concatenate([np.atleast_1d(value), gradient])

        return self._sum(block_sums, ("log-density and gradient", at))

    def _sum(
        self, function: Callable[[Block], NDArray], arguments: Sequence[Any]
    ) -> NDArray[np.float64]:
        sums = [weight * sum_over_rows(function, rows, arguments) for rows, weight in self.parts]
        return np.sum(sums, axis=0)


def _symmetric(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    return (matrix + matrix.T) / 2
