"""Rows sampled within strata, and what they say about the sum of all, in compiled code.

The counterpart of `pymc_austerity.sequential.stratified` and `pymc_austerity.rows.strata`.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from pymc_austerity.compiled.calls import call_on_rows, integers, prefetch, reals
from pymc_austerity.compiled.parts import part
from pymc_austerity.strata import Strata

__all__ = [
    "CompiledRows",
    "Survey",
    "announce",
    "begin",
    "estimate",
    "new_survey",
    "plan_further",
    "see",
]

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
    n_entries, n_arrays, n_strata : int
        Lengths of `entries`, `places` and `sizes`.
    """

    function: int
    starts: NDArray[np.uint64]
    entries: NDArray[np.int64]
    table: NDArray[np.int64]
    places: NDArray[np.int64]
    sizes: NDArray[np.int64]
    offsets: NDArray[np.int64]
    first_counts: NDArray[np.int64]
    n_entries: int
    n_arrays: int
    n_strata: int


class Survey(NamedTuple):
    """A sample that grows, in working space that every decision uses again.

    Attributes
    ----------
    positions, counts, new : int array, shape (H,)
        Next row of each stratum, how many were seen, and how many are to be seen now.
    means, squares, spreads : float array, shape (H,)
        Mean and centered sum of squares of the differences seen; working space.
    proposed, current : float arrays
        The two points in the order of the terms.
    rows, values : arrays, shape (B,)
        Positions of the rows of a batch, and their differences.
    owners, lengths : int array, shape (H,)
        Stratum of each piece of the batch, and its length.
    most : int
        Rows of a batch at most.
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
    most: int


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
        most=at_once,
    )


def _integers(n: int) -> NDArray[np.int64]:
    return np.zeros(n, dtype=np.int64)


@part(types.void)
def begin(
    rows: CompiledRows, survey: Survey, proposed: Any, current: Any, rng: np.random.Generator
) -> None:
    """Start at a random row of each stratum, with none of them seen."""
    entries, then, now = integers(rows.entries), reals(survey.proposed), reals(survey.current)
    for i in range(rows.n_entries):
        then[i], now[i] = proposed[entries[i]], current[entries[i]]
    sizes, first_counts = integers(rows.sizes), integers(rows.first_counts)
    positions, counts, new = _counters(survey)
    means, squares = reals(survey.means), reals(survey.squares)
    for h in range(rows.n_strata):
        positions[h] = np.int64(rng.random() * sizes[h])
        counts[h] = 0
        means[h] = squares[h] = 0.0
        new[h] = first_counts[h]


@part(types.UniTuple(types.CPointer(types.int64), 3))
def _counters(survey: Survey) -> Any:
    """Next row of each stratum, how many were seen, and how many are to be seen now."""
    return integers(survey.positions), integers(survey.counts), integers(survey.new)


@part(types.void)
def see(rows: CompiledRows, survey: Survey) -> None:
    """See the next ``new[h]`` rows of each stratum."""
    sizes, offsets, batch = integers(rows.sizes), integers(rows.offsets), integers(survey.rows)
    positions, _, new = _counters(survey)
    owners, lengths = integers(survey.owners), integers(survey.lengths)
    places = integers(rows.places)
    n, k, last = 0, 0, rows.n_strata - 1
    for h in range(rows.n_strata):
        left = new[h]
        while left > 0 or (h == last and n > 0):
            taken = min(left, survey.most - n)
            at = positions[h]
            announce(places, rows.n_arrays, offsets[h] + at, min(taken, _ANNOUNCED))
            for j in range(n, n + taken):
                batch[j] = offsets[h] + at
                at += 1
                if at == sizes[h]:  # each stratum is a ring
                    at = 0
            positions[h] = at
            owners[k], lengths[k] = h, taken
            left -= taken
            n, k = n + taken, k + 1
            if n == survey.most or (left == 0 and h == last):
                _evaluate(rows, survey, n, k)
                n, k = 0, 0


@part(types.void)
def announce(places: Any, n_arrays: int, first: int, n_rows: int) -> None:
    """Ask for rows that will be read: their places in memory are far apart."""
    for k in range(n_arrays):
        n_bytes = places[2 * k + 1]
        start = places[2 * k] + first * n_bytes
        for line in range(start, start + n_rows * n_bytes, _LINE):
            prefetch(line)


@part(types.void)
def _evaluate(rows: CompiledRows, survey: Survey, n_rows: int, n_pieces: int) -> None:
    """Evaluate a batch, and merge it by the update of Chan, Golub and LeVeque (1983)."""
    call_on_rows(
        rows.function,
        survey.proposed,
        survey.current,
        rows.starts,
        survey.rows,
        n_rows,
        rows.table,
        survey.values,
    )
    values, counts = reals(survey.values), integers(survey.counts)
    owners, lengths = integers(survey.owners), integers(survey.lengths)
    means, all_squares = reals(survey.means), reals(survey.squares)
    start = 0
    for k in range(n_pieces):
        h, added = owners[k], lengths[k]
        if added == 0:
            continue
        mean, squares = 0.0, 0.0
        for i in range(start, start + added):
            mean += values[i]
        mean /= added
        for i in range(start, start + added):
            apart = values[i] - mean
            squares += apart * apart
        start += added
        seen = counts[h]
        if seen == 0:
            means[h], all_squares[h] = mean, squares
        else:
            shift, share = mean - means[h], added / (seen + added)
            means[h] += shift * share
            all_squares[h] += squares + shift * shift * seen * share
        counts[h] = seen + added


@part(types.void)
def plan_further(rows: CompiledRows, survey: Survey) -> None:
    """Rows to see next, as `pymc_austerity.sequential.further_counts` has them."""
    sizes, squares, spreads = integers(rows.sizes), reals(survey.squares), reals(survey.spreads)
    _, counts, new = _counters(survey)
    total, pooled, n_seen, n_open = 0.0, 0.0, 0, 0
    for h in range(rows.n_strata):
        size, count = sizes[h], counts[h]
        spreads[h] = size * size * (squares[h] / max(count - 1, 1))
        if size > count:
            pooled += spreads[h]
            n_seen += count
            n_open += 1
    pooled /= max(n_open, 1)
    for h in range(rows.n_strata):
        count, weight = counts[h], 0.0
        if sizes[h] > count:
            squared = count * spreads[h] + _ROWS_OF_POOLED * pooled
            weight = math.sqrt(squared / (count + _ROWS_OF_POOLED))
        spreads[h] = weight
        total += weight
    for h in range(rows.n_strata):
        count = counts[h]
        wanted = 1.0 * count
        if total > 0.0:
            wanted = math.ceil(2.0 * n_seen * spreads[h] / total - count)
            wanted = max(wanted, _FEWEST_NEW_ROWS)
        new[h] = np.int64(min(wanted, 1.0 * (sizes[h] - count)))


@part(types.Tuple((types.float64, types.float64, types.float64, types.int64)))
def estimate(rows: CompiledRows, survey: Survey) -> tuple[float, float, float, int]:
    """Estimated sum, its variance and degrees of freedom, and the rows seen.

    The variance is 0 where the sample has no spread but rounding, as in
    `pymc_austerity.sequential.Estimate`.
    """
    sizes, counts = integers(rows.sizes), integers(survey.counts)
    means, squares = reals(survey.means), reals(survey.squares)
    total, magnitude, variance, squared, n_seen = 0.0, 0.0, 0.0, 0.0, 0
    for h in range(rows.n_strata):
        size, count = sizes[h], counts[h]
        total += size * means[h]
        magnitude += size * abs(means[h])
        free = 1.0 / max(count - 1, 1)
        left = (size - count) / max(size - 1, 1)
        own = size * size / count * free * left * squares[h]
        variance += own
        squared += own * own * free
        n_seen += count
    rounding = _ROUNDING * magnitude
    if not variance > rounding * rounding:
        return total, 0.0, math.inf, n_seen
    return total, variance, variance * variance / squared, n_seen
