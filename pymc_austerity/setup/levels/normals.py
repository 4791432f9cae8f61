"""Normal approximations of entries that all rows read, and of those that no row reads."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from pymc_austerity.levels import (
    CommonNormal,
    JointBlock,
    KeptAtAnchor,
    Products,
    UntouchedEntries,
)
from pymc_austerity.model import PartialDerivatives
from pymc_austerity.proposals import GaussianApproximation
from pymc_austerity.setup.exact_gradient import exact_gradient
from pymc_austerity.setup.levels.anchor import (
    LevelAnchor,
    NoLevelAnchorError,
    drawn_levels,
    level_noise,
    level_normals,
)
from pymc_austerity.setup.levels.parts import Parts

__all__ = ["common_normal", "joint_block", "untouched_entries"]

_MOST_AT_ONCE, _MOST_NUMBERS = 300, 4_000_000
"""Most entries that are moved together, and most numbers that are stored for them and levels."""


def common_normal(parts: Parts, anchor: LevelAnchor) -> CommonNormal | None:
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


def joint_block(parts: Parts, anchor: LevelAnchor) -> JointBlock | None:
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


def untouched_entries(
    parts: Parts, anchor: LevelAnchor, exact_part: Callable[[NDArray, NDArray], float]
) -> UntouchedEntries | None:
    """The moves of entries that no row reads, set up at a draw of the levels; None without any."""
    own, rng = parts.blocks.untouched, np.random.default_rng(2)
    if not own.size:
        return None
    normals = level_normals(parts, anchor.point, anchor.hessian)
    point = drawn_levels(parts, anchor.point, normals, level_noise(parts, rng))
    about = GaussianApproximation(point[own], _root_near(parts.untouched_exact, point, own))
    untouched = UntouchedEntries(
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
