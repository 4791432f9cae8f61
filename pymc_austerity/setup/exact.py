"""The plan of exact decisions: bounds of the rows about the anchor, and rows stored by them."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import Anchor
from pymc_austerity.deciding.exact import PoissonSampling, RowBoundError, StoredResiduals
from pymc_austerity.exact import (
    RELATIVE,
    GridTotals,
    Groups,
    Inflation,
    RowsOfCells,
    measured_rounding,
    rates_of,
    rows_of_pairs,
)
from pymc_austerity.model import Kernel, design_function
from pymc_austerity.model.bounds import are_cheap
from pymc_austerity.rows import (
    LARGEST_BLOCK,
    ArrayRows,
    Block,
    ReorderedRows,
    SharedRows,
    StoredRows,
    in_order,
)
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.row_bounds import BoundsOfRows, NotExactError, Pair
from pymc_austerity.setup.row_functions import Residuals
from pymc_austerity.setup.source_rows import Labeled, SourceRows
from pymc_austerity.setup.target import About
from pymc_austerity.sources import usual_threads

_log = logging.getLogger("pymc.austerity")

_TRIALS = 150
_PAIRS_TO_CHECK, _MOST_TO_CHECK = 3, 100_000
_RUN = 500
"""Rows of a store that are checked together: single ones would bring all of it into memory."""
_GROSS = 1e-6
"""Excess over a bound, nats, that is too large to be rounding of rows of ordinary size."""

_SOME_ROWS = 5_000
MOST_ROWS = 500.0
"""Expected rows of a decision above which a sequential test is cheaper."""
_MOST_BY_DIRECTIONS = 4.0
"""Multiple of `MOST_ROWS` above which even directions do not help."""
_WORTH_WHILE = 2.0
"""Factor by which directions must reduce the expected rows to be used by default."""

_BLOCK = 2 * LARGEST_BLOCK
"""Rows in sources that are bounded together."""

_LONG = 2.0
"""Minutes of bounding all rows above which a message is logged."""
_TIMED = 2_000
"""Rows of the sample that are bounded again to measure the time, before the whole sample is."""


def exact_sampling(
    about: About, *, only_cheap: bool, refuse: Callable[[float], None]
) -> PoissonSampling:
    """Bound the rows about the anchor, and group them by their bounds.

    Rows in memory are not stored yet; those in sources are, in the pass that bounds them.

    Parameters
    ----------
    about : About
        Row differences minus their expansion of second order about the anchor.
    only_cheap : bool
        Whether to refuse bounds and decisions that cost much.
    refuse : callable
        Receives the number of rows that decisions are expected to read, estimated on a sample of
        the rows, before others are bounded; raises a NotExactError if they are too many.

    Raises
    ------
    NotExactError
        The message says why exact decisions are not possible, or what they would cost.
    """
    problem, rows = about.problem, about.problem.prepared.rows
    bounds = bounds_of(about)
    if isinstance(rows, SourceRows):
        return _of_sources(about, rows, bounds, only_cheap=only_cheap, refuse=refuse)
    arrays = problem.likelihood.arrays
    apart = -(-problem.likelihood.n_rows // _SOME_ROWS)
    bounds = bounds.with_cells([array[::apart] for array in arrays])
    by_directions = not only_cheap or _pays_by_directions(about, bounds, refuse)
    grouped, pairs = bounds.of_all(arrays).grouped(
        problem.prepared.rng, by_directions=by_directions
    )
    return sampling_in_memory(about, grouped.groups, in_order(grouped.labels), pairs)


def with_stored_rows(sampling: PoissonSampling, residuals: Residuals) -> PoissonSampling:
    """The same sampling with its rows stored for all processes."""
    if isinstance(sampling.source, StoredRows):
        return sampling
    (order,) = sampling.numbers.window(0, sampling.groups.n_rows)
    return replace(
        sampling,
        source=SharedRows(residuals.arrays, order),
        numbers=SharedRows([order]),
    )


def sampling_in_memory(
    about: About, groups: Groups, order: NDArray[np.intp], pairs: Sequence[Pair]
) -> PoissonSampling:
    """Exact decisions about rows in memory, checked and inflated; the rows are not stored yet.

    Parameters
    ----------
    about : About
        The expansion about which the rows are bounded.
    groups : Groups
    order : int array, shape (n,)
        Numbers of the rows, group by group.
    pairs : list of pairs of arrays
        Whitened points between which there are decisions.

    Raises
    ------
    NotExactError
        A row changes by more than its bound.
    """
    rows = ReorderedRows(ArrayRows(about.residuals.arrays), order)
    return _sampling(about, rows, ArrayRows([order]), groups, pairs)


def _sampling(
    about: About,
    source: ReorderedRows | StoredRows,
    numbers: ArrayRows | StoredRows,
    groups: Groups,
    pairs: Sequence[Pair],
) -> PoissonSampling:
    anchor, problem = about.anchor, about.problem
    inverse_root = np.ascontiguousarray(anchor.inverse_root)
    function = about.residuals.function
    sampling = PoissonSampling(function, source, numbers, anchor.point, inverse_root, groups)
    return _inflated(checked(sampling, anchor, problem), anchor, problem, pairs)


def _pays_by_directions(
    about: About, bounds: BoundsOfRows, refuse: Callable[[float], None]
) -> bool:
    """Whether a search for directions saves rows of decisions, estimated on a few rows."""
    problem, arrays = about.problem, about.problem.likelihood.arrays
    n_rows, rng = problem.likelihood.n_rows, problem.prepared.rng
    _refuse_slow_bounds(problem, arrays, n_rows)
    if n_rows <= _SOME_ROWS:
        return True
    chosen = np.sort(rng.choice(n_rows, _SOME_ROWS, replace=False))
    some = bounds.of_all([array[chosen] for array in arrays], n_rows)
    plain = cost = some.cost(rng, by_directions=False)
    if some.rows.is_single and plain < _MOST_BY_DIRECTIONS * MOST_ROWS:
        cost = min(plain, some.cost(rng, by_directions=True))
    refuse(cost)
    return plain > _WORTH_WHILE * cost


def _refuse_slow_bounds(problem: Problem, arrays: Sequence[NDArray], n_rows: int) -> None:
    if not are_cheap(problem.scalar_function, arrays, n_rows):
        raise NotExactError("their bounds take long to compute (test='exact' computes them)")


# ------------------------------------------------------------------ rows in sources


def _of_sources(
    about: About,
    rows: SourceRows,
    bounds: BoundsOfRows,
    *,
    only_cheap: bool,
    refuse: Callable[[float], None],
) -> PoissonSampling:
    """Choose the grid on a sample; then bound all rows, and store them cell by cell: one pass."""
    assert rows.sample is not None
    problem, rng, block_of = about.problem, about.problem.prepared.rng, about.residuals.block_of
    sample = rows.sample.window(0, rows.sample.n_rows)
    if only_cheap:
        _refuse_slow_bounds(problem, sample, rows.n_rows)
    bounds = bounds.with_cells(sample)
    some = bounds.of_all(sample, rows.n_rows)
    grouped, pairs = some.grouped(rng)
    refuse(grouped.expected_rows)
    _say_if_long(bounds, sample, rows.n_rows)
    about.say(f"bounding and storing {rows.n_rows:,} rows")
    grid, totals = grouped.grid, GridTotals(grouped.grid)

    def labeled(first: int, block: Block) -> tuple[RowsOfCells, Labeled]:
        constants, whitened = bounds.of_any(block)
        directions = grid.directions(whitened.gradients)
        cells = grid.cells_of(constants[grid.usual], directions)
        data = (*block_of(block), rows.numbers(first, cells.size))
        return grid.rows_of_cells(constants, directions), (cells, data)

    def all_labeled() -> Iterator[Labeled]:
        for own, found in rows.mapped_with_numbers(labeled, _BLOCK, here=True):
            totals.add(own)
            yield found

    of_sample = grid.cells_of(some.constants[grid.usual], grouped.directions)
    shares = np.bincount(of_sample, minlength=grid.n_cells) / of_sample.size

    source, _ = rows.stored(all_labeled(), shares, rng)
    return _sampling(about, source, source.split(source.n_arrays - 1), totals.groups(), pairs)


def _say_if_long(bounds: BoundsOfRows, sample: Sequence[NDArray], n_rows: int) -> None:
    minutes = _minutes(bounds, sample, n_rows)
    if minutes > _LONG:
        _log.info(f"Bounds of {n_rows:,} rows of this model take about {minutes:,.0f} minutes.")


def _minutes(bounds: BoundsOfRows, sample: Sequence[NDArray], n_rows: int) -> float:
    """Expected minutes of a pass that bounds all rows, once the tables exist.

    A part of the time does not depend on the number of rows, so the whole sample, which is about
    as large as a block of a pass, is bounded again if a few rows seem to take long.
    """
    minutes = math.inf
    for n in (_TIMED, len(sample[0])):
        some = [array[:n] for array in sample]
        started = time.perf_counter()
        bounds.of_any(some)
        each = (time.perf_counter() - started) / len(some[0])
        minutes = each * n_rows / usual_threads() / 60.0
        if minutes <= _LONG:
            break
    return minutes


# ------------------------------------------------------------------ bounds


def bounds_of(about: About) -> BoundsOfRows:
    """Bounds of rows about an anchor.

    Raises
    ------
    NotExactError
        The reason why there are none.
    """
    problem, structure = about.problem, about.problem.structure
    if isinstance(structure, str):
        raise NotExactError(f"the rows have no linear predictors: {structure}")
    if not isinstance(about.residuals.function, Kernel) and problem.start.dtype != np.float64:
        raise NotExactError("the rows are evaluated in single precision")
    designs = design_function(structure, problem.model)
    return BoundsOfRows(about, designs, problem.scalar_function)


def checked(sampling: PoissonSampling, anchor: Anchor, problem: Problem) -> PoissonSampling:
    """The same sampling with its rounding measured, if no row changes by more than its bound.

    Decisions check only the rows that they draw, and rows with small or zero bounds are hardly
    ever drawn.

    Parameters
    ----------
    sampling, anchor, problem
        What is sampled.

    Raises
    ------
    NotExactError
        A row changes by more than its bound.
    """
    groups, rng = sampling.groups, np.random.default_rng(5)
    if groups.n_rows <= _MOST_TO_CHECK:
        rows = np.arange(groups.n_rows)
    elif isinstance(sampling.source, StoredRows):  # in random order within each group
        starts = np.linspace(0, groups.n_rows - _RUN, _MOST_TO_CHECK // _RUN).astype(np.int64)
        rows = (starts[:, None] + np.arange(_RUN)).ravel()
    else:
        rows = np.sort(rng.choice(groups.n_rows, _MOST_TO_CHECK, replace=False))
    owners = np.searchsorted(groups.starts, rows, side="right") - 1
    residuals = StoredResiduals(sampling.function, sampling.source)
    rounding, worst = groups.rounding, -np.inf
    for _ in range(_PAIRS_TO_CHECK):
        new, old = (anchor.draw(rng).astype(problem.start.dtype) for _ in range(2))
        its = rates_of(sampling.whitened(old), sampling.whitened(new), 1.0, groups)
        own = its.bounds[owners]
        drawn, own = rows[np.isfinite(own)], own[np.isfinite(own)]
        of_drawn, start = partial(residuals, rows=drawn), old.astype(np.float64)
        rounding = max(rounding, measured_rounding(of_drawn, start, new - start))
        excess = abs(residuals(new, old, drawn)) - own * (1.0 + RELATIVE)
        worst = max(worst, float(excess.max(initial=-np.inf, where=~np.isnan(excess))))
    if worst > max(_GROSS, rounding):
        raise NotExactError(f"a row changes by {worst:.2g} nats more than its bound")
    return replace(sampling, groups=replace(groups, rounding=rounding))


def _inflated(
    sampling: PoissonSampling, anchor: Anchor, problem: Problem, pairs: Sequence[Pair]
) -> PoissonSampling:
    """The same sampling with the inflation of a short run, and the rows that decisions then read.

    The run makes independent proposals, as if the priors were normal.

    Raises
    ------
    NotExactError
        A row changed by more than its bound.
    """
    known, rng = Inflation.begin(sampling.inflation), problem.prepared.rng
    current, n_accepted = anchor.point.astype(problem.start.dtype), 0
    try:
        for _ in range(_TRIALS):
            proposed = anchor.draw(rng).astype(current.dtype)
            made = sampling.decide(proposed, current, 0.0, known.value, rng)
            known = known.after(made.ratios, made.n_rows_used, made.log_ratio)
            current = proposed if made.accept else current
            n_accepted += made.accept
    except RowBoundError as error:
        raise NotExactError(str(error)) from None
    rows = rows_of_pairs(sampling.groups, pairs, inflation=known.value)
    return replace(
        sampling,
        inflation=known.value,
        expected_rows=float(rows.mean()),
        typical_rows=float(np.median(rows)),
        accepted=n_accepted / _TRIALS,
    )
