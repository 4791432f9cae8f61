"""How often to make moves that a Gibbs sampler does not have."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, eigh

from pymc_austerity.levels.factor import LevelsOfFactor
from pymc_austerity.levels.jointly import JointBlock
from pymc_austerity.levels.posterior import GroupedPosterior

__all__ = ["Shares", "shares_of_sweeps"]

_LEAST = 0.1
"""Smallest share of the sweeps."""
_OF_LEVELS = 0.9
"""Quantile, over the levels of a factor, of the prior's share of the precision."""


class Shares(NamedTuple):
    """Shares of the sweeps that make a move.

    Attributes
    ----------
    along : tuple of float
        For moves of the hyperparameters of each factor together with its levels.
    joint : float
        For the move of the joint block.
    """

    along: tuple[float, ...]
    joint: float


def shares_of_sweeps(posterior: GroupedPosterior, joint: JointBlock | None) -> Shares:
    r"""Shares equal to the autocorrelation of a Gibbs sampler without these moves.

    The autocorrelation is that from one sweep to the next in the normal approximation at the
    anchor. For a level with the share :math:`\lambda` of its precision from the prior it is
    :math:`\lambda` for the mean and :math:`1 - (1 - \lambda)^2` for the spread of the prior; for
    blocks with the precision :math:`S` together, and :math:`D` each by itself, it is
    :math:`1 - \min \text{eig}(D^{-1} S)`.

    Parameters
    ----------
    posterior : GroupedPosterior
    joint : JointBlock or None

    References
    ----------
    Papaspiliopoulos, O., Roberts, G. O. and Sköld, M. (2007). A general framework for the
    parametrization of hierarchical models. Statistical Science 22(1), 59-73.

    Roberts, G. O. and Sahu, S. K. (1997). Updating schemes, correlation structure, blocking and
    parameterization for the Gibbs sampler. JRSS B 59(2), 291-317.
    """
    along = tuple(
        max(_stays_with_prior(levels, posterior.anchor), _LEAST) for levels in posterior.factors
    )
    if joint is None:
        return Shares(along, 1.0)
    affordable = joint.affordable
    return Shares(along, min(max(_stays_with_others(posterior, joint), _LEAST), affordable))


def _stays_with_prior(levels: LevelsOfFactor, anchor: NDArray[np.float64]) -> float:
    """Autocorrelation of the spread of the prior; 1 where the prior of a level is not normal."""
    if not levels.prior.is_quadratic:
        return 1.0
    _, curvatures = levels.prior_derivatives(anchor)
    try:
        of_prior = np.linalg.solve(levels.hessians + curvatures, curvatures)
    except np.linalg.LinAlgError:
        return 1.0
    shares = np.trace(of_prior, axis1=1, axis2=2) / levels.entries.shape[1]
    share = float(np.quantile(np.clip(shares, 0.0, 1.0), _OF_LEVELS))
    return 1.0 - (1.0 - share) ** 2


def _stays_with_others(posterior: GroupedPosterior, joint: JointBlock) -> float:
    """Autocorrelation of blocks that are moved one after the other."""
    given, _ = joint.given_levels(posterior, posterior.anchor)
    together = joint.normal(posterior, posterior.anchor).root[0]
    blocks = np.zeros_like(given)
    for own in joint.blocks:
        blocks[own[:, :, None], own[:, None, :]] = given[own[:, :, None], own[:, None, :]]
    try:
        least = eigh(together @ together.T, blocks, eigvals_only=True, subset_by_index=(0, 0))
    except LinAlgError:
        return 1.0
    return float(np.clip(1.0 - least[0], 0.0, 1.0))
