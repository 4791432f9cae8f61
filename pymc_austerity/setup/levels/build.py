"""From a problem to the moves of a model with groups."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.sparse.linalg import splu

from pymc_austerity._pymc import discrete_types, underivable
from pymc_austerity.deciding.sampling import RowFunction
from pymc_austerity.levels import (
    CommonNormal,
    GroupedPosterior,
    KeptAtAnchor,
    LevelsOfFactor,
    Prior,
    Reach,
    SparseExpansion,
    Sweep,
    normals_of,
)
from pymc_austerity.model import (
    Blocks,
    NotByLevelError,
    PartialDerivatives,
    PredictorDerivatives,
    level_terms,
    partial_exact,
)
from pymc_austerity.proposals import GaussianApproximation
from pymc_austerity.rows import LARGEST_BLOCK, ArrayRows, ReorderedRows, RowSource, SharedRows
from pymc_austerity.setup.exact_part import exact_difference
from pymc_austerity.setup.garbage import collection_paused
from pymc_austerity.setup.levels.anchor import (
    LevelAnchor,
    NoLevelAnchorError,
    drawn_levels,
    find_level_anchor,
    level_blocks,
)
from pymc_austerity.setup.levels.parts import Parts, levels_of_rows
from pymc_austerity.setup.levels.spans import (
    have_cheap_bounds,
    level_rows,
    row_norms,
    third_derivatives,
)
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.row_functions import expanded_rows
from pymc_austerity.setup.setup_progress import Say
from pymc_austerity.setup.support import is_unconstrained

__all__ = ["GroupedTarget", "NoGroupsError", "build_grouped"]

_FEWEST_LEVELS = 30
"""Of the largest factor: with fewer there is little to win."""
_FEWEST_ENTRIES = 200
"""Of all levels: with fewer, moves of everything at once take less time."""
_MOST_AT_ONCE, _MANY_ROWS = 300, 50_000
"""Dimensions up to which such moves are possible; rows that should not be read at every step."""
_PAIRS = 2
"""Antithetic pairs of draws of the levels over which gradients of the rows are averaged."""


class NoGroupsError(ValueError):
    """There are no groups, or no moves for them; the message is half a sentence."""


@dataclass(frozen=True, eq=False)
class GroupedTarget:
    """The moves of a model with groups, and what was found on the way.

    Attributes
    ----------
    sweep : Sweep
    source : SharedRows
        The rows, by the levels of the first factor.
    numbers : SharedRows
        Their numbers in the user's data.
    start : float array, shape (d,)
        The raveled point at which the model was verified.
    reads_all : str
        Why all rows of a level are read at every decision; empty if few are.
    compiled_as : str
        What evaluates rows, as the end of a sentence.
    """

    sweep: Sweep
    source: SharedRows
    numbers: SharedRows
    start: NDArray[np.float64]
    reads_all: str
    compiled_as: str


@dataclass(frozen=True)
class StoredResiduals:
    """Residuals of rows by their positions in storage."""

    function: RowFunction
    source: RowSource

    def __call__(
        self, proposed: NDArray, current: NDArray, rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Residuals between two points, nats."""
        if rows.size <= LARGEST_BLOCK:
            return self.function(proposed, current, *self.source.take(rows))
        starts = range(0, rows.size, LARGEST_BLOCK)
        blocks = (self.source.take(rows[k : k + LARGEST_BLOCK]) for k in starts)
        return np.concatenate([self.function(proposed, current, *block) for block in blocks])


@collection_paused()
def build_grouped(
    problem: Problem, say: Say = str, *, only_where_best: bool = False
) -> GroupedTarget:
    """Find the blocks, expand the rows, bound them by level, and store them.

    Parameters
    ----------
    problem : Problem
    say : callable
        Tells which stage begins.
    only_where_best : bool
        Whether to refuse models for which moves of everything at once are likely to be faster.

    Raises
    ------
    NoGroupsError
        The message says why there are no moves of levels.
    """
    blocks = _blocks(problem)
    if only_where_best:
        _refuse_where_others_are_better(problem, blocks)
    say("compiling")
    try:
        expanded = expanded_rows(problem, 2)
    except underivable:
        raise NoGroupsError("an operation of the model has no derivative") from None
    assert isinstance(expanded.derivatives, PredictorDerivatives)
    parts, levels = _parts(problem, blocks, expanded.derivatives)
    say("finding the mode of the levels")
    try:
        anchor = find_level_anchor(parts, problem.start)
    except NoLevelAnchorError as error:
        raise NoGroupsError(str(error)) from None
    say("bounding the rows")
    common = _common_normal(parts, anchor)
    factors, reach, reads_all = _factors(parts, anchor, levels, common)
    say("storing the rows")
    residuals = expanded.residuals(anchor.point)
    source = SharedRows(residuals.arrays, parts.rows.order)
    posterior = GroupedPosterior(
        exact_difference(problem),
        StoredResiduals(residuals.function, source),
        SparseExpansion(anchor.point, anchor.gradient, anchor.hessian),
        factors,
        reach,
        common,
        blocks.untouched,
    )
    sweep = Sweep(posterior, _untouched_normal(parts, anchor))
    order = parts.rows.order
    numbers = SharedRows([order], np.arange(order.size))
    return GroupedTarget(sweep, source, numbers, problem.start, reads_all, residuals.compiled_as)


def _blocks(problem: Problem) -> Blocks:
    """The blocks of a model that the moves are for."""
    if problem.start.dtype != np.float64:
        raise NoGroupsError("the model computes in single precision")
    if any(v.dtype in discrete_types for v in problem.variables):
        raise NoGroupsError("some variables are discrete")
    if problem.shared or problem.likelihood.local_variables:
        raise NoGroupsError("other step methods move other variables")
    if not is_unconstrained(problem.variables, problem.model, None) or problem.moving_support:
        raise NoGroupsError("its variables cannot move in every direction")
    blocks = problem.blocks
    if blocks is None or not blocks.factors:
        raise NoGroupsError("no factor was found")
    factors = sorted(blocks.factors, key=lambda factor: -len(factor.entries))
    if len(factors[0].entries) < _FEWEST_LEVELS:
        raise NoGroupsError(f"no factor has {_FEWEST_LEVELS} levels")
    return replace(blocks, factors=tuple(factors))


def _refuse_where_others_are_better(problem: Problem, blocks: Blocks) -> None:
    largest = blocks.factors[0].entries
    if problem.start.size > _MOST_AT_ONCE:
        return
    n_entries = sum(factor.entries.size for factor in blocks.factors)
    if largest.shape[1] == 1 and n_entries < _FEWEST_ENTRIES:
        raise NoGroupsError("its levels are few enough to be moved at once")
    if problem.likelihood.n_rows > _MANY_ROWS and not have_cheap_bounds(problem):
        raise NoGroupsError("the bounds of its rows take long, and all would have to be read")


def _parts(
    problem: Problem, blocks: Blocks, derivatives: PredictorDerivatives
) -> tuple[Parts, list[NDArray[np.int32]]]:
    """The parts, and the level of each row in storage order for each factor."""
    structure = problem.structure
    assert not isinstance(structure, str)
    likelihood, variables, _, point = problem.parts
    try:
        terms = tuple(
            level_terms(likelihood, variables, point, factor.entries, problem.start)
            for factor in blocks.factors
        )
        common, untouched = (
            partial_exact(likelihood, variables, point, entries, problem.start)
            for entries in (blocks.common, blocks.untouched)
        )
    except NotByLevelError as error:
        raise NoGroupsError(str(error)) from None
    levels = levels_of_rows(blocks.factors, structure, problem)
    order = np.argsort(levels[0], kind="stable")
    rows = ReorderedRows(ArrayRows(likelihood.arrays), order)
    parts = Parts(problem, blocks, derivatives, rows, terms, common, untouched)
    return parts, [own[order] for own in levels]


# ------------------------------------------------------------------ the factors


def _factors(
    parts: Parts,
    anchor: LevelAnchor,
    levels: list[NDArray[np.int32]],
    common: CommonNormal | None,
) -> tuple[tuple[LevelsOfFactor, ...], Reach, str]:
    blocks = [level_blocks(anchor.hessian, factor.entries) for factor in parts.factors]
    normals = [
        normals_of(-own - terms.derivatives(anchor.point)[1], np.zeros(own.shape[:2]))
        for own, terms in zip(blocks, parts.terms, strict=True)
    ]
    common_root = np.zeros((0, 0)) if common is None else common.root
    roots = [normal.inverse_root.swapaxes(1, 2) for normal in normals]
    norms = row_norms(parts, anchor.point, roots, common_root, levels)
    radii, constants, reads_all = third_derivatives(parts, norms.center)
    found, spans = [], []
    for number, factor in enumerate(parts.factors):
        rows, span = level_rows(
            levels[number],
            len(factor.entries),
            radii,
            constants,
            norms.own[number],
            norms.common,
            factor,
            normals[number].root.swapaxes(1, 2),
        )
        spans.append(span)
        terms = parts.terms[number]
        found.append(
            LevelsOfFactor(
                factor.names,
                factor.entries,
                anchor.point[factor.entries],
                blocks[number],
                _with_others(anchor.hessian, factor.entries),
                anchor.gradient[factor.entries],
                Prior(*terms),
                rows,
            )
        )
    inverse = np.zeros((0, 0)) if common is None else common.inverse_root
    return tuple(found), Reach(parts.blocks.common, inverse, tuple(spans)), reads_all


def _with_others(hessian: sparse.csr_array, entries: NDArray[np.int64]) -> sparse.csr_array:
    """Rows of the Hessian of a factor, without columns of the factor itself."""
    rows = sparse.coo_array(hessian[entries.ravel()])
    is_own = np.isin(rows.coords[1], entries)
    kept = tuple(where[~is_own] for where in rows.coords)
    return sparse.csr_array((rows.data[~is_own], kept), shape=rows.shape)


# ------------------------------------------------------------------ the common entries


def _common_normal(parts: Parts, anchor: LevelAnchor) -> CommonNormal | None:
    own = parts.blocks.common
    if not own.size:
        return None
    precision = sparse.csr_array(-(anchor.hessian + anchor.exact_hessian))
    given = precision[own][:, own].toarray()
    entries = parts.touched[: -own.size]
    between = precision[entries][:, own].toarray()
    factor = splu(
        sparse.csc_array(precision[entries][:, entries]),
        permc_spec="MMD_AT_PLUS_A",
        options={"SymmetricMode": True},
    )
    marginal = given - between.T @ factor.solve(between)
    try:
        root, inverse_root = _roots(given)
        marginal_root, marginal_inverse_root = _roots(marginal)
    except LinAlgError:
        raise NoGroupsError("the log-density is not concave at the anchor") from None
    shift = _shift(parts, anchor)
    return CommonNormal(
        own,
        root,
        inverse_root,
        shift,
        KeptAtAnchor(parts.common_exact.gradient, parts.common_exact.given, own, anchor.point),
        marginal_root @ (marginal_root.T @ shift),
        marginal_root,
        marginal_inverse_root,
    )


def _roots(precision: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower root of the covariance, and its inverse."""
    upper = cholesky(precision[::-1, ::-1], lower=True)[::-1, ::-1]  # precision = upper upper'
    root = solve_triangular(upper, np.eye(len(upper))).T
    return np.ascontiguousarray(root), np.ascontiguousarray(upper.T)


def _shift(parts: Parts, anchor: LevelAnchor) -> NDArray[np.float64]:
    """What the uncertainty of the levels adds to the gradient of the common entries."""
    own, rng = parts.blocks.common, np.random.default_rng(1)
    total = np.zeros(own.size)
    for _ in range(_PAIRS):
        noise = [rng.standard_normal(factor.entries.shape) for factor in parts.factors]
        for sign in (1.0, -1.0):
            signed = [sign * xi for xi in noise]
            point = drawn_levels(parts, anchor.point, anchor.hessian, signed)
            expected = anchor.gradient + anchor.hessian @ (point - anchor.point)
            total += (parts.row_sums(point).gradient - expected)[own]
    return total / (2 * _PAIRS)


# ------------------------------------------------------------------ what no row reads


def _untouched_normal(parts: Parts, anchor: LevelAnchor) -> GaussianApproximation | None:
    """Of the entries that no row reads, given a draw of the levels."""
    own, rng = parts.blocks.untouched, np.random.default_rng(2)
    if not own.size:
        return None
    noise = [rng.standard_normal(factor.entries.shape) for factor in parts.factors]
    point = drawn_levels(parts, anchor.point, anchor.hessian, noise)
    return GaussianApproximation(anchor.point[own], _root_near(parts.untouched_exact, point, own))


def _root_near(
    exact: PartialDerivatives, point: NDArray[np.float64], own: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Root of the covariance at a point, with curvatures of the wrong sign turned round."""
    precision = -exact.hessian(point)[:, own]
    values, vectors = np.linalg.eigh((precision + precision.T) / 2.0)
    raised = np.maximum(np.abs(values), 1e-3 * max(np.abs(values).max(), 1e-3))
    return np.linalg.cholesky((vectors / raised) @ vectors.T)
