"""Blocks of entries beside the levels, and what the expansion of rows leaves along their moves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.sparse.csgraph import connected_components

from pymc_austerity.levels import (
    CommonNormal,
    GivenPrior,
    GroupedPosterior,
    JointBlock,
    KeptAtAnchor,
    PartlyNonCentered,
    PriorOnlyEntries,
    Products,
    move_levels,
)
from pymc_austerity.model import PartialDerivatives
from pymc_austerity.proposals import GaussianApproximation
from pymc_austerity.setup.levels.anchor import (
    LevelAnchor,
    NoGroupsError,
    drawn_levels,
    level_noise,
    level_normals,
)
from pymc_austerity.setup.levels.grouped_model import GroupedModel

_DRAWS = 3
"""Draws of the levels; sums over many levels vary little from one to the next."""

_MOVES = 4
"""Moves of all levels for one draw; nearly all are accepted."""

_ROUNDING = 1e-6
"""Of second derivatives, relative to the largest ones of the two entries."""

_STEP = 1e-3
"""Step for differences along hyperparameters, which are on unconstrained scales."""


def common_normal(parts: GroupedModel, anchor: LevelAnchor) -> CommonNormal | None:
    """Normal approximation of the common entries given the levels, without `shift`; None if empty.

    Raises
    ------
    NoGroupsError
        The log-density is not concave.
    """
    own = parts.blocks.common
    if not own.size:
        return None
    given = anchor.precision[own][:, own].toarray()
    try:
        root, inverse_root = _roots(given)
    except LinAlgError:
        raise NoGroupsError("the log-density is not concave at the anchor") from None
    exact = parts.common_row_free
    of_rows = sparse.csr_array(anchor.hessian[own])
    within, nothing = of_rows[:, own].toarray(), np.zeros(own.size)
    nearby = anchor.point + np.random.default_rng(3).normal(scale=0.1, size=anchor.point.size)
    curved = exact.hessian(nearby)[:, own] if exact.given.size else within * 0.0
    is_diagonal = not np.triu(_dependence(curved), 1).any()
    prior = _PriorOfCommon(exact, own, -within, root, inverse_root, is_diagonal)
    known = KeptAtAnchor(prior, exact.given, own, anchor.point)
    return CommonNormal(own, root, inverse_root, Products.of(of_rows), within, nothing, known)


@dataclass(frozen=True, eq=False)
class _PriorOfCommon:
    """The prior of the common entries, whose scales may move.

    Attributes
    ----------
    exact : PartialDerivatives
        Of the row-free part with respect to these entries.
    entries : int array, shape (p,)
    of_rows : float array, shape (p, p)
        Precision of these entries from the rows.
    root, inverse_root : float arrays, shape (p, p)
        With all others at the anchor.
    is_diagonal : bool
        Whether the prior makes these entries independent given the others.
    """

    exact: PartialDerivatives
    entries: NDArray[np.int64]
    of_rows: NDArray[np.float64]
    root: NDArray[np.float64]
    inverse_root: NDArray[np.float64]
    is_diagonal: bool

    def __call__(self, point: NDArray[np.float64]) -> GivenPrior:
        """What it says given the others at a point, shape (d,)."""
        if not self.exact.given.size:
            return GivenPrior(self.exact.gradient(point), self.root, self.inverse_root)
        gradient, curvature = self._derivatives(point)
        try:
            return GivenPrior(gradient, *_roots(self.of_rows - curvature))
        except LinAlgError:  # a heavy tail
            return GivenPrior(gradient, self.root, self.inverse_root)

    def _derivatives(
        self, point: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gradient of the row-free part, shape (p,), and second derivatives, shape (p, p)."""
        if not self.is_diagonal:
            return self.exact.gradient(point), self.exact.hessian(point)[:, self.entries]
        moves = np.zeros_like(point)
        moves[self.entries] = _STEP
        ahead, behind = self.exact.gradient(point + moves), self.exact.gradient(point - moves)
        return (ahead + behind) / 2.0, np.diag((ahead - behind) / (2.0 * _STEP))


def _roots(precision: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower root of the covariance, and its inverse."""
    upper = cholesky(precision[::-1, ::-1], lower=True)[::-1, ::-1]  # precision = upper upper'
    root = solve_triangular(upper, np.eye(len(upper))).T
    return np.ascontiguousarray(root), np.ascontiguousarray(upper.T)


def prior_only_entries(
    parts: GroupedModel, anchor: LevelAnchor, row_free_part: Callable[[NDArray, NDArray], float]
) -> PriorOnlyEntries | None:
    """The moves of entries that no row reads, set up at a draw of the levels; None without any."""
    own, rng = parts.blocks.untouched, np.random.default_rng(2)
    if not own.size:
        return None
    normals = level_normals(parts, anchor.point, anchor.hessian)
    point = drawn_levels(parts, anchor.point, normals, level_noise(parts, rng))
    precision = -parts.untouched_row_free.hessian(point)[:, own]
    labels = connected_components(sparse.csr_array(_dependence(precision)), directed=False)[1]
    components = tuple(np.flatnonzero(labels == label) for label in np.unique(labels))
    root = np.zeros_like(precision)
    for component in components:
        square = np.ix_(component, component)
        root[square] = _root_near(precision[square])
    about, its = GaussianApproximation(point[own], root), (parts.scaled, components)
    gradient = parts.problem.row_free_derivatives.gradient
    untouched = PriorOnlyEntries(own, about, row_free_part, gradient, *its)
    if untouched.are_few:
        return untouched
    return replace(untouched, row_free_gradient=parts.problem.row_free_gradient)


def _dependence(curvature: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which entries depend on each other by second derivatives, made by differences."""
    sizes = np.sqrt(np.abs(curvature).max(axis=1, initial=0.0))
    size = np.abs(curvature) + np.abs(curvature.T)
    dependence: NDArray[np.bool_] = size > _ROUNDING * np.outer(sizes, sizes)
    return dependence


def _root_near(precision: NDArray[np.float64]) -> NDArray[np.float64]:
    """Root of the covariance, with curvatures of the wrong sign reversed."""
    values, vectors = np.linalg.eigh((precision + precision.T) / 2.0)
    raised = np.maximum(np.abs(values), 1e-3 * max(np.abs(values).max(), 1e-3))
    return np.linalg.cholesky((vectors / raised) @ vectors.T)


def remainder_of_expansion(
    parts: GroupedModel, posterior: GroupedPosterior, joint: JointBlock | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[NDArray[np.float64], ...]]:
    """Average gradients of the remainder of the expansion, along the moves of blocks.

    The posterior of a level with few rows is not normal: its mean is not its mode. The effects of
    many levels on shared entries add up, and without a correction moves of these entries would be
    wrong by many standard deviations. The average is over draws of the levels with everything else
    at the anchor.

    Parameters
    ----------
    parts : GroupedModel
    posterior : GroupedPosterior
    joint : JointBlock or None

    Returns
    -------
    common : float array, shape (p,)
        For the common entries, given the levels.
    joint : float array, shape (k,)
        For the directions of the joint block, moved together with the levels of the first factor.
    along : tuple of float array
        For the hyperparameters of each factor, moved together with its levels.
    """
    rng, every = np.random.default_rng(1), range(len(parts.factors))
    found = []
    for _ in range(_DRAWS):
        point = _drawn(posterior, rng)
        rest = _gradient_beyond(parts, posterior, point)
        along = tuple(_along_hyperparameters(posterior, k, point, rest) for k in every)
        jointly = np.zeros(0)
        if joint is not None:
            jointly = _along_directions(posterior, joint, point, rest)
        found.append((rest[parts.blocks.common], jointly, along))
    common, together, tilts = zip(*found, strict=True)
    return _mean(common), _mean(together), tuple(map(_mean, zip(*tilts, strict=True)))


def _mean(gradients: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The mean, or zero where it is not finite: any gradient leaves the posterior invariant."""
    mean: NDArray[np.float64] = np.mean(gradients, axis=0)
    return np.where(np.isfinite(mean), mean, 0.0)


def _drawn(posterior: GroupedPosterior, rng: np.random.Generator) -> NDArray[np.float64]:
    """The anchor with a draw of the levels."""
    point = posterior.anchor.copy()
    for _ in range(_MOVES):
        for factor in range(len(posterior.factors)):
            point = move_levels(posterior, factor, point, 0.0, rng).point
    return point


def _gradient_beyond(
    parts: GroupedModel, posterior: GroupedPosterior, point: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Gradient of the rows at a point, minus that of their expansion."""
    expanded = posterior.expansion.slope(point, np.arange(point.size))
    return parts.row_sums(point).gradient - expanded


def _along_directions(
    posterior: GroupedPosterior,
    joint: JointBlock,
    point: NDArray[np.float64],
    rest: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The derivative along the directions, with the levels of the first factor moved along."""
    _, normals = posterior.level_normals(0, point)
    own = rest[posterior.factors[0].entries]
    along = np.einsum("gkj,gkl,gl->gj", normals.inverse_root, normals.inverse_root, own)
    flat = joint.between.reshape(-1, joint.gradient.size)
    derivative: NDArray[np.float64] = rest[joint.entries] @ joint.directions - along.ravel() @ flat
    return derivative


def _along_hyperparameters(
    posterior: GroupedPosterior,
    factor: int,
    point: NDArray[np.float64],
    rest: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The derivative along the hyperparameters of a factor, moved together with its levels."""
    own = posterior.factors[factor].prior.hyperparameters
    along = PartlyNonCentered(posterior, factor, point, own)
    ends = [
        [along.led_to(point[own] + sign * step) for sign in (1.0, -1.0)]
        for step in _STEP * np.eye(own.size)
    ]
    return np.array([float(rest.dot(after - before)) / (2.0 * _STEP) for after, before in ends])
