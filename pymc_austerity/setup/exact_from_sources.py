"""The plan of exact decisions where rows stay where they are: groups, and a pool of draws."""

import logging
import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import Anchor
from pymc_austerity.deciding.pool import Pool, PooledSampling
from pymc_austerity.deciding.pool_draws import StoredDraws
from pymc_austerity.exact import (
    Grid,
    Groups,
    any_direction,
    expected_rows,
    group_rows,
    nearest_directions,
    rates_of,
)
from pymc_austerity.model import design_function
from pymc_austerity.model.bounds import CellBounds, NoBoundError
from pymc_austerity.setup.checked_bounds import NotExactError, checked
from pymc_austerity.setup.exact import (
    DIRECTIONS,
    FEW_ROWS,
    ROWS_OF_A_GROUP,
    Pair,
    inflated,
    normal_pairs,
    radii_for,
    refuse_slow_bounds,
    structure_of,
)
from pymc_austerity.setup.grouped_sources import BoundsOfRows, GroupedSources, counted
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.row_functions import Residuals
from pymc_austerity.setup.setup_progress import Say
from pymc_austerity.sources import usual_threads

__all__ = ["PoolLengths", "PoolOfSample", "pool_lengths", "pool_of_sample", "pooled_sampling"]

_log = logging.getLogger("pymc.austerity")

_CHAINS = 4
"""Number of chains that PyMC runs by default; further ones draw rows of their own."""

_DECISIONS, _MOST_DECISIONS = 2_500, 40_000
"""Decisions of a chain that PyMC runs by default, with some to spare, and of a long chain."""

_INFLATION = 2.0
"""Assumed inflation of the bounds of a run, before it is known."""

_BYTES, _MOST_BYTES = 2**26, 2**28
"""Most bytes of a pool for the decisions of long chains, and of one for those of usual chains."""

_BEYOND = 4.0
"""The largest radius, relative to that for rows in memory; a point beyond it takes a pass."""

_LONG = 2.0
"""Minutes of bounding all rows above which a message is logged."""

_TIMED = 2_000
"""Rows of the sample that are bounded again to measure the time, before the whole sample is."""

_FEWEST_DECISIONS = 100
_MOST_WHOLE = 100_000
"""Most rows of groups that are stored whole because all of them may have to be read."""
_WIDE = 2.0
"""Factor by which points may be farther from the anchor than usual before that takes a pass."""


class PoolOfSample(NamedTuple):
    """Estimates for exact decisions from a sample of the rows.

    Attributes
    ----------
    bounds : BoundsOfRows
    grid : Grid
        The grid that costs least.
    pairs : list of Pair
        Whitened points of typical decisions.
    expected_rows : float
        Rows that decisions are expected to read.
    """

    bounds: BoundsOfRows
    grid: Grid
    pairs: list[Pair]
    expected_rows: float


def pool_of_sample(
    problem: Problem, residuals: Residuals, anchor: Anchor, *, only_cheap: bool
) -> PoolOfSample:
    """Bound and group a sample of the rows.

    Parameters
    ----------
    problem : Problem
        What to sample.
    residuals : Residuals
        Row differences minus their expansion of second order about the anchor.
    anchor : Anchor
    only_cheap : bool
        Whether to refuse bounds that take long to compute.

    Raises
    ------
    NotExactError
        The message says why exact decisions are not possible, or that bounds take long to compute.
    """
    rows, rng = problem.prepared.from_sources, problem.prepared.rng
    assert rows is not None and rows.sample is not None
    sample = rows.sample.window(0, rows.sample.n_rows)
    designs = design_function(structure_of(problem, residuals), problem.model)
    if only_cheap:
        refuse_slow_bounds(problem, sample, rows.n_rows)
    radii = radii_for(anchor.point.size)
    radii = np.append(radii, _BEYOND * radii[-1])
    usual = float(np.nanmedian(designs(sample)[0].eta(anchor.point)))
    cells = CellBounds(problem.scalar_function, usual)
    bounds = BoundsOfRows(designs, problem.scalar_function, anchor, radii, cells)
    pairs = normal_pairs(anchor.point.size, rng)
    grid, expected = _grid(bounds, sample, pairs, rows.n_rows, rng)
    return PoolOfSample(bounds, grid, pairs, expected)


def pooled_sampling(
    problem: Problem,
    residuals: Residuals,
    anchor: Anchor,
    known: PoolOfSample,
    *,
    steps_per_draw: int,
    say: Say,
) -> PooledSampling:
    """Bound and group the rows in one pass, and draw a pool from the groups in another.

    Parameters
    ----------
    problem, residuals, anchor
        As for `pool_of_sample`.
    known : PoolOfSample
        Estimates from a sample.
    steps_per_draw : int
        Decisions per draw.
    say : callable
        Shows which stage begins.

    Raises
    ------
    NotExactError
        The message says why exact decisions are not possible.
    """
    rows, rng = problem.prepared.from_sources, problem.prepared.rng
    assert rows is not None
    pairs = known.pairs
    say(f"bounding {rows.n_rows:,} rows")
    groups, everywhere = counted(rows, known.bounds, known.grid, residuals.block_of)
    say("drawing rows for the chains")
    pool = _pool(groups, everywhere, pairs, steps_per_draw, int(rng.integers(2**63)))
    sampling = PooledSampling(
        residuals.function,
        pool.stored.rows,
        pool.stored.numbers,
        anchor.point,
        np.ascontiguousarray(anchor.inverse_root),
        groups,
        pool=pool,
        everywhere=everywhere,
    )
    sampling = checked(sampling, anchor, problem, _groups_stored(pool, groups))
    return inflated(sampling, anchor, problem, pairs)


# ------------------------------------------------------------------ the grid


def _grid(
    bounds: BoundsOfRows,
    sample: Sequence[NDArray],
    pairs: Sequence[Pair],
    n_rows: int,
    rng: np.random.Generator,
) -> tuple[Grid, float]:
    """The grid that costs least on a sample that represents all rows, and the rows it reads."""
    try:
        constants, rows = bounds.of(sample)
    except NoBoundError as error:
        raise NotExactError(f"its rows have {error}") from None
    minutes = _minutes(bounds, sample, n_rows)
    if minutes > _LONG:
        _log.info(f"Bounds of {n_rows:,} rows of this model take about {minutes:,.0f} minutes.")
    usual = constants[len(bounds.radii) // 2]
    finite = usual[np.isfinite(usual)]
    top, each = max(float(finite.max(initial=0.0)), np.finfo(float).tiny), n_rows / usual.size
    size = bounds.anchor.point.size
    nowhere = any_direction(usual.size, size) if rows.is_single else None
    groups = group_rows(constants, bounds.radii, nowhere)[1]
    expected = each * expected_rows(groups, pairs)
    if nowhere is None:
        return Grid(bounds.radii, top, None, by_direction=False), expected
    best = Grid(bounds.radii, top, nowhere.vectors, by_direction=False)
    least = expected + ROWS_OF_A_GROUP * groups.n_groups
    weights = np.where(np.isfinite(usual), usual, 0.0)
    for n in DIRECTIONS if least > FEW_ROWS else ():
        found = nearest_directions(rows.gradients(), weights, n, rng)
        groups = group_rows(constants, bounds.radii, found)[1]
        read = each * expected_rows(groups, pairs)
        cost = read + ROWS_OF_A_GROUP * groups.n_groups
        if cost > least:
            break
        best, least = Grid(bounds.radii, top, found.vectors, by_direction=True), cost
        expected = read
    return best, expected


def _minutes(bounds: BoundsOfRows, sample: Sequence[NDArray], n_rows: int) -> float:
    """Expected minutes of two passes that bound all rows, once the tables exist.

    A part of the time does not depend on the number of rows, so the whole sample, which is about
    as large as a block of a pass, is bounded again if a few rows seem to take long.
    """
    minutes = math.inf
    for n in (_TIMED, len(sample[0])):
        some = [array[:n] for array in sample]
        started = time.perf_counter()
        bounds.or_none(some, (0, len(bounds.radii) // 2))
        each = (time.perf_counter() - started) / len(some[0])
        minutes = 2.0 * each * n_rows / usual_threads() / 60.0
        if minutes <= _LONG:
            break
    return minutes


# ------------------------------------------------------------------ the pool


def _pool(
    groups: Groups,
    everywhere: GroupedSources,
    pairs: Sequence[Pair],
    steps_per_draw: int,
    seed: int,
) -> Pool:
    """Store some groups whole, and draws from the others for set-up and some chains; one pass."""
    sizes = np.diff(groups.starts)
    whole, lengths, n_parts = pool_lengths(groups, pairs, steps_per_draw, _bytes_of_row(everywhere))
    places = np.full(sizes.size, -1)
    own = sizes[whole]
    places[whole] = np.cumsum(own) - own
    groups_of, ranks = [np.repeat(np.flatnonzero(whole), own)], [_counted(own)]
    for part in range(n_parts):
        drawn = everywhere.drawn(lengths, (seed, part, 0))
        groups_of.append(drawn[0])
        ranks.append(drawn[1])
    stored: StoredDraws = everywhere.stored(np.concatenate(groups_of), np.concatenate(ranks))
    return Pool(stored, places, lengths, n_parts, seed)


class PoolLengths(NamedTuple):
    """How many rows of each of G groups a pool has.

    Attributes
    ----------
    whole : bool array, shape (G,)
        Whether all rows of a group are in the pool.
    drawn : int array, shape (G,)
        Draws from each group in a part; 0 for groups that are stored whole.
    n_parts : int
        Number of parts: one for set-up, and one for each of some chains.
    """

    whole: NDArray[np.bool_]
    drawn: NDArray[np.int64]
    n_parts: int

    def n_rows(self, groups: Groups) -> int:
        """Rows in the pool."""
        sizes = np.diff(groups.starts)
        return int(sizes[self.whole].sum()) + self.n_parts * int(self.drawn.sum())


def pool_lengths(
    groups: Groups, pairs: Sequence[Pair], steps_per_draw: int, n_bytes_of_row: int
) -> PoolLengths:
    """Rows for as many decisions as fit into the memory of a pool.

    Raises
    ------
    NotExactError
        Decisions would read too many rows.
    """
    sizes, n_parts = np.diff(groups.starts), 1 + _CHAINS
    rates, largest = _rates(groups, pairs)
    n_decisions, usual = _MOST_DECISIONS * steps_per_draw, _DECISIONS * steps_per_draw
    is_whole = _may_be_loose(largest, sizes)
    while True:
        lengths = np.ceil(n_decisions * rates + 5.0 * np.sqrt(n_decisions * rates) + 3.0)
        lengths = lengths.astype(np.int64)
        whole = is_whole | (sizes <= n_parts * lengths)
        lengths[whole] = 0
        found = PoolLengths(whole, lengths, n_parts)
        n_bytes = found.n_rows(groups) * n_bytes_of_row
        if n_bytes <= (_BYTES if n_decisions > usual else _MOST_BYTES):
            return found
        n_decisions //= 2
        if n_decisions < _FEWEST_DECISIONS:
            raise NotExactError(
                f"decisions are expected to read {float(rates.sum()):,.0f} rows, more than can "
                "be drawn beforehand"
            )


def _rates(
    groups: Groups, pairs: Sequence[Pair]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Expected candidates of each group per decision, and its largest bound far from the anchor."""
    sizes = np.diff(groups.starts)
    rates, largest = np.zeros(sizes.size), np.zeros(sizes.size)
    for u, v in pairs:
        _, bounds, _ = rates_of(u, v, _INFLATION, groups)
        rates += sizes * np.where(np.isfinite(bounds), bounds, 1.0) / len(pairs)
        _, bounds, _ = rates_of(_WIDE * u, _WIDE * v, _INFLATION, groups)
        largest = np.maximum(largest, bounds)
    return rates, largest


def _may_be_loose(largest: NDArray[np.float64], sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Groups whose bound may exceed 1, from the smallest up, as long as they have few rows."""
    order = np.lexsort([sizes, ~np.isinf(largest)])
    fits = np.cumsum(sizes[order]) <= _MOST_WHOLE
    chosen = np.zeros(sizes.size, dtype=bool)
    chosen[order[fits]] = True
    return chosen & np.isinf(largest)


def _bytes_of_row(everywhere: GroupedSources) -> int:
    block = everywhere.block_of(everywhere.rows.window(0, 1))
    return 8 + sum(array.nbytes for array in block)


def _counted(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count 0, 1, ... within each group."""
    return np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _groups_stored(pool: Pool, groups: Groups) -> NDArray[np.int64]:
    """The group of each row that is stored with a whole group or in the first part."""
    whole = np.flatnonzero(pool.whole >= 0)
    sizes = np.diff(groups.starts)
    drawn = np.repeat(np.arange(sizes.size), pool.lengths)
    return np.concatenate([np.repeat(whole, sizes[whole]), drawn])
