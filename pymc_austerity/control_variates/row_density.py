"""A log-posterior and its derivatives as sums over rows, or over some rows that stand for all."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.rows import Block, RowSource, sum_over_rows

__all__ = ["RowDensity"]


class RowDensity:
    """Log-posterior with the rows of some sources, each source with a weight.

    Parameters
    ----------
    rows : callable
        ``f(point, direction, *block)``: sum over the block of the log-likelihoods, its gradient,
        and its Hessian times the direction.
    exact : callable
        ``f(point, direction)``: the same for the exact part.
    parts : sequence of (RowSource, float)
        Rows, and how many each of them stands for.
    dtype : numpy.dtype
        Type of the points that the functions take.
    """

    def __init__(
        self,
        rows: Callable[..., list[NDArray]],
        exact: Callable[..., list[NDArray]],
        parts: Sequence[tuple[RowSource, float]],
        dtype: np.dtype,
    ) -> None:
        self._rows, self._exact = rows, exact
        self._parts, self._dtype = list(parts), dtype

    def on(self, parts: Sequence[tuple[RowSource, float]]) -> "RowDensity":
        """The same log-posterior with other rows."""
        return RowDensity(self._rows, self._exact, parts, self._dtype)

    def weighted(self, weight: float) -> "RowDensity":
        """Each row standing for that many more."""
        return self.on([(source, own * weight) for source, own in self._parts])

    def gradient(self, point: NDArray) -> tuple[float, NDArray[np.float64]]:
        """Log-density in nats, and its gradient, shape (d,)."""
        at = point.astype(self._dtype)
        value, gradient, _ = self._exact(at, np.zeros_like(at))
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
        directions = np.eye(at.size, dtype=self._dtype)

        def block_hessian(block: Block) -> NDArray[np.float64]:
            return np.stack([self._rows(at, direction, *block)[2] for direction in directions])

        return _symmetric(self._sum(block_hessian))

    def exact_hessian(self, point: NDArray) -> NDArray[np.float64]:
        """Hessian of the exact part, shape (d, d)."""
        at = point.astype(self._dtype)
        directions = np.eye(at.size, dtype=self._dtype)
        return _symmetric(np.stack([self._exact(at, direction)[2] for direction in directions]))

    def _row_sums(self, at: NDArray) -> NDArray[np.float64]:
        direction = np.zeros_like(at)

        def block_sums(block: Block) -> NDArray[np.float64]:
            value, gradient, _ = self._rows(at, direction, *block)
            return np.concatenate([np.atleast_1d(value), gradient])

        return self._sum(block_sums)

    def _sum(self, function: Callable[[Block], NDArray]) -> NDArray[np.float64]:
        return np.sum(
            [weight * sum_over_rows(function, source) for source, weight in self._parts], axis=0
        )


def _symmetric(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    return (matrix + matrix.T) / 2
