"""Rows sampled within strata, and what they say about the sum of all, in compiled code.

The counterpart of `pymc_austerity.sequential.stratified` and `pymc_austerity.rows.strata`.
"""

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled.calls import call_on_rows, prefetch
from pymc_austerity.compiled.options import INNER
from pymc_austerity.strata import Strata

__all__ = ["CompiledRows", "Survey", "begin", "estimate", "new_survey", "plan_further", "see"]

_AT_ONCE = 8_192
_FEWEST_NEW_ROWS = 2
_ROWS_OF_POOLED = 100
_LINE = 64
_ANNOUNCED = 16
"""Rows of a stratum; further ones follow in memory, and processors read ahead by themselves."""
_ROUNDING = 8 * 2.0**-52


class CompiledRows(NamedTuple):
    """Rows in strata, and the compiled function that evaluates them.

    Attributes
    ----------
    function : int
        Address of the function; see `pymc_austerity.model.Kernel.address`.
    starts : unsigned int array
        Where the entries begin that each term of the predictors reads.
    entries : int array
        Entries of a point in the order of the terms.
    table : int array
        Addresses and shapes of the stored arrays.
    places : int array, shape (A, 2)
        Address of each array, and the bytes of a row in it.
    sizes, offsets, first_counts : int array, shape (H,)
        Rows of each stratum, where they begin, and how many of them are seen at first.
    """

    function: int
    starts: NDArray[np.uint64]
    entries: NDArray[np.int64]
    table: NDArray[np.int64]
    places: NDArray[np.int64]
    sizes: NDArray[np.int64]
    offsets: NDArray[np.int64]
    first_counts: NDArray[np.int64]


class Survey(NamedTuple):
    """A sample that grows, in working space that every decision uses again.

    Attributes
    ----------
    positions, counts, new : int array, shape (H,)
        Next row of each stratum, how many were seen, and how many are to be seen now.
    means, squares, spreads : float array, shape (H,)
        Mean and centred sum of squares of the differences seen; working space.
    proposed, current : float arrays
        The two points in the order of the terms.
    rows, values : arrays, shape (B,)
        Positions of the rows of a batch, and their differences.
    owners, lengths : int array, shape (H,)
        Stratum of each piece of the batch, and its length.
    """

    positions: NDArray[np.int64]
    counts: NDArray[np.int64]
    new: NDArray[np.int64]
    means: NDArray[np.float64]
    squares: NDArray[np.float64]
    spreads: NDArray[np.float64]
    proposed: NDArray[np.float64]
    current: NDArray[np.float64]
    rows: NDArray[np.uint64]
    values: NDArray[np.float64]
    owners: NDArray[np.int64]
    lengths: NDArray[np.int64]


def new_survey(strata: Strata, n_entries: int) -> Survey:
    """Working space for strata and for points of so many entries, as the terms read them."""
    n, at_once = strata.sizes.size, max(strata.n_first, _AT_ONCE)
    return Survey(
        positions=_integers(n),
        counts=_integers(n),
        new=_integers(n),
        means=np.zeros(n),
        squares=np.zeros(n),
        spreads=np.zeros(n),
        proposed=np.zeros(n_entries),
        current=np.zeros(n_entries),
        rows=np.zeros(at_once, dtype=np.uint64),
        values=np.zeros(at_once),
        owners=_integers(n),
        lengths=_integers(n),
    )


def _integers(n: int) -> NDArray[np.int64]:
    return np.zeros(n, dtype=np.int64)


@numba.njit(**INNER)
def begin(
    rows: CompiledRows,
    survey: Survey,
    proposed: NDArray[np.float64],
    current: NDArray[np.float64],
    rng: np.random.Generator,
) -> None:
    """Start at a random row of each stratum, with none of them seen."""
    for i in range(rows.entries.size):
        survey.proposed[i] = proposed[rows.entries[i]]
        survey.current[i] = current[rows.entries[i]]
    for h in range(rows.sizes.size):
        survey.positions[h] = np.int64(rng.random() * rows.sizes[h])
        survey.counts[h] = 0
        survey.means[h] = survey.squares[h] = 0.0
        survey.new[h] = rows.first_counts[h]


@numba.njit(**INNER)
def see(rows: CompiledRows, survey: Survey) -> None:
    """See the next ``new[h]`` rows of each stratum."""
    n, k, n_strata = 0, 0, rows.sizes.size
    for h in range(n_strata):
        left = survey.new[h]
        while left > 0 or (h == n_strata - 1 and n > 0):
            taken = min(left, survey.rows.size - n)
            at = survey.positions[h]
            _announce(rows, rows.offsets[h] + at, min(taken, _ANNOUNCED))
            for j in range(n, n + taken):
                survey.rows[j] = rows.offsets[h] + at
                at += 1
                if at == rows.sizes[h]:  # each stratum is a ring
                    at = 0
            survey.positions[h] = at
            survey.owners[k], survey.lengths[k] = h, taken
            left -= taken
            n, k = n + taken, k + 1
            if n == survey.rows.size or (left == 0 and h == n_strata - 1):
                _evaluate(rows, survey, n, k)
                n, k = 0, 0


@numba.njit(**INNER)
def _announce(rows: CompiledRows, first: int, n_rows: int) -> None:
    """Ask for rows that will be read: their places in memory are far apart."""
    for k in range(rows.places.shape[0]):
        n_bytes = rows.places[k, 1]
        start = rows.places[k, 0] + first * n_bytes
        for line in range(start, start + n_rows * n_bytes, _LINE):
            prefetch(line)


@numba.njit(**INNER)
def _evaluate(rows: CompiledRows, survey: Survey, n_rows: int, n_pieces: int) -> None:
    """Evaluate a batch, and merge it by the update of Chan, Golub and LeVeque (1983)."""
    call_on_rows(
        rows.function,
        survey.proposed.ctypes.data,
        survey.current.ctypes.data,
        rows.starts.ctypes.data,
        survey.rows.ctypes.data,
        n_rows,
        rows.table.ctypes.data,
        survey.values.ctypes.data,
    )
    start = 0
    for k in range(n_pieces):
        h, added = survey.owners[k], survey.lengths[k]
        if added == 0:
            continue
        mean, squares = 0.0, 0.0
        for i in range(start, start + added):
            mean += survey.values[i]
        mean /= added
        for i in range(start, start + added):
            apart = survey.values[i] - mean
            squares += apart * apart
        start += added
        seen = survey.counts[h]
        if seen == 0:
            survey.means[h], survey.squares[h] = mean, squares
        else:
            shift, share = mean - survey.means[h], added / (seen + added)
            survey.means[h] += shift * share
            survey.squares[h] += squares + shift * shift * seen * share
        survey.counts[h] = seen + added


@numba.njit(**INNER)
def plan_further(rows: CompiledRows, survey: Survey) -> None:
    """Rows to see next, as `pymc_austerity.sequential.further_counts` has them."""
    total, pooled, n_seen, n_open = 0.0, 0.0, 0, 0
    for h in range(rows.sizes.size):
        size, count = rows.sizes[h], survey.counts[h]
        survey.spreads[h] = size * size * (survey.squares[h] / max(count - 1, 1))
        if size > count:
            pooled += survey.spreads[h]
            n_seen += count
            n_open += 1
    pooled /= max(n_open, 1)
    for h in range(rows.sizes.size):
        size, count, weight = rows.sizes[h], survey.counts[h], 0.0
        if size > count:
            squared = count * survey.spreads[h] + _ROWS_OF_POOLED * pooled
            weight = math.sqrt(squared / (count + _ROWS_OF_POOLED))
        survey.spreads[h] = weight
        total += weight
    for h in range(rows.sizes.size):
        count = survey.counts[h]
        wanted = 1.0 * count
        if total > 0.0:
            wanted = math.ceil(2.0 * n_seen * survey.spreads[h] / total - count)
            wanted = max(wanted, _FEWEST_NEW_ROWS)
        survey.new[h] = np.int64(min(wanted, 1.0 * (rows.sizes[h] - count)))


@numba.njit(**INNER)
def estimate(rows: CompiledRows, survey: Survey) -> tuple[float, float, float, int]:
    """Estimated sum, its variance and degrees of freedom, and the rows seen.

    The variance is 0 where the sample has no spread but rounding, as in
    `pymc_austerity.sequential.Estimate`.
    """
    total, magnitude, variance, squared, n_seen = 0.0, 0.0, 0.0, 0.0, 0
    for h in range(rows.sizes.size):
        size, count = rows.sizes[h], survey.counts[h]
        total += size * survey.means[h]
        magnitude += size * abs(survey.means[h])
        free = 1.0 / max(count - 1, 1)
        left = (size - count) / max(size - 1, 1)
        own = size * size / count * free * left * survey.squares[h]
        variance += own
        squared += own * own * free
        n_seen += count
    rounding = _ROUNDING * magnitude
    if not variance > rounding * rounding:
        return total, 0.0, math.inf, n_seen
    return total, variance, variance * variance / squared, n_seen
