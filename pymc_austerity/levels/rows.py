"""The rows of each level, and what a few of them say about all."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.exact import ROUNDING, BoundViolatedError, first_violation, thinned

__all__ = ["LevelRows", "Weights"]


class Weights(NamedTuple):
    """What the rows that were read stand for.

    Attributes
    ----------
    log_weight : float array, shape (G,)
        For each level, in place of the sum of the residuals of its rows, nats.
    n_rows : int
        Rows that were read.
    ratios : float array, shape (n_candidates,)
        Residuals of the candidates over their bounds.
    """

    log_weight: NDArray[np.float64]
    n_rows: int
    ratios: NDArray[np.float64]


@numba.njit(cache=True)
def level_bounds(
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    moved: NDArray[np.float64],
    radii: NDArray[np.float64],
    constants: NDArray[np.float64],
    inflation: float,
    bounds: NDArray[np.float64],
) -> None:
    """Fill in the bound of a row of each level; see `LevelRows.bounds`."""
    for level in range(before.size):
        x, y = before[level], after[level]
        squares, cubes = x * x + x * y + y * y, x * x * x + y * y * y
        change = min(moved[level] * squares, cubes) / 6.0
        r = 0
        while r < radii.size and radii[r] < max(x, y):
            r += 1
        bound = np.inf
        if change == 0.0:
            bound = 0.0
        elif r < radii.size:
            bound = inflation * constants[r, level] * change
        bounds[level] = bound if bound <= 1.0 else np.inf


@dataclass(frozen=True, eq=False)
class LevelRows:
    """Rows by the levels of a factor, with bounds on their third derivatives.

    Attributes
    ----------
    starts : int array, shape (G + 1,)
        Where the rows of each level begin.
    positions : int array, shape (N,), or None
        Positions in storage of the rows, level by level; None where they are stored like that.
    radii : float array, shape (R,)
        Lengths of displacements of the predictors, ascending.
    constants : float array, shape (R, G)
        The largest third derivative of the rows of each level, as functions of their predictors,
        for displacements of at most so much; infinite for none.
    rounding : float
        Nats by which rounding may take a row beyond its bound.
    """

    starts: NDArray[np.int64]
    positions: NDArray[np.int64] | None
    radii: NDArray[np.float64]
    constants: NDArray[np.float64]
    rounding: float = ROUNDING

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each level, shape (G,)."""
        return np.diff(self.starts)

    def bounds(
        self,
        before: NDArray[np.float64],
        after: NDArray[np.float64],
        moved: NDArray[np.float64],
        inflation: float = 1.0,
    ) -> NDArray[np.float64]:
        r"""By how much the residual of a row of each level can change, nats.

        .. math:: |R(v) - R(u)| \leq \frac{c}{6}
                  \min\{ |v - u| (|u|^2 + |u| |v| + |v|^2), \; |u|^3 + |v|^3 \}

        Parameters
        ----------
        before, after, moved : float array, shape (G,)
            Bounds on the displacements :math:`|u|`, :math:`|v|` and :math:`|v - u|` of the
            predictors from the anchor.
        inflation : float
            Factor of the bounds, at least 1: larger ones read more rows, whose weights vary less.

        Returns
        -------
        float array, shape (G,)
            Infinite where rows are to be read as they are.

        Examples
        --------
        >>> rows = LevelRows(np.array([0, 2]), None, np.array([1.0]), np.array([[6.0]]))
        >>> rows.bounds(np.array([0.5]), np.array([0.5]), np.array([0.1]))
        array([0.075])
        """
        bounds = np.empty(before.size)
        level_bounds(before, after, moved, self.radii, self.constants, inflation, bounds)
        return bounds

    def weights(
        self,
        residuals: Callable[[NDArray[np.int64]], NDArray[np.float64]],
        bounds: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> Weights:
        r"""Read a few rows of each level, all rows of those without a bound.

        A row with bound B is a candidate :math:`\text{Poisson}(B)` times; see
        `pymc_austerity.exact.thin`. With these log weights in place of the sums of residuals the
        posterior is exactly invariant, for every level by itself and for all together.

        Parameters
        ----------
        residuals : callable
            From positions in storage to residuals, nats.
        bounds : float array, shape (G,)
            As from `bounds`.
        rng : numpy.random.Generator
            Gives numbers of candidates, their places, and one uniform number for each.

        Raises
        ------
        BoundViolatedError
            Names the row, by its position in storage.
        """
        sizes, is_read = self.sizes, np.isinf(bounds)
        totals = np.where(is_read, 0.0, sizes * np.minimum(bounds, 1.0)).cumsum()
        uniform = rng.random((2, rng.poisson(totals[-1])))
        # rounding must not lead beyond the last level that has candidates
        last = totals.searchsorted(totals[-1])
        candidates = totals.searchsorted(uniform[0] * totals[-1], side="right")
        np.minimum(candidates, last, out=candidates)
        places = self.starts[candidates] + (uniform[1] * sizes[candidates]).astype(np.int64)
        read, of_read = self._all_of(np.flatnonzero(is_read))
        if not read.size + places.size:
            return Weights(np.zeros(sizes.size), 0, np.empty(0))
        places = np.concatenate([read, places])
        rows = places if self.positions is None else self.positions[places]
        found, limits = residuals(rows), bounds[candidates]
        added, ratios = found[: read.size], np.empty(0)
        if limits.size:
            rest = found[read.size :]
            wrong = first_violation(rest, limits, self.rounding)
            if wrong >= 0:
                row = int(rows[read.size + wrong])
                raise BoundViolatedError(row, float(rest[wrong]), float(limits[wrong]))
            added, ratios = np.concatenate([added, thinned(rest, limits, rng)]), rest / limits
        levels = np.concatenate([of_read, candidates])
        weights = np.bincount(levels, weights=added, minlength=sizes.size)
        return Weights(np.asarray(weights, dtype=np.float64), rows.size, ratios)

    def _all_of(self, levels: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """Places of all rows of some levels, and the levels of these rows."""
        if not levels.size:
            return np.empty(0, dtype=np.int64), levels
        sizes, ends = self.sizes[levels], self.starts[1:][levels]
        shifts = np.repeat(ends - np.cumsum(sizes), sizes)
        return np.arange(shifts.size) + shifts, np.repeat(levels, sizes)
