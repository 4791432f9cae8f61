"""The rows of each level, and weights from a few of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import announce, call_on_rows
from pymc_austerity.exact import ROUNDING, BoundViolatedError, fill_thinned
from pymc_austerity.pointers import integers


class ResidualsByAddress(NamedTuple):
    """Residuals of rows between two points, for compiled code; see `pymc_austerity.model.Kernel`.

    Attributes
    ----------
    proposed, current : float array
        Entries of the points in the order of the terms.
    function, starts, table : int
        Addresses of the function, of where its terms begin, and of the table of the rows' arrays.
    places : int array, shape (n_arrays, 2)
        Address of each array, and the bytes of a row.
    """

    proposed: NDArray[np.float64]
    current: NDArray[np.float64]
    function: int
    starts: int
    table: int
    places: NDArray[np.int64]


class Weights(NamedTuple):
    """The weights of levels, from the rows that were read.

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
        Positions in storage of the rows, level by level; None where they are stored in this order.
    radii : float array, shape (R,)
        Lengths of displacements of the predictors, ascending.
    constants : float array, shape (R, G)
        The largest third derivative of the rows of each level, as functions of their predictors,
        for displacements up to each radius; infinite where there is no bound.
    rounding : float
        Nats by which rounding may take a row beyond its bound.
    """

    starts: NDArray[np.int64]
    positions: NDArray[np.int64] | None
    radii: NDArray[np.float64]
    constants: NDArray[np.float64]
    rounding: float = ROUNDING

    def bounds(
        self,
        before: NDArray[np.float64],
        after: NDArray[np.float64],
        moved: NDArray[np.float64],
        inflation: float = 1.0,
    ) -> NDArray[np.float64]:
        r"""Bounds on the change of the residual of a row of each level, nats.

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
            Infinite where all rows are to be read.

        Examples
        --------
        >>> rows = LevelRows(np.array([0, 2]), None, np.array([1.0]), np.array([[6.0]]))
        >>> rows.bounds(np.array([0.5]), np.array([0.5]), np.array([0.1]))
        array([0.075])
        """
        bounds = np.empty(before.size)
        level_bounds(before, after, moved, self.radii, self.constants, inflation, bounds)
        return bounds

    def without_bound(
        self, bounds: NDArray[np.float64], fewest: int, *, together: bool
    ) -> NDArray[np.int64]:
        """Levels without a bound that have enough rows, each by itself or all together."""
        sizes, unbounded = np.diff(self.starts), np.isinf(bounds)
        if together:
            enough = sizes[unbounded].sum() >= fewest
            return np.flatnonzero(unbounded & (sizes > 0) & enough)
        return np.flatnonzero(unbounded & (sizes >= fewest))

    def weights(
        self,
        residuals: Callable[[NDArray[np.int64]], NDArray[np.float64]] | ResidualsByAddress,
        bounds: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> Weights:
        r"""Read a few rows of each level, and all rows of levels without a bound.

        A row with bound B is a candidate :math:`\text{Poisson}(B)` times; see
        `pymc_austerity.exact.thin`. With these log weights in place of the sums of residuals the
        posterior is exactly invariant, for every level by itself and for all together.

        Parameters
        ----------
        residuals : callable or ResidualsByAddress
            From positions in storage to residuals, nats.
        bounds : float array, shape (G,)
            As from `bounds`.
        rng : numpy.random.Generator
            Source of numbers of candidates, and of three uniform numbers for each.

        Raises
        ------
        BoundViolatedError
            The residual of a row exceeds its bound; the row is named by its position in storage.
        """
        weights, totals = np.zeros(bounds.size), np.empty(bounds.size)
        positions = _AS_STORED if self.positions is None else self.positions
        n_read = _fill_totals(bounds, self.starts, totals)
        uniform = rng.random((3, rng.poisson(totals[-1])))
        if not n_read + uniform.shape[1]:
            return Weights(weights, 0, np.empty(0))
        drawn = (bounds, self.starts, positions, totals, uniform, n_read)
        if isinstance(residuals, ResidualsByAddress):
            rows, found, limits, wrong = _weigh(residuals, drawn, self.rounding, weights)
        else:
            rows, levels, limits = _selected(drawn)
            found = residuals(rows)
            wrong = _fill_weights(found, limits, uniform[2], self.rounding, levels, weights)
        if wrong >= 0:
            k = n_read + wrong
            raise BoundViolatedError(int(rows[k]), float(found[k]), float(limits[wrong]))
        return Weights(weights, rows.size, found[n_read:] / limits)


_ANNOUNCED = 1_000
"""Rows that are fetched in advance; they stay in the processor's cache until they are read."""
_AS_STORED = np.empty(0, dtype=np.int64)

_Drawn = tuple[
    NDArray[np.float64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.float64],
    NDArray[np.float64],
    int,
]
"""Bounds, where the rows of each level begin, positions of rows if they are not stored by level,
running sums of the expected numbers of candidates, three uniform numbers for each candidate, and
the number of rows of levels without a bound."""


@numba.njit(cache=True)
def _fill_totals(
    bounds: NDArray[np.float64], starts: NDArray[np.int64], totals: NDArray[np.float64]
) -> int:
    """Fill in running sums of expected candidates; return the number of rows without a bound.

    Levels without a bound have no candidates.
    """
    n_read, total = 0, 0.0
    for level in range(bounds.size):
        size = starts[level + 1] - starts[level]
        if bounds[level] == np.inf:
            n_read += size
        else:
            total += size * min(bounds[level], 1.0)
        totals[level] = total
    return n_read


@numba.njit(cache=True)
def _selected(
    drawn: _Drawn,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Positions and levels of the rows without a bound, which come first, and of the candidates.

    Also the bounds of the candidates.
    """
    bounds, starts, positions, totals, uniform, n_read = drawn
    n_candidates = uniform.shape[1]
    limits = np.empty(n_candidates)
    rows, levels = np.empty((2, n_read + n_candidates), dtype=np.int64)
    k = 0
    for level in range(bounds.size if n_read else 0):
        if bounds[level] == np.inf:
            for place in range(starts[level], starts[level + 1]):
                rows[k], levels[k] = place, level
                k += 1
    total, last = totals[-1], totals.size - 1
    while last > 0 and totals[last - 1] == total:  # rounding must not lead beyond it
        last -= 1
    for number in range(n_candidates):
        share, level, end = uniform[0, number] * total, 0, last
        while level < end:
            middle = (level + end) // 2
            if totals[middle] <= share:
                level = middle + 1
            else:
                end = middle
        size = starts[level + 1] - starts[level]
        rows[k] = starts[level] + np.int64(uniform[1, number] * size)
        levels[k], limits[number] = level, bounds[level]
        k += 1
    if positions.size:
        for k in range(rows.size):
            rows[k] = positions[rows[k]]
    return rows, levels, limits


@numba.njit(cache=True)
def _fill_weights(
    found: NDArray[np.float64],
    limits: NDArray[np.float64],
    chances: NDArray[np.float64],
    rounding: float,
    levels: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> int:
    """Fill in the log weights; return the number of a candidate above its bound, -1 for none."""
    n_read = found.size - limits.size
    for k in range(n_read):
        weights[levels[k]] += found[k]
    return fill_thinned(found[n_read:], limits, chances, rounding, levels[n_read:], weights)


@numba.njit(cache=True)
def _weigh(
    residuals: ResidualsByAddress, drawn: _Drawn, rounding: float, weights: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], int]:
    """Select, evaluate and weigh at once."""
    rows, levels, limits = _selected(drawn)
    places, n_arrays = integers(residuals.places.ctypes.data), residuals.places.shape[0]
    for row in rows[:_ANNOUNCED]:
        announce(places, n_arrays, row, 1)
    found = np.empty(rows.size)
    call_on_rows(
        residuals.function,
        residuals.proposed.ctypes.data,
        residuals.current.ctypes.data,
        residuals.starts,
        rows.ctypes.data,
        rows.size,
        residuals.table,
        found.ctypes.data,
    )
    uniform = drawn[4]
    wrong = _fill_weights(found, limits, uniform[2], rounding, levels, weights)
    return rows, found, limits, wrong
