"""Samples of rows that grow from look to look, in compiled code."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from pymc_austerity.compiled.addresses import RowsByAddress, announce, fill_differences, order
from pymc_austerity.parts import integers, method, part, reals
from pymc_austerity.sequential import Estimate
from pymc_austerity.sequential.surveys import (
    ESTIMATE,
    estimate_strata,
    estimate_uniform,
    merged,
    moments_of,
    n_of_look,
    plan_further,
)
from pymc_austerity.strata import Strata, drawn_number, first_run, key_of, place_in_runs

_AT_ONCE = 8_192
_ANNOUNCED = 16
"""Rows of a stratum; further ones follow in memory, and processors read ahead by themselves."""


class CompiledSurvey(NamedTuple):
    """A sample that grows, in working space that every decision uses again.

    Attributes
    ----------
    rows : RowsByAddress
    sizes, offsets, first_counts : int array, shape (H,)
        Rows of each stratum, where they begin, and how many of them are seen at first.
    n_strata, n_rows : int
        H, and the number of all rows.
    positions, counts, new : int array, shape (H,)
        Next row of each stratum, how many were seen, and how many are to be seen now.
    means, squares, weights : float array, shape (H,)
        Mean and centered sum of squares of the differences seen; working space.
    spread : float array, shape (1,)
        `pymc_austerity.sequential.Estimate.spread`.
    proposed, current : float arrays
        The two points in the order of the terms.
    batch, values : arrays, shape (B,)
        Positions of the rows of a batch, and their differences.
    owners, lengths : int array, shape (H,)
        Stratum of each piece of the batch, and its length.
    most : int
        Rows of a batch at most.
    largest_difference : float
        Bound on the absolute differences; it is not known.
    """

    rows: RowsByAddress
    sizes: NDArray[np.int64]
    offsets: NDArray[np.int64]
    first_counts: NDArray[np.int64]
    n_strata: int
    n_rows: int
    positions: NDArray[np.int64]
    counts: NDArray[np.int64]
    new: NDArray[np.int64]
    means: NDArray[np.float64]
    squares: NDArray[np.float64]
    weights: NDArray[np.float64]
    spread: NDArray[np.float64]
    proposed: NDArray[np.float64]
    current: NDArray[np.float64]
    batch: NDArray[np.uint64]
    values: NDArray[np.float64]
    owners: NDArray[np.int64]
    lengths: NDArray[np.int64]
    most: int
    largest_difference: float = math.inf

    def begin(self, proposed: Any, current: Any, rng: np.random.Generator) -> None:
        """Start at a random row of each stratum, with none of them seen."""
        order(self.rows, proposed, self.proposed)
        order(self.rows, current, self.current)
        sizes, first_counts = integers(self.sizes), integers(self.first_counts)
        positions, counts, new = _counters(self)
        means, squares = reals(self.means), reals(self.squares)
        reals(self.spread)[0] = 0.0
        for h in range(self.n_strata):
            positions[h] = np.int64(rng.random() * sizes[h])
            counts[h] = 0
            means[h] = squares[h] = 0.0
            new[h] = first_counts[h]

    def look(self) -> Estimate:
        """See the first rows of each stratum; at further looks, double the rows seen."""
        sizes, counts, new = integers(self.sizes), integers(self.counts), integers(self.new)
        squares, weights = reals(self.squares), reals(self.weights)
        if counts[0] > 0:
            plan_further(self.n_strata, sizes, counts, squares, weights, new)
        return _see(self)

    def estimated_total(self) -> float:
        """Estimated sum over all rows, nats."""
        sizes, means, found = integers(self.sizes), reals(self.means), 0.0
        for h in range(self.n_strata):
            found += sizes[h] * means[h]
        return found

    def finish(self) -> Estimate:
        """See all remaining rows."""
        sizes, counts, new = integers(self.sizes), integers(self.counts), integers(self.new)
        for h in range(self.n_strata):
            new[h] = sizes[h] - counts[h]
        return _see(self)


def new_survey(rows: RowsByAddress, strata: Strata) -> CompiledSurvey:
    """A survey of rows in strata."""
    n, at_once = strata.sizes.size, max(strata.n_first, _AT_ONCE)
    return CompiledSurvey(
        rows,
        strata.sizes.astype(np.int64),
        strata.offsets.astype(np.int64),
        strata.first_counts.astype(np.int64),
        n,
        strata.n_rows,
        positions=_integers(n),
        counts=_integers(n),
        new=_integers(n),
        means=np.zeros(n),
        squares=np.zeros(n),
        weights=np.zeros(n),
        spread=np.zeros(1),
        proposed=np.zeros(rows.n_numbers),
        current=np.zeros(rows.n_numbers),
        batch=np.zeros(at_once, dtype=np.uint64),
        values=np.zeros(at_once),
        owners=_integers(n),
        lengths=_integers(n),
        most=at_once,
    )


def _integers(n: int) -> NDArray[np.int64]:
    return np.zeros(n, dtype=np.int64)


@part(types.UniTuple(types.CPointer(types.int64), 3))
def _counters(survey: CompiledSurvey) -> Any:
    """Next row of each stratum, how many were seen, and how many are to be seen now."""
    return integers(survey.positions), integers(survey.counts), integers(survey.new)


@part(ESTIMATE)
def _see(survey: CompiledSurvey) -> Estimate:
    """See the next ``new[h]`` rows of each stratum, and estimate the sum of all."""
    sizes, offsets, batch = integers(survey.sizes), integers(survey.offsets), integers(survey.batch)
    positions, _, new = _counters(survey)
    owners, lengths = integers(survey.owners), integers(survey.lengths)
    n, k, last = 0, 0, survey.n_strata - 1
    for h in range(survey.n_strata):
        left = new[h]
        while left > 0 or (h == last and n > 0):
            taken = min(left, survey.most - n)
            at = positions[h]
            announce(survey.rows, offsets[h] + at, min(taken, _ANNOUNCED))
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
                _evaluate(survey, n, k)
                n, k = 0, 0
    means, squares = reals(survey.means), reals(survey.squares)
    counts, spread = integers(survey.counts), reals(survey.spread)
    return estimate_strata(survey.n_strata, sizes, counts, means, squares, spread)


@part(types.void)
def _evaluate(survey: CompiledSurvey, n_rows: int, n_pieces: int) -> None:
    """Evaluate a batch, and merge it."""
    points = survey.proposed, survey.current
    fill_differences(survey.rows, *points, survey.batch, n_rows, survey.values)
    values, counts = reals(survey.values), integers(survey.counts)
    owners, lengths = integers(survey.owners), integers(survey.lengths)
    means, squares = reals(survey.means), reals(survey.squares)
    start = 0
    for k in range(n_pieces):
        h, added = owners[k], lengths[k]
        if added == 0:
            continue
        mean, own = moments_of(values, start, start + added)
        means[h], squares[h] = merged(counts[h], means[h], squares[h], added, mean, own)
        counts[h] += added
        start += added


class UniformCompiledSurvey(NamedTuple):
    """A uniform sample that grows, in working space that every decision uses again.

    Attributes
    ----------
    rows : RowsByAddress
    n_rows, batch_size : int
        Number of all rows, and rows of the first look.
    growth : float
        As for `pymc_austerity.sequential.UniformSurvey`.
    n_runs, length : int
        How many runs of consecutive rows there are, and their length: 0 runs where every row is
        drawn by itself, -1 where rows are seen as they are stored.
    state : int array, shape (3,)
        How many rows were seen; the row where runs start and their factor, or the key of the
        permutation.
    moments : float array, shape (2,)
        Mean and centered sum of squares of the differences seen.
    proposed, current : float arrays
        The two points in the order of the terms.
    batch, values : arrays, shape (B,)
        Positions of the rows of a batch, and their differences.
    most : int
        Rows of a batch at most.
    largest_difference : float
        Bound on the absolute differences; it is known to the test.
    """

    rows: RowsByAddress
    n_rows: int
    batch_size: int
    growth: float
    n_runs: int
    length: int
    state: NDArray[np.int64]
    moments: NDArray[np.float64]
    proposed: NDArray[np.float64]
    current: NDArray[np.float64]
    batch: NDArray[np.uint64]
    values: NDArray[np.float64]
    most: int
    largest_difference: float = math.inf

    def begin(self, proposed: Any, current: Any, rng: np.random.Generator) -> None:
        """Choose the order of the rows, with none of them seen."""
        order(self.rows, proposed, self.proposed)
        order(self.rows, current, self.current)
        state, moments = integers(self.state), reals(self.moments)
        state[0] = 0
        moments[0] = moments[1] = 0.0
        if self.n_runs > 0:
            state[1], state[2] = first_run(self.n_rows, self.n_runs, rng)
        elif self.n_runs == 0:
            state[1] = key_of(rng)

    def look(self) -> Estimate:
        """See the next batch."""
        count = integers(self.state)[0]
        return _see_more(self, n_of_look(count, self.n_rows, self.batch_size, self.growth))

    def estimated_total(self) -> float:
        """Estimated sum over all rows, nats."""
        return self.n_rows * reals(self.moments)[0]

    def finish(self) -> Estimate:
        """See all remaining rows."""
        return _see_more(self, self.n_rows - integers(self.state)[0])


def new_uniform_survey(
    rows: RowsByAddress, n_rows: int, batch_size: int, growth: float, n_runs: int, length: int
) -> UniformCompiledSurvey:
    """A uniform survey; the parameters are its attributes."""
    return UniformCompiledSurvey(
        rows,
        n_rows,
        batch_size,
        float(growth),
        n_runs,
        length,
        state=_integers(3),
        moments=np.zeros(2),
        proposed=np.zeros(rows.n_numbers),
        current=np.zeros(rows.n_numbers),
        batch=np.zeros(_AT_ONCE, dtype=np.uint64),
        values=np.zeros(_AT_ONCE),
        most=_AT_ONCE,
    )


@part(types.UniTuple(types.int64, 2))
def _row(survey: UniformCompiledSurvey, state: Any, k: int) -> tuple[int, int]:
    """Where the k-th row of the sample lies, and how many after it are the following ones."""
    n_rows, length = survey.n_rows, survey.length
    if survey.n_runs > 0:
        place = place_in_runs(k, n_rows, survey.n_runs, length, state[1], state[2])
        return place, length - 1 - k % length
    if survey.n_runs == 0:
        return drawn_number(k, n_rows, state[1]), 0
    return k, n_rows - 1 - k


@part(ESTIMATE)
def _see_more(survey: UniformCompiledSurvey, n_new: int) -> Estimate:
    """See so many rows, and estimate the sum of all."""
    state, moments = integers(survey.state), reals(survey.moments)
    batch, values, n_rows = integers(survey.batch), reals(survey.values), survey.n_rows
    left = n_new
    while left > 0 and math.isfinite(moments[0]):  # one impossible row decides
        taken, count, row, following = min(left, survey.most), state[0], 0, 0
        for j in range(taken):
            if following > 0:
                row, following = row + 1 if row < n_rows - 1 else 0, following - 1
            else:
                row, following = _row(survey, state, count + j)
                announce(survey.rows, row, min(following + 1, _ANNOUNCED))
            batch[j] = row
        points = survey.proposed, survey.current
        fill_differences(survey.rows, *points, survey.batch, taken, survey.values)
        known = count, moments[0], moments[1]
        moments[0], moments[1] = merged(*known, taken, *moments_of(values, 0, taken))
        state[0] += taken
        left -= taken
    return estimate_uniform(n_rows, state[0], moments[0], moments[1])


@method(types.void)
def begin(survey: Any, proposed: Any, current: Any, rng: np.random.Generator) -> None:
    """Begin a sample of the differences between two points."""
    survey.begin(proposed, current, rng)


@method(types.float64)
def estimated_total(survey: Any) -> float:
    """Estimated sum over all rows, nats."""
    found: float = survey.estimated_total()
    return found
