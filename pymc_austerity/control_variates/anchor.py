"""The anchor: a point, and the Taylor terms of all rows summed there."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solve_triangular

from pymc_austerity.control_variates.mode import LogDensity, NoModeError, find_mode
from pymc_austerity.rows import Block, RowSource, sum_over_rows

__all__ = ["Anchor", "NoAnchorError", "find_anchor"]

_ROWS_FOR_WARM_START = 10_000


class NoAnchorError(ValueError):
    """The likelihood cannot be expanded about a point; the message says why, as half a sentence."""


@dataclass(frozen=True, eq=False)
class Anchor:
    r"""A point with the sums over all rows of gradients and Hessians there.

    Attributes
    ----------
    point : float array, shape (d,)
        :math:`\theta^*`, in unconstrained space.
    gradient : float array, shape (d,)
        :math:`G = \sum_i g_i`.
    hessian : float array, shape (d, d)
        :math:`H = \sum_i H_i`.
    root : float array, shape (d, d)
        Lower Cholesky factor of the inverse of minus the Hessian of the whole log-posterior.
    """

    point: NDArray[np.float64]
    gradient: NDArray[np.float64]
    hessian: NDArray[np.float64]
    root: NDArray[np.float64]

    def expansion(self, proposed: NDArray, current: NDArray) -> float:
        r"""Second-order expansion of the sum of all differences, nats.

        .. math:: \sum_i c_i = G \cdot d + \tfrac12 d' H s
        """
        moved = proposed - current
        about = (proposed - self.point) + (current - self.point)
        return float(self.gradient.dot(moved) + 0.5 * moved.dot(self.hessian.dot(about)))


def find_anchor(
    start: NDArray[np.float64],
    row_derivatives: Callable[..., list[NDArray]],
    exact_derivatives: Callable[..., list[NDArray]],
    source: RowSource,
    *,
    rng: np.random.Generator,
    at: NDArray[np.float64] | None = None,
) -> Anchor:
    """Posterior mode in unconstrained space, and the sums of the Taylor terms there.

    Parameters
    ----------
    start : float array, shape (d,)
        Where the search starts.
    row_derivatives, exact_derivatives : callable
        See `pymc_austerity.likelihood.Derivatives`.
    source : RowSource
        All rows.
    rng : numpy.random.Generator
        Chooses the rows of the warm start.
    at : float array, shape (d,), optional
        Where the anchor should be instead of at the mode.

    Raises
    ------
    NoAnchorError
        There is no mode, or the log-posterior is not concave there.
    """
    dtype = start.dtype
    every = _Density(row_derivatives, exact_derivatives, source, dtype)
    try:
        point = at if at is not None else _mode(start, every, rng)
    except NoModeError as error:
        raise NoAnchorError(str(error)) from error
    gradient = every.row_gradient(point)
    hessian = every.row_hessian(point)
    try:
        # L of the inverse: with -H = U'U, inv(-H) = inv(U) inv(U)'
        precision = -(hessian + every.exact_hessian(point))
        lower = np.linalg.cholesky(precision[::-1, ::-1])[::-1, ::-1]  # upper: P = U U'
        root = solve_triangular(lower, np.eye(point.size), lower=False).T
    except (LinAlgError, np.linalg.LinAlgError, ValueError) as error:
        raise NoAnchorError("the Hessian there is not negative definite") from error
    return Anchor(point, gradient, hessian, root)


def _mode(start: NDArray, every: "_Density", rng: np.random.Generator) -> NDArray[np.float64]:
    n_rows = every.source.n_rows
    if n_rows <= 2 * _ROWS_FOR_WARM_START:
        some = every
    else:
        chosen = rng.choice(n_rows, size=_ROWS_FOR_WARM_START, replace=False, shuffle=False)
        sample = _Taken(every.source.take(np.sort(chosen)))
        some = _Density(every.rows, every.exact, sample, every.dtype, n_rows / sample.n_rows)
    return find_mode(
        start.astype(np.float64),
        LogDensity(some.gradient, some.hessian),
        LogDensity(every.gradient, every.hessian),
    )


class _Taken:
    """Rows that were taken once."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.n_rows = int(block[0].shape[0])

    def window(self, start: int, stop: int) -> Block:
        return tuple([array[start:stop] for array in self.block])

    def take(self, indices: NDArray[np.intp]) -> Block:
        return tuple([array.take(indices, 0) for array in self.block])


class _Density:
    """Log-posterior with the rows of a source, each counted `weight` times."""

    def __init__(
        self,
        rows: Callable[..., list[NDArray]],
        exact: Callable[..., list[NDArray]],
        source: RowSource,
        dtype: np.dtype,
        weight: float = 1.0,
    ) -> None:
        self.rows, self.exact, self.source = rows, exact, source
        self.dtype, self.weight = dtype, weight

    def gradient(self, point: NDArray) -> tuple[float, NDArray[np.float64]]:
        at = point.astype(self.dtype)
        value, gradient, _ = self.exact(at, np.zeros_like(at))
        sums = self._row_sums(at)
        return float(value + self.weight * sums[0]), gradient + self.weight * sums[1:]

    def hessian(self, point: NDArray) -> NDArray[np.float64]:
        return self.weight * self.row_hessian(point) + self.exact_hessian(point)

    def row_gradient(self, point: NDArray) -> NDArray[np.float64]:
        return self._row_sums(point.astype(self.dtype))[1:]

    def _row_sums(self, at: NDArray) -> NDArray[np.float64]:
        direction = np.zeros_like(at)

        def block_sums(block: Block) -> NDArray[np.float64]:
            value, gradient, _ = self.rows(at, direction, *block)
            return np.concatenate([np.atleast_1d(value), gradient])

        return sum_over_rows(block_sums, self.source)

    def row_hessian(self, point: NDArray) -> NDArray[np.float64]:
        at = point.astype(self.dtype)
        directions = np.eye(at.size, dtype=self.dtype)

        def block_hessian(block: Block) -> NDArray[np.float64]:
            return np.stack([self.rows(at, direction, *block)[2] for direction in directions])

        return _symmetric(sum_over_rows(block_hessian, self.source))

    def exact_hessian(self, point: NDArray) -> NDArray[np.float64]:
        at = point.astype(self.dtype)
        directions = np.eye(at.size, dtype=self.dtype)
        return _symmetric(np.stack([self.exact(at, direction)[2] for direction in directions]))


def _symmetric(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    return (matrix + matrix.T) / 2
