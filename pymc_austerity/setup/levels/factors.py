"""The factors of a model with groups, and limits of their rows by level."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pymc_austerity.exact import measured_rounding
from pymc_austerity.levels import (
    CommonNormal,
    FreeMean,
    LevelRows,
    LevelsOfFactor,
    Measured,
    Prior,
    Products,
    ResidualsOfRows,
    Span,
)
from pymc_austerity.model import (
    Blocks,
    DenseRows,
    Design,
    design_function,
)
from pymc_austerity.model.bounds import (
    NoBoundError,
    third_derivative_constants,
)
from pymc_austerity.setup.coordinates import Coordinates
from pymc_austerity.setup.levels.anchor import (
    LevelAnchor,
    NoGroupsError,
    level_blocks,
    level_normals,
)
from pymc_austerity.setup.levels.grouped_model import GroupedModel
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.row_bounds import BOUNDS_SHARE
from pymc_austerity.time_limit import SetupTooLongError, share_of_rest

RADII = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
"""Displacements of predictors from the anchor up to which rows are bounded.

The predictor that moves most is in its own units; the others are in units in which they move by as
much."""

_ROWS = 65_536
"""Fewest rows that are bounded at once; larger pieces have at most `_SHARE` of all rows."""

_MOST_ROWS, _SHARE = 262_144, 1 / 4
_SOME_ROWS = 2_048
"""Number of rows from which to determine how far predictors move."""

_FEW_ROWS = 256
"""Number of rows from which to determine whether there are bounds."""

_NOTHING = 1e-6
"""A predictor that moves less than this, relative to the one that moves most, keeps its units."""

_COMMON, _NO_ONE = -1, -2
"""In place of the number of a factor, for entries of no level."""

_MOST_ROUNDED = 100_000
"""Rows whose rounding is measured."""


class LevelLimits(NamedTuple):
    """The largest multipliers and bounds of the rows of each level of a factor.

    Attributes
    ----------
    own : float array, shape (G,)
        Norms of the multipliers of the entries of the rows' level.
    common : float array, shape (G,)
        The same for the common entries.
    constants : float array, shape (R, G)
        Third derivatives for displacements of the predictors up to each radius; infinite for none.
    """

    own: NDArray[np.float64]
    common: NDArray[np.float64]
    constants: NDArray[np.float64]


def level_limits(
    parts: GroupedModel,
    anchor: NDArray[np.float64],
    roots: list[NDArray[np.float64]],
    common_root: NDArray[np.float64],
    levels: list[NDArray[np.int32]],
) -> tuple[list[LevelLimits], str]:
    """Limits of the rows of each level, in one pass over all rows.

    Parameters
    ----------
    parts : GroupedModel
    anchor : float array, shape (d,)
    roots : list of float array, shape (G, q, q)
        Of the covariance of the entries of each level given the rest, one for each factor.
    common_root : float array, shape (p, p)
        Of the covariance of the common entries given the levels.
    levels : list of int array, shape (N,)
        Level of each row in storage order, one for each factor.

    Returns
    -------
    limits : list of LevelLimits
        One for each factor.
    reason : str
        Why there are no bounds, as a clause; empty if there are.
    """
    structure = parts.problem.structure
    assert not isinstance(structure, str)
    designs, n_rows = design_function(structure, parts.problem.model), parts.rows.n_rows
    spans = _Spans(parts, roots, common_root)
    some = np.arange(0, n_rows, max(n_rows // _SOME_ROWS, 1))
    units = spans.usual(designs(parts.rows.take(some)), [own[some] for own in levels])
    reason = ""
    sizes = [len(factor.entries) for factor in parts.factors]
    limits = [LevelLimits(np.zeros(n), np.zeros(n), np.zeros((len(RADII), n))) for n in sizes]
    length = min(max(_ROWS, int(_SHARE * n_rows)), _MOST_ROWS)
    with share_of_rest(BOUNDS_SHARE):
        for start in range(0, n_rows, length):
            rows = slice(start, start + length)
            block = parts.rows.window(start, start + length)
            on_rows = designs(block)
            center = np.stack([design.eta(anchor) for design in on_rows], axis=1)
            constants = reason or _bounds_of_rows(parts.problem, units, block, center)
            if isinstance(constants, str):
                reason, constants = constants, np.full((len(RADII), 1), np.inf)
            common = _norm(spans.of_common(on_rows), units)
            for number, (own, limit) in enumerate(zip(levels, limits, strict=True)):
                spread = _norm(spans.of_levels(on_rows, number, own[rows]), units)
                np.maximum.at(limit.own, own[rows], spread)
                np.maximum.at(limit.common, own[rows], common)
                for largest, values in zip(limit.constants, constants, strict=True):
                    np.maximum.at(largest, own[rows], values)
    return limits, reason


@dataclass(frozen=True, eq=False)
class _Spans:
    """Multipliers of entries in predictors, for entries in units of their spread given the rest."""

    parts: GroupedModel
    roots: list[NDArray[np.float64]]
    common_root: NDArray[np.float64]

    def of_common(self, designs: Sequence[Design]) -> list[NDArray[np.float64]]:
        """For the common entries, shape (m, p) for each predictor."""
        root = self.common_root
        return [self._own(design, _COMMON, len(root)) @ root for design in designs]

    def of_levels(
        self, designs: Sequence[Design], number: int, levels: NDArray[np.int32]
    ) -> list[NDArray[np.float64]]:
        """For the entries of the rows' levels of a factor, shape (m, q) for each predictor."""
        root = self.roots[number][levels]
        each = (self._own(design, number, root.shape[1]) for design in designs)
        return [np.einsum("mq,mqr->mr", own, root) for own in each]

    def _own(self, design: Design, owner: int, size: int) -> NDArray[np.float64]:
        """Multipliers of the common entries, or of those of a row's level, shape (m, size)."""
        total, (owners, position) = np.zeros((design.n_rows, size)), self._places
        for term in design.terms:
            is_own = owners[term.entries] == owner
            if isinstance(term, DenseRows):
                total[:, position[term.entries[is_own]]] += term.data[:, is_own]
            else:
                for entries, data, own in zip(term.entries.T, term.data.T, is_own.T, strict=True):
                    (rows,) = np.nonzero(own)
                    total[rows, position[entries[rows]]] += data[rows]
        return total

    def usual(
        self, designs: Sequence[Design], levels: list[NDArray[np.int32]]
    ) -> NDArray[np.float64]:
        """How far each predictor moves, relative to the one that moves most; shape (k,)."""
        every = [self.of_common(designs)]
        every += [self.of_levels(designs, number, own) for number, own in enumerate(levels)]
        squares = sum(np.array([(part**2).sum(axis=1).mean() for part in parts]) for parts in every)
        usual = np.sqrt(squares)
        largest = usual.max()
        return np.where(usual > _NOTHING * largest, usual / (largest or 1.0), 1.0)

    @cached_property
    def _places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The factor of each entry of a point, or `_COMMON`, and its position in its block."""
        size, common = self.parts.problem.start.size, self.parts.blocks.common
        owners, position = np.full(size, _NO_ONE), np.zeros(size, dtype=np.int64)
        owners[common], position[common] = _COMMON, np.arange(common.size)
        for number, factor in enumerate(self.parts.factors):
            owners[factor.entries] = number
            position[factor.entries] = np.arange(factor.entries.shape[1])
        return owners, position


def _bounds_of_rows(
    problem: Problem,
    units: NDArray[np.float64],
    block: Sequence[NDArray],
    center: NDArray[np.float64],
) -> NDArray[np.float64] | str:
    """Bounds of third derivatives for each radius and row, shape (R, m), or why there are none."""
    gram = np.broadcast_to(np.diag(units**2), (len(center), units.size, units.size))
    try:
        return third_derivative_constants(problem.scalar_function, block, center, gram, RADII)
    except NoBoundError as error:
        return f"their rows have {error}"
    except SetupTooLongError:
        return "bounds of their rows take long to compute"


def have_bounds(problem: Problem) -> bool:
    """Whether some of the rows, near the start, have bounds."""
    structure, rows = problem.structure, problem.prepared.some_rows
    if isinstance(structure, str):
        return False
    block = rows.take(np.arange(0, rows.n_rows, max(rows.n_rows // _FEW_ROWS, 1)))
    designs = design_function(structure, problem.model)(block)
    center = np.stack([design.eta(problem.start) for design in designs], axis=1)
    return not isinstance(_bounds_of_rows(problem, np.ones(center.shape[1]), block, center), str)


def _norm(parts: list[NDArray[np.float64]], units: NDArray[np.float64]) -> NDArray[np.float64]:
    """Frobenius norm of the multipliers of all predictors in their units, shape (m,)."""
    squares = sum((part * part).sum(axis=1) / u**2 for part, u in zip(parts, units, strict=True))
    norm: NDArray[np.float64] = np.sqrt(squares)
    return norm


def factors_of(
    parts: GroupedModel,
    anchor: LevelAnchor,
    levels: list[NDArray[np.int32]],
    common: CommonNormal | None,
    means: tuple[FreeMean, ...],
) -> tuple[tuple[LevelsOfFactor, ...], str]:
    """Levels of all factors, and why their rows have no bounds (empty if they do)."""
    normals = level_normals(parts, anchor.point, anchor.hessian)
    common_root = np.zeros((0, 0)) if common is None else common.root
    roots = [normal.inverse_root.swapaxes(1, 2) for normal in normals]
    limits, reads_all = level_limits(parts, anchor.point, roots, common_root, levels)
    found = []
    for number, (factor, limit) in enumerate(zip(parts.factors, limits, strict=True)):
        inverse_roots = np.ascontiguousarray(normals[number].root.swapaxes(1, 2))
        span = Span(Measured(factor.entries, inverse_roots), limit.own, limit.common)
        rows = _rows_of(levels[number], limit, span)
        terms = parts.terms[number]
        found.append(
            LevelsOfFactor(
                factor.names,
                factor.entries,
                anchor.point[factor.entries],
                level_blocks(anchor.hessian, factor.entries),
                Products.of(_with_others(anchor.hessian, factor.entries)),
                anchor.gradient[factor.entries],
                Prior(
                    terms.terms,
                    terms.derivatives,
                    terms.given,
                    np.intersect1d(terms.given, parts.blocks.untouched),
                    terms.is_quadratic,
                    terms.as_rows,
                    is_all=all(mean.factor != number for mean in means),
                ),
                rows,
            )
        )
    return tuple(found), reads_all


def free_means(blocks: Blocks, coordinates: Coordinates) -> tuple[FreeMean, ...]:
    """Means of levels that represent effects that sum to zero."""
    columns = {
        frozenset(own.tolist()): (number, column)
        for number, factor in enumerate(blocks.factors)
        for column, own in enumerate(factor.entries.T)
    }
    means = []
    for its in coordinates.absorbed:
        place = columns.get(frozenset(its.levels.tolist()))
        if place is None:
            raise NoGroupsError(f"rows do not read {its.name!r} by its levels")
        means.append(FreeMean(*place, its.levels, its.absorber))
    return tuple(means)


def _rows_of(levels: NDArray[np.int32], limit: LevelLimits, span: Span) -> LevelRows:
    """Rows by level: as they are stored, or by their positions."""
    is_sorted = bool((np.diff(levels) >= 0).all())
    order = None if is_sorted else np.argsort(levels, kind="stable")
    counts = np.bincount(levels, minlength=limit.own.size)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return LevelRows(starts, order, span, np.array(RADII), limit.constants)


def rounding_of(residuals: ResidualsOfRows, anchor: LevelAnchor, n_rows: int) -> float:
    """How far rounding may take rows beyond their bounds, for moves of usual size."""
    rng = np.random.default_rng(5)
    rows = np.arange(n_rows)
    if n_rows > _MOST_ROUNDED:
        rows = np.sort(rng.choice(n_rows, _MOST_ROUNDED, replace=False))
    precision = -(anchor.hessian.diagonal() + anchor.row_free_hessian.diagonal())
    scales = np.zeros(precision.size)
    np.divide(1.0, np.sqrt(abs(precision)), out=scales, where=precision > 0.0)
    start, direction = scales * rng.standard_normal((2, scales.size))
    return measured_rounding(
        lambda new, old: residuals(new, old, rows), anchor.point + start, direction
    )


def _with_others(hessian: sparse.csr_array, entries: NDArray[np.int64]) -> sparse.csr_array:
    """Rows of the Hessian of a factor, without columns of the factor itself."""
    rows = sparse.coo_array(hessian[entries.ravel()])
    is_own = np.isin(rows.coords[1], entries)
    kept = tuple(where[~is_own] for where in rows.coords)
    return sparse.csr_array((rows.data[~is_own], kept), shape=rows.shape)
