"""The remainder of the expansion of rows, on average over the posterior of the levels."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels import GroupedPosterior, JointBlock, PartlyNonCentered, move_levels
from pymc_austerity.setup.levels.grouped_model import GroupedModel

__all__ = ["Remainder", "remainder_of_expansion"]

_DRAWS = 3
"""Draws of the levels; sums over many levels vary little from one to the next."""

_MOVES = 4
"""Moves of all levels for one draw; nearly all are accepted."""

_STEP = 1e-3
"""Step for differences along hyperparameters, which are on unconstrained scales."""


class Remainder(NamedTuple):
    r"""Average gradients of the remainder of the expansion, along the moves of blocks.

    The posterior of a level with few rows is not normal: its mean is not its mode. The effects of
    many levels on shared entries add up, and without a correction moves of these entries would be
    wrong by many standard deviations.

    Attributes
    ----------
    common : float array, shape (p,)
        For the common entries, given the levels.
    joint : float array, shape (s,)
        For the entries of the joint block, moved together with the levels of the first factor.
    along : tuple of float array
        For the hyperparameters of each factor, moved together with its levels.
    """

    common: NDArray[np.float64]
    joint: NDArray[np.float64]
    along: tuple[NDArray[np.float64], ...]


def remainder_of_expansion(
    parts: GroupedModel, posterior: GroupedPosterior, joint: JointBlock | None
) -> Remainder:
    """Average over draws of the levels given everything else at the anchor.

    Parameters
    ----------
    parts : GroupedModel
    posterior : GroupedPosterior
    joint : JointBlock or None
    """
    rng, every = np.random.default_rng(1), range(len(parts.factors))
    found = []
    for _ in range(_DRAWS):
        point = _drawn(posterior, every, rng)
        rest = _gradient_beyond(parts, posterior, point)
        along = tuple(_along_hyperparameters(posterior, k, point, rest) for k in every)
        jointly = np.zeros(0)
        if joint is not None:
            if len(every) > 1:
                point = _drawn(posterior, range(1), rng)
                rest = _gradient_beyond(parts, posterior, point)
            jointly = _along_entries(posterior, joint, point, rest)
        found.append((rest[parts.blocks.common], jointly, along))
    common, together, tilts = zip(*found, strict=True)
    return Remainder(
        _mean(common), _mean(together), tuple(_mean(tilt) for tilt in zip(*tilts, strict=True))
    )


def _mean(gradients: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The mean, or zero where it is not finite: any gradient leaves the posterior invariant."""
    mean: NDArray[np.float64] = np.mean(gradients, axis=0)
    return np.where(np.isfinite(mean), mean, 0.0)


def _drawn(
    posterior: GroupedPosterior, factors: range, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The anchor with a draw of the levels of some factors."""
    point = posterior.anchor.copy()
    for _ in range(_MOVES):
        for factor in factors:
            point = move_levels(posterior, factor, point, 0.0, rng).point
    return point


def _gradient_beyond(
    parts: GroupedModel, posterior: GroupedPosterior, point: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Gradient of the rows at a point, minus that of their expansion."""
    expanded = posterior.expansion.slope(point, np.arange(point.size))
    return parts.row_sums(point).gradient - expanded


def _along_entries(
    posterior: GroupedPosterior,
    joint: JointBlock,
    point: NDArray[np.float64],
    rest: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The derivative along the entries, moved together with the levels of the first factor."""
    _, normals = posterior.level_normals(0, point)
    own = rest[posterior.factors[0].entries]
    along = np.einsum("gkj,gkl,gl->gj", normals.inverse_root, normals.inverse_root, own)
    flat = joint.between.reshape(-1, joint.entries.size)
    derivative: NDArray[np.float64] = rest[joint.entries] - along.ravel() @ flat
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
