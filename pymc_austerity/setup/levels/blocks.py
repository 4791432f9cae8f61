"""Entries that all rows read, entries that no row reads, and directions that no row notices."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, solve_triangular, svd

from pymc_austerity.levels import (
    CommonNormal,
    Exchange,
    JointBlock,
    KeptAtAnchor,
    PriorOnlyEntries,
    Products,
)
from pymc_austerity.model import Design, PartialDerivatives, design_function
from pymc_austerity.proposals import GaussianApproximation
from pymc_austerity.rows import blocks_of
from pymc_austerity.setup.exact_gradient import exact_gradient
from pymc_austerity.setup.levels.anchor import (
    LevelAnchor,
    NoLevelAnchorError,
    drawn_levels,
    level_noise,
    level_normals,
)
from pymc_austerity.setup.levels.grouped_model import GroupedModel

__all__ = ["common_normal", "exchange_of", "joint_block", "prior_only_entries"]

_MOST_AT_ONCE, _MOST_NUMBERS = 300, 4_000_000
"""Most entries that are moved together, and most numbers that are stored for them and levels."""

_SOME_ROWS = 4_096
_MOST_COLUMNS = 300
_NOTHING = 1e-10
"""Share of the usual change of predictors, or of a singular value, that may be rounding."""


def common_normal(parts: GroupedModel, anchor: LevelAnchor) -> CommonNormal | None:
    """Normal approximation of the common entries given the levels, without `shift`; None if empty.

    Raises
    ------
    NoLevelAnchorError
        The log-density is not concave.
    """
    own = parts.blocks.common
    if not own.size:
        return None
    precision = sparse.csr_array(-(anchor.hessian + anchor.exact_hessian))
    given = precision[own][:, own].toarray()
    try:
        root, inverse_root = _roots(given)
    except LinAlgError:
        raise NoLevelAnchorError("the log-density is not concave at the anchor") from None
    exact = parts.common_exact
    gradient = KeptAtAnchor(exact.gradient, exact.given, own, anchor.point)
    of_rows = sparse.csr_array(anchor.hessian[own])
    within, nothing = of_rows[:, own].toarray(), np.zeros(own.size)
    return CommonNormal(own, root, inverse_root, Products.of(of_rows), within, nothing, gradient)


def joint_block(parts: GroupedModel, anchor: LevelAnchor) -> JointBlock | None:
    """Common entries and levels of small factors, to be moved together, without `shift`."""
    common, first = parts.blocks.common, parts.factors[0].entries
    chosen, n_entries = [], common.size
    for number, factor in sorted(enumerate(parts.factors), key=lambda pair: pair[1].entries.size):
        more = n_entries + factor.entries.size
        if number and more <= _MOST_AT_ONCE and first.size * more <= _MOST_NUMBERS:
            n_entries = more
            chosen.append(number)
    entries = np.concatenate([common, *(parts.factors[k].entries.ravel() for k in chosen)])
    if not entries.size:
        return None
    places = np.empty(anchor.point.size, dtype=np.int64)
    places[entries] = np.arange(entries.size)
    precision = -anchor.hessian[entries][:, entries].toarray()
    own = places[common]
    exact = anchor.exact_hessian
    precision[np.ix_(own, own)] -= exact[common][:, common].toarray()
    between = -(anchor.hessian + exact)[first.ravel()][:, entries].toarray()
    factors = [(k, places[parts.factors[k].entries]) for k in chosen]
    between = between.reshape(*first.shape, -1)
    return JointBlock(entries, precision, between, np.zeros(entries.size), own, factors)


def _roots(precision: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower root of the covariance, and its inverse."""
    upper = cholesky(precision[::-1, ::-1], lower=True)[::-1, ::-1]  # precision = upper upper'
    root = solve_triangular(upper, np.eye(len(upper))).T
    return np.ascontiguousarray(root), np.ascontiguousarray(upper.T)


def prior_only_entries(
    parts: GroupedModel, anchor: LevelAnchor, exact_part: Callable[[NDArray, NDArray], float]
) -> PriorOnlyEntries | None:
    """The moves of entries that no row reads, set up at a draw of the levels; None without any."""
    own, rng = parts.blocks.untouched, np.random.default_rng(2)
    if not own.size:
        return None
    normals = level_normals(parts, anchor.point, anchor.hessian)
    point = drawn_levels(parts, anchor.point, normals, level_noise(parts, rng))
    about = GaussianApproximation(point[own], _root_near(parts.untouched_exact, point, own))
    untouched = PriorOnlyEntries(
        own, about, exact_part, parts.problem.exact_derivatives.gradient, parts.scaled
    )
    if untouched.are_few:
        return untouched
    return replace(untouched, exact_gradient=exact_gradient(parts.problem))


def _root_near(
    exact: PartialDerivatives, point: NDArray[np.float64], own: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Root of the covariance at a point, with curvatures of the wrong sign reversed."""
    precision = -exact.hessian(point)[:, own]
    values, vectors = np.linalg.eigh((precision + precision.T) / 2.0)
    raised = np.maximum(np.abs(values), 1e-3 * max(np.abs(values).max(), 1e-3))
    return np.linalg.cholesky((vectors / raised) @ vectors.T)


def exchange_of(parts: GroupedModel, anchor: LevelAnchor) -> Exchange | None:
    """Find directions in common entries and in means of levels; None if there are none.

    They are found on some rows, and verified on all of them.
    """
    structure = parts.problem.structure
    assert not isinstance(structure, str)
    designs = design_function(structure, parts.problem.model)
    n_columns = parts.blocks.common.size + sum(f.entries.shape[1] for f in parts.factors)
    if n_columns > _MOST_COLUMNS:
        return None
    some = np.arange(0, parts.rows.n_rows, max(parts.rows.n_rows // _SOME_ROWS, 1))
    on_rows = designs(parts.rows.take(some))
    changes = np.stack([_change(on_rows, own) for own in _columns(parts)], axis=1)
    lengths = np.linalg.norm(changes, axis=0)
    lengths[lengths == 0.0] = 1.0
    _, singular, rows = svd(changes / lengths, full_matrices=False)
    null = rows[singular <= _NOTHING * singular[0]] / lengths
    if not null.size:
        return None
    directions = np.zeros((len(null), anchor.point.size))
    for own, weights in zip(_columns(parts), null.T, strict=True):
        directions += np.outer(weights, own)
    for block in blocks_of(parts.rows):
        on_rows = designs(block)
        if any(abs(_change(on_rows, v)).max() > _NOTHING for v in directions):
            return None
    precision = -(directions @ (anchor.exact_hessian @ directions.T))
    try:
        root = cholesky(precision, lower=True)
    except LinAlgError:
        return None
    return Exchange(solve_triangular(root, directions, lower=True))


def _columns(parts: GroupedModel) -> Iterator[NDArray[np.float64]]:
    """Each common entry, and each column of the levels of each factor as a whole; shape (d,)."""
    size = parts.problem.start.size
    every = [parts.blocks.common[j : j + 1] for j in range(parts.blocks.common.size)]
    every += [column for factor in parts.factors for column in factor.entries.T]
    for entries in every:
        own = np.zeros(size)
        own[entries] = 1.0
        yield own


def _change(on_rows: Sequence[Design], direction: NDArray[np.float64]) -> NDArray[np.float64]:
    """Changes of all predictors of some rows, one predictor after the other."""
    nowhere = np.zeros_like(direction)
    return np.concatenate([design.eta(direction) - design.eta(nowhere) for design in on_rows])
