"""Moves of levels, and of common entries; each leaves the posterior invariant."""

import math

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels.decide import Moved, accepted_levels, decided
from pymc_austerity.levels.posterior import GroupedPosterior

__all__ = ["crank_nicolson", "move_common", "move_levels"]


def crank_nicolson(
    z: NDArray[np.float64], correlation: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A move that leaves the standard normal distribution of the last axis invariant.

    Parameters
    ----------
    z : float array
        Starting values.
    correlation : float
        Correlation of the new values with the starting values, in (-1, 1).
    rng : numpy.random.Generator

    Returns
    -------
    there : float array, of the shape of `z`
    log_ratio : float array, of that shape without its last axis
        Density of the proposal backwards to that forwards, in nats.
    """
    noise = rng.standard_normal(z.shape)
    there = correlation * z + math.sqrt(1.0 - correlation * correlation) * noise
    return there, 0.5 * (there * there - z * z).sum(axis=-1)


def move_levels(
    posterior: GroupedPosterior,
    factor: int,
    theta: NDArray[np.float64],
    correlation: float,
    rng: np.random.Generator,
) -> Moved:
    r"""Move all levels of a factor at once, each with its own decision.

    Given the rest, the levels are independent. Each goes from :math:`z` to
    :math:`c z + \sqrt{1 - c^2} \xi` in the coordinates in which its normal approximation, given
    the rest, is standard.

    Parameters
    ----------
    posterior : GroupedPosterior
    factor : int
        Number of the factor.
    theta : float array, shape (d,)
    correlation : float
        Correlation of the proposal with the current level, c.
    rng : numpy.random.Generator

    Notes
    -----
    Terms of the exact part that depend on all levels together, such as the prior of an entry that
    absorbs their mean, have one decision at the end: a surrogate transition (Liu 2001, section
    9.4.3).
    """
    levels = posterior.factors[factor]
    slopes, normals = posterior.level_normals(factor, theta)
    old = theta[levels.entries] - levels.anchor
    z = normals.standard(old)
    there, ratios = crank_nicolson(z, correlation, rng)
    new = normals.values(there)
    proposed = theta.copy()
    proposed[levels.entries] = levels.anchor + new
    prior = levels.prior_difference(proposed, theta, new, old)
    log_ratio = prior + levels.expansion(slopes, new, old)
    log_ratio += ratios
    accept, n_rows, verdicts = accepted_levels(posterior, factor, proposed, theta, log_ratio, rng)
    following = theta.copy()
    moved = levels.entries[accept]
    following[moved] = proposed[moved]
    if not levels.prior.is_all:
        together = float(posterior.exact_part(following, theta)) - float(prior[accept].sum())
        if not -rng.standard_exponential() < together:
            return Moved(theta, 0.0, n_rows, verdicts=verdicts)
    return Moved(following, float(accept.mean()), n_rows, verdicts=verdicts)


def move_common(
    posterior: GroupedPosterior,
    theta: NDArray[np.float64],
    correlation: float,
    rng: np.random.Generator,
    inflation: float = 1.0,
) -> Moved:
    """Move the common entries given the levels, about their normal approximation.

    Parameters
    ----------
    posterior, theta, correlation, rng
        As in `move_levels`.
    inflation : float
        Factor of the bounds of rows.
    """
    common, anchor = posterior.common, posterior.anchor
    assert common is not None
    own = common.entries
    at_anchor = theta.copy()
    at_anchor[own] = anchor[own]
    of_rows = posterior.expansion.gradient[own] + common.products(at_anchor - anchor)
    slope = of_rows + common.shift + common.prior_gradient(at_anchor)
    mean = common.root @ (common.root.T @ slope)
    old = theta[own] - anchor[own]
    there, ratio = crank_nicolson(common.inverse_root @ (old - mean), correlation, rng)
    new = mean + common.root @ there
    proposed = theta.copy()
    proposed[own] = anchor[own] + new
    log_ratio = float(ratio) + float(posterior.exact_part(proposed, theta))
    log_ratio += float((new - old).dot(of_rows + common.hessian @ (0.5 * (new + old))))
    return decided(posterior, 0, proposed, theta, log_ratio, rng, inflation)
