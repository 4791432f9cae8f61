"""From a model to the moves of its levels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import underivable
from pymc_austerity.compiled import SequentialSettings
from pymc_austerity.deciding.exact import StoredResiduals, rows_named
from pymc_austerity.errors import warn_user
from pymc_austerity.levels import (
    FreeMean,
    GroupedPosterior,
    Pilot,
    ResidualsOfRows,
    SparseExpansion,
    Sweep,
    pilot_sweeps,
    shares_of_sweeps,
)
from pymc_austerity.model import (
    Blocks,
    Kernel,
    NotByLevelError,
    PredictorDerivatives,
    level_terms,
    partial_row_free,
)
from pymc_austerity.rows import Store
from pymc_austerity.setup.compiled_target import KernelOnRows
from pymc_austerity.setup.control_variates import several_modes
from pymc_austerity.setup.coordinates import Coordinates, grouped_problem
from pymc_austerity.setup.levels.anchor import (
    LevelAnchor,
    NoGroupsError,
    anchor_at,
    find_level_anchor,
)
from pymc_austerity.setup.levels.blocks import (
    common_normal,
    prior_only_entries,
    remainder_of_expansion,
)
from pymc_austerity.setup.levels.directions import joint_block, ridges
from pymc_austerity.setup.levels.factors import (
    factors_of,
    free_means,
    have_bounds,
    rounding_of,
)
from pymc_austerity.setup.levels.grouped_model import (
    GroupedModel,
    row_free_difference_by_levels,
    stored_by_level,
)
from pymc_austerity.setup.levels.invariances import (
    exchange_of,
    nested_levels,
    reflected_mode,
    unread_directions,
)
from pymc_austerity.setup.prepared import PreparedModel
from pymc_austerity.setup.problem import Problem, pose
from pymc_austerity.setup.row_functions import ExpandedRows, expanded_rows
from pymc_austerity.setup.setup_progress import Say, collection_paused
from pymc_austerity.setup.support import is_unconstrained
from pymc_austerity.setup.surrogate_anchor import conditionally_normal

_FEWEST_LEVELS = 3
"""Fewest levels of the largest factor."""

_WELL_ACCEPTED = 0.7
"""Share of the draws of levels that are accepted below which another expansion is worth its time:
modes of products of levels are far from where these are."""

_PASSES = 200
"""Times that all rows may be read to find out where."""

_MANY_LEVELS, _MANY_ENTRIES = 30, 200
"""Levels, and entries of all levels: with fewer, moves of everything at once are likely to take
less time."""

MOST_AT_ONCE, _MANY_ROWS = 300, 50_000
"""Dimensions up to which such moves are possible; rows above which not all should be read at every
step."""


class NoFactorError(NoGroupsError):
    """There are no groups."""


class OthersAreBetterError(NoGroupsError):
    """There are groups, and moves of everything at once are likely to be faster."""


@dataclass(frozen=True, eq=False)
class GroupedTarget:
    """The moves of a model with groups, and what was found on the way.

    Attributes
    ----------
    sweep : Sweep
    source : SharedRows or StoredRows
        The rows, sorted by the levels of the first factor.
    numbers : SharedRows or StoredRows
        Their numbers in the user's data.
    coordinates : Coordinates
        From the user's points to those that the sweep moves.
    reads_all : str
        Why all rows of a level are read at every decision; empty if few are.
    compiled_as : str
        How rows are evaluated, as the end of a sentence.
    pilot : Pilot
        What a few sweeps without tests showed.
    """

    sweep: Sweep
    source: Store
    numbers: Store
    coordinates: Coordinates
    reads_all: str
    compiled_as: str
    pilot: Pilot

    @property
    def sequential(self) -> SequentialSettings:
        """Settings of sequential tests; without tests where every decision is exact."""
        return self.sweep.posterior.sequential

    def with_tests(self, settings: SequentialSettings) -> "GroupedTarget":
        """The same with sequential tests, if rows have no bounds."""
        if not self.reads_all:
            return self
        posterior = replace(self.sweep.posterior, sequential=settings)
        return replace(self, sweep=replace(self.sweep, posterior=posterior))


@collection_paused()
def build_grouped(
    problem: Problem,
    coordinates: Coordinates,
    say: Say = str,
    *,
    only_where_best: bool = False,
) -> GroupedTarget:
    """Find the blocks, expand the rows, bound them by level, and store them.

    Parameters
    ----------
    problem, coordinates
        As from `grouped_problem`.
    say : callable
        Shows which stage begins.
    only_where_best : bool
        Whether to refuse models for which moves of everything at once are likely to be faster.

    Raises
    ------
    NoGroupsError
        The message says why there are no moves of levels.
    """
    blocks = _blocks(problem, coordinates)
    means = free_means(blocks, coordinates)
    if only_where_best:
        _refuse_where_others_are_better(problem, blocks, coordinates)
    say("compiling")
    try:
        expanded = expanded_rows(problem, 2)
    except underivable:
        raise NoGroupsError("an operation of the model has no derivative") from None
    if not isinstance(expanded.derivatives, PredictorDerivatives):
        raise NoGroupsError("its rows are evaluated as a whole")
    say("storing the rows")
    parts, levels, numbers = _parts(problem, blocks, expanded.derivatives)
    say("finding the mode of the levels")
    anchor = find_level_anchor(parts, problem.start)
    say("bounding the rows")
    sweep, reads_all, compiled_as = _moves(parts, anchor, expanded, levels, means)
    _warn_of_signs(parts, anchor, sweep.posterior)
    say("trying sweeps")
    with rows_named(numbers):
        pilot = pilot_sweeps(sweep)
        if pilot.accepted < _WELL_ACCEPTED and not pilot.is_long:
            pilot = pilot_sweeps(sweep, _PASSES * parts.rows.n_rows)
    if pilot.accepted < _WELL_ACCEPTED and pilot.is_long:
        say("expanding the rows about their mean")
        try:
            mean = anchor_at(parts, pilot.mean)
            sweep, reads_all, compiled_as = _moves(parts, mean, expanded, levels, means)
        except NoGroupsError:  # the density is not concave there
            sweep, reads_all, compiled_as = _moves(parts, anchor, expanded, levels, means)
        with rows_named(numbers):
            pilot = pilot_sweeps(sweep)
    its = sweep, parts.rows, numbers, coordinates
    return GroupedTarget(*its, reads_all, compiled_as, pilot)


def _warn_of_signs(parts: GroupedModel, anchor: LevelAnchor, posterior: GroupedPosterior) -> None:
    """Warn where signs that no row notices make another mode."""
    other = reflected_mode(parts, anchor, posterior)
    if other is None:
        return
    apart = np.abs(other - anchor.point) * np.sqrt(np.maximum(-anchor.hessian.diagonal(), 0.0))
    found = several_modes(2, parts.problem.name_of_entry(int(np.argmax(apart))))
    warn_user(
        f"{found}: no row notices if signs change, and chains stay where they start; constrain a "
        "sign, as by a positive prior."
    )


def _moves(
    parts: GroupedModel,
    anchor: LevelAnchor,
    expanded: ExpandedRows,
    levels: list[NDArray[np.int32]],
    means: tuple[FreeMean, ...],
) -> tuple[Sweep, str, str]:
    """What depends on where rows are expanded: the first, fifth and sixth of a `GroupedTarget`."""
    problem = parts.problem
    parts.rows.truncate(len(problem.likelihood.leaves))  # what is stored of another anchor
    common = common_normal(parts, anchor)
    unread = unread_directions(parts, anchor)
    factors, reads_all = factors_of(parts, anchor, levels, common, means)
    residuals, source = expanded.residuals(anchor.point), parts.rows
    if (stored := residuals.stored) is not None:
        source.extend(lambda block: stored(*block))
    sums = [(mean.entries, mean.absorber) for mean in means]
    row_free_part = row_free_difference_by_levels(problem, parts.terms, sums)
    function = residuals.function
    of_rows: ResidualsOfRows = StoredResiduals(function, source)
    if isinstance(function, Kernel):
        of_rows = KernelOnRows(function, source, problem.start.size)
    rounding = rounding_of(of_rows, anchor, source.n_rows)
    posterior = GroupedPosterior(
        row_free_part,
        of_rows,
        SparseExpansion(anchor.point, anchor.gradient, anchor.hessian),
        tuple(replace(f, rows=replace(f.rows, rounding=rounding)) for f in factors),
        common,
        means,
        unread,
    )
    untouched, joint = prior_only_entries(parts, anchor, row_free_part), joint_block(parts, anchor)
    of_common, of_joint, tilts = remainder_of_expansion(parts, posterior, joint)
    if common is not None:
        posterior = replace(posterior, common=replace(common, shift=of_common))
    if joint is not None:
        joint = replace(joint, shift=of_joint)
    shares = shares_of_sweeps(posterior, joint)
    exchange = exchange_of(parts, anchor, posterior)
    nested = nested_levels(parts, anchor, factors) if not means else ()
    lines = ridges(parts, anchor)
    sweep = Sweep(posterior, untouched, joint, tilts, shares, exchange, nested, lines)
    return sweep, reads_all, residuals.compiled_as


def _blocks(problem: Problem, coordinates: Coordinates) -> Blocks:
    """The blocks of a model that suits the moves, the factor with most levels first."""
    if not is_unconstrained(problem.variables, problem.model, None) or problem.moving_support:
        raise NoGroupsError("its variables cannot move in every direction")
    blocks = problem.blocks
    if blocks is None or not blocks.factors:
        raise NoFactorError("no factor was found")
    factors = sorted(blocks.factors, key=lambda factor: -len(factor.entries))
    n_levels, n_entries = len(factors[0].entries), sum(f.entries.size for f in factors)
    if n_levels < _FEWEST_LEVELS:
        raise NoGroupsError(f"no factor has {_FEWEST_LEVELS} levels")
    if n_levels < _MANY_LEVELS and n_entries < blocks.common.size:
        raise NoGroupsError("most entries do not belong to levels")
    return replace(blocks, factors=tuple(factors))


def _has_one_row_each(problem: Problem) -> bool:
    """Whether some levels have one row each, for which other moves are unsuitable."""
    return bool(problem.likelihood.local_variables)


def _refuse_where_others_are_better(
    problem: Problem, blocks: Blocks, coordinates: Coordinates
) -> None:
    n_levels, n_columns = blocks.factors[0].entries.shape
    if problem.start.size > MOST_AT_ONCE or _has_one_row_each(problem):
        return
    n_entries = sum(factor.entries.size for factor in blocks.factors)
    is_as_written = not coordinates.are_changed  # else it suits these moves
    are_few = n_levels < _MANY_LEVELS or (n_columns == 1 and n_entries < _MANY_ENTRIES)
    if is_as_written and are_few:
        raise OthersAreBetterError("its levels are few enough to be moved at once")
    if problem.likelihood.n_rows > _MANY_ROWS and not have_bounds(problem):
        raise OthersAreBetterError("its rows have no bounds, so that all would have to be read")


def _parts(
    problem: Problem, blocks: Blocks, derivatives: PredictorDerivatives
) -> tuple[GroupedModel, list[NDArray[np.int32]], Store]:
    """The parts; the level of each row in storage order for each factor; and the rows' numbers."""
    at = problem.parts
    try:
        terms = tuple(level_terms(at, factor.entries) for factor in blocks.factors)
        both = blocks.common, blocks.untouched
        common, untouched = (partial_row_free(at, entries) for entries in both)
    except NotByLevelError as error:
        raise NoGroupsError(str(error)) from None
    rows, levels, numbers = stored_by_level(problem, blocks.factors)
    scaled = _normal_given_others(problem, blocks)
    parts = GroupedModel(problem, blocks, derivatives, rows, terms, common, untouched, scaled)
    return parts, list(levels.window(0, levels.n_rows)), numbers


def _normal_given_others(problem: Problem, blocks: Blocks) -> NDArray[np.intp]:
    """Which untouched entries of arrays are normal given the others, numbered among themselves."""
    own, point = blocks.untouched, problem.prepared.point
    arrays = [v for v in problem.variables if np.size(point[v.name]) > 1]
    gradient = problem.row_free_derivatives.gradient

    def slope(values: NDArray[np.float64]) -> NDArray[np.float64]:
        there = problem.start.copy()
        there[own] = values
        return np.asarray(gradient(there)[1][own])

    candidates = np.flatnonzero(np.isin(own, problem.entries_of(arrays)))
    rng = np.random.default_rng(3)
    return conditionally_normal(slope, problem.start[own], candidates, rng)


class BuiltGroups(NamedTuple):
    """The parts of a step method.

    Attributes
    ----------
    posed : Problem
        In terms of the user's variables.
    problem : Problem
        In terms of the variables that are moved.
    target : GroupedTarget
    """

    posed: Problem
    problem: Problem
    target: GroupedTarget


def build_groups(
    prepared: PreparedModel,
    variables: Sequence,
    compile_kwargs: dict[str, Any],
    say: Say,
    *,
    only_where_best: bool = False,
    only_beyond: int = 0,
) -> BuiltGroups:
    """Build the moves of the levels of a model.

    Parameters
    ----------
    prepared : PreparedModel
    variables : sequence of variables
        Value variables.
    compile_kwargs : dict
        Arguments of ``pymc.compile``.
    say : callable
        Shows the stage.
    only_where_best : bool
        As in `build_grouped`.
    only_beyond : int
        Models with this number of entries or fewer are refused.

    Raises
    ------
    NoGroupsError
        The message says why there are no groups, or no moves for them.
    """
    posed = pose(prepared, variables, compile_kwargs)
    if posed.start.size <= only_beyond:
        raise NoGroupsError("everything can be moved at once")
    if posed.start.dtype != np.float64:
        raise NoGroupsError("the model computes in single precision")
    if not posed.layout.is_continuous:
        raise NoGroupsError("some variables are discrete")
    if posed.shared:
        raise NoGroupsError("other step methods move other variables")
    problem, coordinates = grouped_problem(posed)
    target = build_grouped(problem, coordinates, say, only_where_best=only_where_best)
    return BuiltGroups(posed, problem, target)
