"""Moves of levels, of common entries, and of both; each leaves the posterior invariant."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels.posterior import GroupedPosterior

__all__ = ["AlongWithLevels", "Moved", "crank_nicolson", "move_common", "move_levels"]


class Moved(NamedTuple):
    """Where a move led.

    Attributes
    ----------
    point : float array, shape (d,)
    accepted : float
        Share of the decisions that accepted.
    n_rows : int
        Rows that were read.
    """

    point: NDArray[np.float64]
    accepted: float
    n_rows: int


def crank_nicolson(
    z: NDArray[np.float64], b: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A move that leaves the standard normal distribution of the last axis invariant.

    Returns
    -------
    there : float array, of the shape of `z`
    log_ratio : float array, of that shape without its last axis
        Density of the proposal backwards to that forwards, in nats.
    """
    there = math.sqrt(1.0 - b * b) * z + b * rng.standard_normal(z.shape)
    return there, 0.5 * (there * there - z * z).sum(axis=-1)


def move_levels(
    posterior: GroupedPosterior,
    factor: int,
    theta: NDArray[np.float64],
    b: float,
    rng: np.random.Generator,
) -> Moved:
    r"""Move all levels of a factor at once, each with a decision of its own.

    Given the rest, levels are independent. Each goes from :math:`z` to
    :math:`\sqrt{1 - b^2} z + b \xi` in the coordinates in which its normal approximation, given
    the rest, is standard.

    Parameters
    ----------
    posterior : GroupedPosterior
    factor : int
        Which one.
    theta : float array, shape (d,)
    b : float
        Size of the move, in (0, 1].
    rng : numpy.random.Generator
    """
    levels = posterior.factors[factor]
    slopes, normals = posterior.level_normals(factor, theta)
    old = theta[levels.entries] - levels.anchor
    z = normals.standard(old)
    there, ratios = crank_nicolson(z, b, rng)
    new = normals.values(there)
    proposed = theta.copy()
    proposed[levels.entries] = levels.anchor + new
    log_ratio = levels.prior_difference(proposed, theta, new, old)
    log_ratio += levels.expansion(slopes, new, old)
    log_ratio += ratios
    weights = posterior.row_weights(factor, proposed, theta, rng)
    accept = -rng.standard_exponential(log_ratio.size) < log_ratio + weights.log_weight
    following = theta.copy()
    moved = levels.entries[accept]
    following[moved] = proposed[moved]
    return Moved(following, float(accept.mean()), weights.n_rows)


def move_common(
    posterior: GroupedPosterior, theta: NDArray[np.float64], b: float, rng: np.random.Generator
) -> Moved:
    """Move the common entries given the levels, about their normal approximation.

    Parameters
    ----------
    posterior, theta, b, rng
        As in `move_levels`.
    """
    common, anchor = posterior.common, posterior.anchor
    assert common is not None
    own = common.entries
    at_anchor = theta.copy()
    at_anchor[own] = anchor[own]
    slope = posterior.expansion.slope(at_anchor)[own] + common.shift
    slope += common.prior_gradient(at_anchor)
    mean = common.root @ (common.root.T @ slope)
    z = common.inverse_root @ (theta[own] - anchor[own] - mean)
    there, ratio = crank_nicolson(z, b, rng)
    proposed = theta.copy()
    proposed[own] = anchor[own] + mean + common.root @ there
    return _decided(posterior, 0, proposed, theta, float(ratio), rng)


class AlongWithLevels:
    r"""Some entries move, and the levels of a factor along with them.

    Levels keep their place in their conditional normal approximation :math:`N(m_g, C_g^{-T}
    C_g^{-1})`, which depends on the entries:
    :math:`a_g' = m_g' + C_g'^{-T} C_g^T (a_g - m_g)`. If it were exact, the decision would
    be that of the entries alone, with the levels integrated out. Where rows say much about a level
    it hardly moves (a centered parametrization), and where they say little it moves with its prior
    (a non-centered one).

    `jump` is one such move, with one decision. `move` decides without reading rows, as if their
    expansion were exact. After any number of these `decide` reads rows once, for what the expansion
    leaves out between the ends.

    Parameters
    ----------
    posterior : GroupedPosterior
    factor : int
        Whose levels move along.
    theta : float array, shape (d,)
    entries : int array
        Entries of other blocks, which move.

    References
    ----------
    Yu, Y. and Meng, X.-L. (2011). To center or not to center: that is not the question.
    Journal of Computational and Graphical Statistics 20(3), 531-570.

    Liu, J. S. (2001). Monte Carlo Strategies in Scientific Computing, section 9.4.3 (the surrogate
    transition method). Springer.
    """

    def __init__(
        self,
        posterior: GroupedPosterior,
        factor: int,
        theta: NDArray[np.float64],
        entries: NDArray[np.int64],
    ) -> None:
        self.entries = entries
        self.theta = theta
        self._posterior = posterior
        self._factor = factor
        self._begun = theta
        levels = posterior.factors[factor]
        _, normals = posterior.level_normals(factor, theta)
        self._kept = normals.standard(theta[levels.entries] - levels.anchor)
        self._volume = float(normals.log_volume.sum())

    def jump(
        self, values: NDArray[np.float64], log_ratio: float, rng: np.random.Generator
    ) -> Moved:
        """One move with its decision; the parameters are those of `move`."""
        proposed, _, log_ratio = self._proposed(values, log_ratio)
        if not math.isfinite(log_ratio):
            return Moved(self.theta, 0.0, 0)
        weights = self._posterior.row_weights(self._factor, proposed, self.theta, rng)
        log_ratio += float(weights.log_weight.sum())
        accept = bool(-rng.standard_exponential() < log_ratio)
        return Moved(proposed if accept else self.theta, float(accept), weights.n_rows)

    def move(self, values: NDArray[np.float64], log_ratio: float, rng: np.random.Generator) -> bool:
        """Propose values of the entries; return whether they were accepted.

        Parameters
        ----------
        values : float array
            Where the entries are to go.
        log_ratio : float
            Density of the proposal backwards to that forwards, in nats.
        rng : numpy.random.Generator
        """
        proposed, volume, log_ratio = self._proposed(values, log_ratio)
        accept = bool(-rng.standard_exponential() < log_ratio)  # not where it is not a number
        if accept:
            self.theta, self._volume = proposed, volume
        return accept

    def _proposed(
        self, values: NDArray[np.float64], log_ratio: float
    ) -> tuple[NDArray[np.float64], float, float]:
        """The point, its volume, and the log-ratio of everything but the residuals of rows."""
        its = self._posterior
        levels = its.factors[self._factor]
        proposed = self.theta.copy()
        proposed[self.entries] = values
        _, normals = its.level_normals(self._factor, proposed)
        proposed[levels.entries] = levels.anchor + normals.values(self._kept)
        volume = float(normals.log_volume.sum())
        log_ratio += volume - self._volume
        log_ratio += float(its.exact_part(proposed, self.theta))
        log_ratio += its.expansion.difference(proposed, self.theta)
        return proposed, volume, log_ratio

    def decide(self, rng: np.random.Generator) -> Moved:
        """Keep all that was accepted, or go back to where it began."""
        if self.theta is self._begun:
            return Moved(self.theta, 0.0, 0)
        weights = self._posterior.row_weights(self._factor, self.theta, self._begun, rng)
        accept = -rng.standard_exponential() < float(weights.log_weight.sum())
        return Moved(self.theta if accept else self._begun, float(accept), weights.n_rows)


def _decided(
    posterior: GroupedPosterior,
    factor: int,
    proposed: NDArray[np.float64],
    theta: NDArray[np.float64],
    log_ratio: float,
    rng: np.random.Generator,
) -> Moved:
    """One decision about all of the proposed point."""
    log_ratio += float(posterior.exact_part(proposed, theta))
    log_ratio += posterior.expansion.difference(proposed, theta)
    if not math.isfinite(log_ratio):
        return Moved(theta, 0.0, 0)
    weights = posterior.row_weights(factor, proposed, theta, rng)
    accept = -rng.standard_exponential() < log_ratio + float(weights.log_weight.sum())
    return Moved(proposed if accept else theta, float(accept), weights.n_rows)
