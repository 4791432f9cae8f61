"""The move of common entries and levels of smaller factors at once, and how often to make it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    r"""Directions along which blocks depend on each other, and the normal approximation there.

    Levels of crossed factors and common entries depend on each other: if every row reads one of
    each, one can rise and the other fall. Moves of one block at a time are slow in few such
    directions, whatever the number of levels. The columns of :math:`W` are these directions, and
    the entries are :math:`u = u^* + W t + r`, with coordinates :math:`t = V' (u - u^*)`.

    Attributes
    ----------
    entries : int array, shape (s,)
        Common entries, if any, and levels of all factors but the first.
    directions, duals : float array, shape (s, k)
        W and V, with :math:`V' W = I`.
    precision : float array, shape (s, k)
        Product of the precision of the entries at the anchor, without the priors of levels, and
        the directions.
    between : float array, shape (G, q, k)
        The same with the precision between the levels of the first factor and the entries.
    gradient, shift : float array, shape (k,)
        Gradient of the rows at the anchor along the directions, and its average change due to the
        uncertainty of levels.
    common : int array, shape (p,)
        Which of `entries` are common.
    factors : sequence of (int, int array of shape (G, q))
        Numbers of the factors, and which of `entries` are their levels.
    stays : float
        Autocorrelation of a Gibbs sampler of the blocks in the slowest direction.
    """

    entries: NDArray[np.int64]
    directions: NDArray[np.float64]
    duals: NDArray[np.float64]
    precision: NDArray[np.float64]
    between: NDArray[np.float64]
    gradient: NDArray[np.float64]
    shift: NDArray[np.float64]
    common: NDArray[np.int64]
    factors: Sequence[tuple[int, NDArray[np.int64]]]
    stays: float

    @property
    def affordable(self) -> float:
        """Share of the sweeps that can include this move, which is slow with many levels."""
        k = self.gradient.size
        return min(1.0, _MOST_WORK / ((self.between.size + self.directions.size + k * k) * k))

    def split(
        self, posterior: GroupedPosterior, theta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Coordinates along the directions, shape (k,), and what is left of the entries, (s,)."""
        moved = theta[self.entries] - posterior.anchor[self.entries]
        along = self.duals.T @ moved
        return along, moved - self.directions @ along

    def normal(
        self,
        posterior: GroupedPosterior,
        theta: NDArray[np.float64],
        left: NDArray[np.float64],
    ) -> LevelNormals:
        """Distribution of the coordinates given what is left of the entries, and other blocks.

        The levels of the first factor are integrated out.
        """
        k, there = self.gradient.size, theta.copy()
        there[self.entries] = posterior.anchor[self.entries]
        there[posterior.factors[0].entries] = posterior.factors[0].anchor
        slope = self.gradient + self.shift - left @ self.precision
        precision = self.directions.T @ self.precision
        for number, own in self.factors:
            gradients, curvatures = posterior.factors[number].prior_derivatives(there)
            along = self.directions[own]
            curved = np.matmul(curvatures, along).reshape(-1, k)
            along = along.reshape(-1, k)
            slope += gradients.ravel() @ along + left[own].ravel() @ curved
            precision -= along.T @ curved
        if posterior.common is not None:
            slope += posterior.common.prior_gradient(there) @ self.directions[self.common]
        there[self.entries] += left
        _, levels = posterior.level_normals(0, there)
        half = np.matmul(levels.inverse_root, self.between).reshape(-1, k)
        precision -= half.T @ half
        slope -= levels.mean.ravel() @ self.between.reshape(-1, k)
        return normals_of(precision[None], slope[None])


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
    offset : float array, shape (k,)
        Added to the mean of the normal approximation.
    """
    coordinates, left = block.split(posterior, theta)
    normal = block.normal(posterior, theta, left)
    distance = coordinates - normal.mean[0]
    normal = normal._replace(mean=normal.mean + offset)
    there, log_ratio = crank_nicolson(normal.standard(coordinates[None]), correlation, rng)
    values = left + block.directions @ normal.values(there)[0]
    along = PartlyNonCentered(posterior, 0, theta, block.entries, inflation=inflation)
    moved = along.jump(posterior.anchor[block.entries] + values, float(log_ratio[0]), rng)
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
    the joint block it is that of its slowest direction.

    Parameters
    ----------
    posterior : GroupedPosterior
    joint : JointBlock or None

    References
    ----------
    Papaspiliopoulos, O., Roberts, G. O. and Sköld, M. (2007). A general framework for the
    parametrization of hierarchical models. Statistical Science 22(1), 59-73.
    """
    along = tuple(
        max(_stays_with_prior(levels, posterior.anchor), _LEAST) for levels in posterior.factors
    )
    if joint is None:
        return Shares(along, 1.0)
    return Shares(along, min(max(joint.stays, _LEAST), joint.affordable))


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
