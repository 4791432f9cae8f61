"""The plan of exact decisions: bounds of the rows about the anchor, and rows stored by them."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import Anchor
from pymc_austerity.deciding.poisson import PoissonSampling, RowBoundError
from pymc_austerity.exact import (
    Directions,
    Grid,
    GridTotals,
    Groups,
    Inflation,
    RowsOfCells,
    expected_rows,
    group_rows,
    nearest_directions,
    rows_of_pairs,
)
from pymc_austerity.model import DesignFunction, RowStructure, design_function
from pymc_austerity.model.bounds import (
    CellBounds,
    NoBoundError,
    ScalarFunction,
    are_cheap,
    third_derivative_constants,
)
from pymc_austerity.rows import (
    LARGEST_BLOCK,
    ArrayRows,
    Block,
    ReorderedRows,
    SharedRows,
    StoredRows,
    in_order,
)
from pymc_austerity.setup.checked_bounds import NotExactError, checked
from pymc_austerity.setup.plans import About
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.row_functions import Residuals
from pymc_austerity.setup.source_rows import Labeled, SourceRows
from pymc_austerity.setup.whitened import WhitenedRows, whitened_block, whitened_rows
from pymc_austerity.sources import usual_threads

_log = logging.getLogger("pymc.austerity")

_Pair: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]

_PAIRS = 16
_TRIALS = 150
_DIRECTIONS = (8, 32, 128)
_FEW_ROWS = 50.0
"""Expected rows of a decision below which a search for directions of the data does not pay."""

_ROWS_OF_A_GROUP = 0.05
"""Rows that are evaluated in the time that a group takes at every decision."""

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
    structure = _structure_of(problem, about.residuals)
    bounds = _BoundsOfRows(
        design_function(structure, problem.model),
        problem.scalar_function,
        about.anchor,
        _radii_for(about.anchor.point.size),
        partial(_whitened_pairs, about),
    )
    if isinstance(rows, SourceRows):
        return _of_sources(about, rows, bounds, only_cheap=only_cheap, refuse=refuse)
    by_directions = not only_cheap or _pays_by_directions(about, bounds, refuse)
    grouped, pairs = bounds.of_all(problem.likelihood.arrays).grouped(
        problem.prepared.rng, by_directions=by_directions
    )
    order = in_order(grouped.labels)
    numbers, residuals = ArrayRows([order]), ReorderedRows(ArrayRows(about.residuals.arrays), order)
    return _sampling(about, residuals, numbers, grouped.groups, pairs)


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


def _sampling(
    about: About,
    source: ReorderedRows | StoredRows,
    numbers: ArrayRows | StoredRows,
    groups: Groups,
    pairs: Sequence[_Pair],
) -> PoissonSampling:
    anchor, problem = about.anchor, about.problem
    inverse_root = np.ascontiguousarray(anchor.inverse_root)
    function = about.residuals.function
    sampling = PoissonSampling(function, source, numbers, anchor.point, inverse_root, groups)
    return _inflated(checked(sampling, anchor, problem), anchor, problem, pairs)


def _pays_by_directions(
    about: About, bounds: "_BoundsOfRows", refuse: Callable[[float], None]
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
    bounds: "_BoundsOfRows",
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
    usual = float(np.nanmedian(bounds.designs(sample)[0].eta(about.anchor.point)))
    bounds = replace(bounds, cells=CellBounds(problem.scalar_function, usual))
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


def _say_if_long(bounds: "_BoundsOfRows", sample: Sequence[NDArray], n_rows: int) -> None:
    minutes = _minutes(bounds, sample, n_rows)
    if minutes > _LONG:
        _log.info(f"Bounds of {n_rows:,} rows of this model take about {minutes:,.0f} minutes.")


def _minutes(bounds: "_BoundsOfRows", sample: Sequence[NDArray], n_rows: int) -> float:
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


def _structure_of(problem: Problem, residuals: Residuals) -> RowStructure:
    """The linear predictors of the rows, or the reason why there are no exact decisions."""
    structure = problem.structure
    if isinstance(structure, str):
        raise NotExactError(f"the rows have no linear predictors: {structure}")
    if not residuals.is_double:
        raise NotExactError("the rows are evaluated in single precision")
    return structure


def _whitened_pairs(about: About) -> list[_Pair]:
    center, root = about.anchor.point, about.anchor.inverse_root
    return [(root @ (a - center), root @ (b - center)) for a, b in about.pilot_pairs(_PAIRS)]


def _radii_for(size: int) -> NDArray[np.float64]:
    """A few radii about the anchor: for a few directions, most draws, nearly all, and beyond.

    Whitened draws of the posterior lie at a distance of about the square root of the dimension.
    """
    usual = math.sqrt(size)
    return np.unique([min(3.0, usual + 1.0), usual + 1.0, usual + 3.0, 3.0 * (usual + 3.0)])


@dataclass(frozen=True, eq=False)
class _BoundsOfRows:
    """Bounds of any rows about an anchor.

    Attributes
    ----------
    designs : callable
        Evaluates the predictors.
    function : ScalarFunction
        Of the predictors.
    anchor : Anchor
    radii : float array, shape (R,)
    pairs : callable
        Makes whitened points between which there are decisions.
    cells : CellBounds or None
        For rows that come in several blocks: filled as these need them.
    """

    designs: DesignFunction
    function: ScalarFunction
    anchor: Anchor
    radii: NDArray[np.float64]
    pairs: Callable[[], list[_Pair]]
    cells: CellBounds | None = None

    def of_all(self, arrays: Sequence[NDArray], n_rows: int | None = None) -> "_BoundedRows":
        """Rows that are there, all of them or a sample of `n_rows`.

        Raises
        ------
        NotExactError
            Most of them have no bound.
        """
        rows = whitened_rows(self.designs, arrays, self.anchor)
        try:
            constants = self._constants(arrays, rows)
        except NoBoundError as error:
            raise NotExactError(f"the rows have {error}") from None
        each = (n_rows or len(rows.center)) / len(rows.center)
        return _BoundedRows(rows, self.radii, constants, self.anchor.point.size, self.pairs, each)

    def of_any(self, block: Sequence[NDArray]) -> tuple[NDArray[np.float64], WhitenedRows]:
        """Constants of the rows of a block, shape (R, m), and their whitened predictors.

        Constants are infinite if most of the rows have no bound.
        """
        rows = whitened_block(self.designs, block, self.anchor)
        try:
            return self._constants(block, rows), rows
        except NoBoundError:
            return np.full((self.radii.size, len(block[0])), np.inf), rows

    def _constants(self, block: Sequence[NDArray], rows: WhitenedRows) -> NDArray[np.float64]:
        known = (self.function, block, rows.center, rows.gram, self.radii.tolist())
        return third_derivative_constants(*known, cells=self.cells)


# ------------------------------------------------------------------ groups


class _Grouped(NamedTuple):
    """Rows in groups, and how many of all rows decisions are expected to read."""

    grid: Grid
    directions: Directions | None
    labels: NDArray[np.int32]
    groups: Groups
    expected_rows: float

    @property
    def cost(self) -> float:
        """In rows."""
        return self.expected_rows + _ROWS_OF_A_GROUP * self.groups.n_groups


@dataclass(frozen=True, eq=False)
class _BoundedRows:
    """Rows and their bounds.

    Attributes
    ----------
    rows : WhitenedRows
    radii : float array, shape (R,)
    constants : float array, shape (R, n)
    size : int
        Dimension of the posterior.
    pairs : callable
        Makes whitened points between which there are decisions.
    each : float
        Rows of the data that each of these represents.
    """

    rows: WhitenedRows
    radii: NDArray[np.float64]
    constants: NDArray[np.float64]
    size: int
    pairs: Callable[[], list[_Pair]]
    each: float

    def cost(self, rng: np.random.Generator, *, by_directions: bool) -> float:
        """Rows that decisions are expected to read."""
        found = self._directions(_DIRECTIONS[1], rng) if by_directions else None
        return self._grouped(found, self.pairs()).expected_rows

    def grouped(
        self, rng: np.random.Generator, *, by_directions: bool = True
    ) -> tuple[_Grouped, list[_Pair]]:
        """Groups by constants, and by directions too where the rows saved outweigh more groups."""
        pairs = self.pairs()
        best = self._grouped(None, pairs)
        if by_directions and self.rows.is_single and best.cost > _FEW_ROWS:
            for n in _DIRECTIONS:
                found = self._grouped(self._directions(n, rng), pairs)
                if found.cost > best.cost:
                    break
                best = found
        return best, pairs

    def _directions(self, n_directions: int, rng: np.random.Generator) -> Directions:
        usual = self.constants[len(self.radii) // 2]
        weights = np.where(np.isfinite(usual), usual, 0.0)
        return nearest_directions(self.rows.gradients(), weights, n_directions, rng)

    def _grouped(self, directions: Directions | None, pairs: Sequence[_Pair]) -> _Grouped:
        vectors = np.eye(1, self.size) if self.rows.is_single else None
        if directions is not None:
            vectors = directions.vectors
        grid = Grid.of(self.constants, self.radii, vectors, by_direction=directions is not None)
        labels, groups = group_rows(self.constants, grid, directions)
        return _Grouped(grid, directions, labels, groups, self.each * expected_rows(groups, pairs))


def _inflated(
    sampling: PoissonSampling, anchor: Anchor, problem: Problem, pairs: Sequence[_Pair]
) -> PoissonSampling:
    """The same sampling with the inflation of a short run, and the rows that decisions then read.

    The run makes independent proposals, as if the priors were normal.

    Raises
    ------
    NotExactError
        A row changed by more than its bound.
    """
    known, rng = Inflation.begin(sampling.inflation), problem.prepared.rng
    current = anchor.point.astype(problem.start.dtype)
    try:
        for _ in range(_TRIALS):
            proposed = anchor.draw(rng).astype(current.dtype)
            made = sampling.decide(proposed, current, 0.0, known.value, rng)
            known = known.after(made.ratios, made.n_rows_used, made.log_ratio)
            current = proposed if made.accept else current
    except RowBoundError as error:
        raise NotExactError(str(error)) from None
    rows = rows_of_pairs(sampling.groups, pairs, inflation=known.value)
    mean, median = float(rows.mean()), float(np.median(rows))
    return replace(sampling, inflation=known.value, expected_rows=mean, typical_rows=median)
