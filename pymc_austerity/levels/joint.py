"""The move of common entries and levels of smaller factors at once, and how often to make it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, eigh

from pymc_austerity.levels.factor import LevelNormals, LevelsOfFactor, normals_of
from pymc_austerity.levels.moves import Moved, crank_nicolson
from pymc_austerity.levels.partly_non_centered import PartlyNonCentered
from pymc_austerity.levels.posterior import GroupedPosterior

_MOST_WORK = 1e8
"""Most multiplications in a sweep, on average."""

_LEAST = 0.1
"""Smallest share of the sweeps."""

_OF_LEVELS = 0.9
"""Quantile, over the levels of a factor, of the prior's share of the precision."""


@dataclass(frozen=True, eq=False)
class JointBlock:
    """Constants of the joint normal approximation of some blocks.

    Levels of crossed factors and common entries depend on each other: if every row reads one of
    each, one can rise and the other fall. Moves of one block at a time are slow in this direction.

    Attributes
    ----------
    entries : int array, shape (s,)
        Common entries, if any, and levels of smaller factors than the first.
    precision : float array, shape (s, s)
        Precision of the rows, and of the row-free part for the common entries, at the anchor.
    between : float array, shape (G, q, s)
        Precision between the levels of the first factor and the entries.
    shift : float array, shape (s,)
        Average change of the gradient of the rows due to the uncertainty of these levels.
    common : int array, shape (p,)
        Which of `entries` are common.
    factors : sequence of (int, int array of shape (G, q))
        Numbers of the factors, and which of `entries` are their levels.
    """

    entries: NDArray[np.int64]
    precision: NDArray[np.float64]
    between: NDArray[np.float64]
    shift: NDArray[np.float64]
    common: NDArray[np.int64]
    factors: Sequence[tuple[int, NDArray[np.int64]]]

    @property
    def affordable(self) -> float:
        """Share of the sweeps that can include this move, which is slow with many entries."""
        work = self.between.size * self.entries.size + self.entries.size**3
        return min(1.0, _MOST_WORK / work)

    @property
    def blocks(self) -> list[NDArray[np.int64]]:
        """Entries that other moves take one after the other, each of shape (n, size)."""
        common = [self.common[None]] if self.common.size else []
        return [*common, *(own for _, own in self.factors)]

    def given_levels(
        self, posterior: GroupedPosterior, theta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Precision, and slope at the anchor, given the levels of the first factor there."""
        at_anchor = self._at_anchor(posterior, theta)
        slope = posterior.expansion.slope(at_anchor, self.entries) + self.shift
        precision = self.precision.copy()
        for number, own in self.factors:
            gradients, curvatures = posterior.factors[number].prior_derivatives(at_anchor)
            slope[own] += gradients
            precision[own[:, :, None], own[:, None, :]] -= curvatures
        if posterior.common is not None:
            slope[self.common] += posterior.common.prior_gradient(at_anchor)
        return precision, slope

    def normal(self, posterior: GroupedPosterior, theta: NDArray[np.float64]) -> LevelNormals:
        """Distribution of the entries minus their anchor, given those of other blocks.

        The levels of the first factor are integrated out.
        """
        precision, slope = self.given_levels(posterior, theta)
        _, levels = posterior.level_normals(0, self._at_anchor(posterior, theta))
        flat = (-1, self.entries.size)
        if self.between.shape[1] == 1:
            half = levels.inverse_root[:, 0] * self.between[:, 0]
        else:
            half = np.matmul(levels.inverse_root, self.between).reshape(flat)
        precision -= half.T @ half
        slope -= levels.mean.ravel() @ self.between.reshape(flat)
        return normals_of(precision[None], slope[None])

    def _at_anchor(
        self, posterior: GroupedPosterior, theta: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The point with the entries and the levels of the first factor at the anchor."""
        first, there = posterior.factors[0], theta.copy()
        there[self.entries] = posterior.anchor[self.entries]
        there[first.entries] = first.anchor
        return there


def move_jointly(
    posterior: GroupedPosterior,
    block: JointBlock,
    theta: NDArray[np.float64],
    correlation: float,
    rng: np.random.Generator,
    inflation: float = 1.0,
    offset: NDArray[np.float64] | float = 0.0,
) -> Moved:
    r"""Move common entries and levels of smaller factors at once, together with the largest factor.

    Parameters
    ----------
    posterior : GroupedPosterior
    block : JointBlock
    theta : float array, shape (d,)
    correlation : float
        Correlation of the proposal with the current position, in coordinates in which the normal
        approximation is standard.
    rng : numpy.random.Generator
    inflation : float
        Factor of the bounds of rows.
    offset : float array, shape (s,)
        Added to the mean of the normal approximation.
    """
    normal, anchor = block.normal(posterior, theta), posterior.anchor[block.entries]
    old = (theta[block.entries] - anchor)[None]
    distance = (old - normal.mean)[0]
    normal = normal._replace(mean=normal.mean + offset)
    z = normal.standard(old)
    there, log_ratio = crank_nicolson(z, correlation, rng)
    along = PartlyNonCentered(posterior, 0, theta, block.entries, inflation=inflation)
    moved = along.jump(anchor + normal.values(there)[0], float(log_ratio[0]), rng)
    return moved._replace(distance=distance)


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
