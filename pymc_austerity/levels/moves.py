"""Moves of levels, of common entries, and of what no predictor depends on, with their decisions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import FEWEST_ROWS, Owners, Verdicts, decide_each
from pymc_austerity.exact import candidates_of
from pymc_austerity.levels.factor import LevelsOfFactor
from pymc_austerity.levels.learned import SplitNormals
from pymc_austerity.levels.posterior import GroupedPosterior
from pymc_austerity.parts import compiled_once

_NONE, _NO = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_)
_SIZE_OF_STEPS, _LEAST_POWER, _LARGEST_POWER = 2.4, -1.0, 1.0
"""Size of steps of random walks, times the root of the dimension, in standard deviations (Gelman,
Roberts and Gilks 1996), and the powers of two between which it varies."""


class Moved(NamedTuple):
    """Result of a move.

    Attributes
    ----------
    point : float array, shape (d,)
    accepted : float
        Share of the decisions that accepted.
    n_rows : int
        Rows that were read.
    log_ratio : float
        Log-ratio of a decision on the whole point, nats.
    ratios : float array, shape (n_candidates,)
        Residuals of its candidates over their bounds.
    verdicts : Verdicts or None
        Verdicts of sequential tests; None if there were none.
    distance : float array
        From the mean of the normal approximation to the moved entries before the move, in
        coordinates in which it is standard.
    drawn : pair of bool arrays, shape (G,)
        Where a step took the place of a draw of a normal approximation, and what was accepted.
    """

    point: NDArray[np.float64]
    accepted: float
    n_rows: int
    log_ratio: float = -math.inf
    ratios: NDArray[np.float64] = np.empty(0)
    verdicts: Verdicts | None = None
    distance: NDArray[np.float64] = np.empty(0)
    drawn: tuple[NDArray[np.bool_], NDArray[np.bool_]] = (_NO, _NO)


class Decided(NamedTuple):
    """Decisions about levels, or one about all of them.

    Attributes
    ----------
    accept : bool array, shape (G,) or (1,)
    n_rows : int
        Rows that were read.
    log_ratio : float array, of the same shape
        Log acceptance ratios, estimated where there was a test, nats.
    ratios : float array, shape (n_candidates,)
        Residuals of candidates over their bounds.
    verdicts : Verdicts or None
        Verdicts of sequential tests; None if there were none.
    """

    accept: NDArray[np.bool_]
    n_rows: int
    log_ratio: NDArray[np.float64]
    ratios: NDArray[np.float64]
    verdicts: Verdicts | None = None


def decide_levels(
    posterior: GroupedPosterior,
    factor: int,
    points: tuple[NDArray[np.float64], NDArray[np.float64]],
    log_ratio: NDArray[np.float64],
    rng: np.random.Generator,
    inflation: float = 1.0,
    *,
    together: bool = False,
) -> Decided:
    """Decide on each level of a factor, or on all together, by a few rows.

    Levels without bounds and with many rows are tested sequentially, if settings permit it.

    Parameters
    ----------
    posterior : GroupedPosterior
    factor : int
        Number of the factor.
    points : tuple of two float arrays, shape (d,)
        The proposed and the current point. For decisions on each level they differ in these alone.
    log_ratio : float array, shape (G,), or (1,) for one decision
        Log acceptance ratios without the residuals of rows, nats.
    rng : numpy.random.Generator
    inflation : float
        Factor of the bounds.
    together : bool
        Whether there is one decision.
    """
    rows, drawn = posterior.factors[factor].rows, posterior.candidates(factor, *points, inflation)
    tested = _NONE
    if posterior.sequential.epsilon and drawn.n_read:
        tested = rows.without_bound(drawn.bounds, FEWEST_ROWS, together=together)
        drawn.bounds[tested] = 0.0
        drawn = candidates_of(rows.starts, drawn.bounds)
    residuals = partial(posterior.residuals, *points)
    weights = rows.weights(residuals, drawn, rng, together=together)
    log_ratio = log_ratio + weights.log_weight
    left = -rng.standard_exponential(log_ratio.size) - log_ratio
    found = Decided(left < 0.0, weights.n_rows, log_ratio, weights.ratios)
    if not tested.size:
        return found
    sums = np.zeros(1, dtype=np.int64) if together else tested
    is_open = np.isfinite(left[sums])
    found.accept[sums] = False
    if not is_open.any():
        return found
    sums, tested = sums[is_open], tested if together else tested[is_open]
    owners = Owners.of(tested, rows.starts, rows.positions, together=together)
    verdicts = decide_each(owners, residuals, left[sums], posterior.sequential, rng)
    found.accept[sums] = verdicts.above
    log_ratio[sums] += verdicts.totals
    return found._replace(n_rows=found.n_rows + verdicts.n_rows, verdicts=verdicts)


def decided(
    posterior: GroupedPosterior,
    factor: int,
    points: tuple[NDArray[np.float64], NDArray[np.float64]],
    log_ratio: float,
    rng: np.random.Generator,
    inflation: float,
) -> Moved:
    """One decision on the whole proposed point, given its log-ratio without the residuals."""
    if not math.isfinite(log_ratio):
        return Moved(points[1], 0.0, 0)
    ratio = np.array([log_ratio])
    its = decide_levels(posterior, factor, points, ratio, rng, inflation, together=True)
    accept = bool(its.accept[0])
    what = its.n_rows, float(its.log_ratio[0]), its.ratios, its.verdicts
    return Moved(points[0] if accept else points[1], float(accept), *what)


def drawn_or_near(
    z: NDArray[np.float64],
    near: NDArray[np.float64] | float,
    rng: np.random.Generator,
    split: SplitNormals | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    r"""Independent draws of known distributions, and steps of a random walk for some.

    Draws never return from a tail that is heavier than normal, and nor do autoregressive moves,
    which aim at the middle; steps of a random walk do. Their lengths vary, because such a tail may
    be much longer than the normal one.

    Parameters
    ----------
    z : float array, shape (G, q)
        Starting values.
    near : float array, shape (G,), or float
        Probability of a step.
    rng : numpy.random.Generator
    split : SplitNormals, optional
        The distributions, of shape (G, q); standard normal ones by default.

    Returns
    -------
    there : float array, shape (G, q)
    log_ratio : float array, shape (G,)
        Density of the proposal backwards to that forwards, in nats.
    is_near : bool array, shape (G,)
        Who makes a step.
    """
    there, log_ratio = rng.standard_normal(z.shape), np.empty(len(z))
    chance = rng.random(len(z))
    chances = near if isinstance(near, np.ndarray) else np.full(len(z), near)
    _fill_moves(
        z,
        SplitNormals.standard(z.shape) if split is None else split,
        chances,
        chance,
        there,
        log_ratio,
    )
    return there, log_ratio, chance == 0.0


@compiled_once
def _fill_moves(
    z: NDArray[np.float64],
    split: SplitNormals,
    near: NDArray[np.float64],
    chance: NDArray[np.float64],
    there: NDArray[np.float64],
    log_ratio: NDArray[np.float64],
) -> None:
    """Make proposals of noise; the chance of those that make a step becomes zero.

    What is left of the chance of the others says on which side of the mode each coordinate is.
    """
    n_levels, q = z.shape
    mode, below, above = split
    for g in range(n_levels):
        log_ratio[g] = 0.0
        if chance[g] < near[g]:
            times = _LEAST_POWER + (_LARGEST_POWER - _LEAST_POWER) * chance[g] / near[g]
            size = _SIZE_OF_STEPS / math.sqrt(q) * 2.0**times
            for j in range(q):
                there[g, j] = z[g, j] + size * there[g, j]
            chance[g] = 0.0
        else:
            left = (chance[g] - near[g]) / (1.0 - near[g])
            for j in range(q):
                share = below[g, j] / (below[g, j] + above[g, j])
                is_below = left < share
                left = left / share if is_below else (left - share) / (1.0 - share)
                away = abs(there[g, j])
                there[g, j] = mode[g, j] + (-below[g, j] if is_below else above[g, j]) * away
                old = z[g, j] - mode[g, j]
                old /= below[g, j] if old < 0.0 else above[g, j]
                log_ratio[g] += 0.5 * (away * away - old * old)


def move_levels(
    posterior: GroupedPosterior,
    factor: int,
    theta: NDArray[np.float64],
    near: NDArray[np.float64] | float,
    rng: np.random.Generator,
    split: SplitNormals | None = None,
) -> Moved:
    r"""Move all levels of a factor at once, each with its own decision.

    Given the rest, the levels are independent. Each is drawn from its normal approximation, given
    the rest, or makes a step of a random walk in the coordinates in which that is standard.

    Parameters
    ----------
    posterior : GroupedPosterior
    factor : int
        Number of the factor.
    theta : float array, shape (d,)
    near : float array, shape (G,), or float
        Probability that a level makes a step.
    rng : numpy.random.Generator
    split : SplitNormals, optional
        What levels are drawn from in these coordinates, of shape (G, q).

    Notes
    -----
    Terms of the row-free part that depend on all levels together, such as the prior of an entry
    that absorbs their mean, have one decision at the end: a surrogate transition (Liu 2001, section
    9.4.3).
    """
    levels = posterior.factors[factor]
    slopes, normals = posterior.level_normals(factor, theta)
    old = theta[levels.entries] - levels.anchor
    distance = normals.standard(old)
    there, ratios, is_near = drawn_or_near(distance, near, rng, split)
    new = normals.values(there)
    proposed = theta.copy()
    proposed[levels.entries] = levels.anchor + new
    prior = levels.prior_difference(proposed, theta, new, old)
    log_ratio = prior + levels.expansion(slopes, new, old)
    log_ratio += ratios
    found = decide_levels(posterior, factor, (proposed, theta), log_ratio, rng)
    accept, n_rows, verdicts = found.accept, found.n_rows, found.verdicts
    following = theta.copy()
    moved = levels.entries[accept]
    following[moved] = proposed[moved]
    if not levels.prior.is_all:
        together = float(posterior.row_free_part(following, theta)) - float(prior[accept].sum())
        if not -rng.standard_exponential() < together:
            accept, following = np.zeros_like(accept), theta
    share = np.count_nonzero(accept) / accept.size
    made = Moved(following, share, n_rows, verdicts=verdicts)
    return made._replace(distance=distance, drawn=(is_near, accept))


def move_common(
    posterior: GroupedPosterior,
    theta: NDArray[np.float64],
    near: NDArray[np.float64] | float,
    rng: np.random.Generator,
    inflation: float = 1.0,
    offset: NDArray[np.float64] | float = 0.0,
) -> Moved:
    """Move the common entries given the levels, about their normal approximation.

    Parameters
    ----------
    posterior, theta, near, rng
        As in `move_levels`, for one decision.
    inflation : float
        Factor of the bounds of rows.
    offset : float array, shape (p,)
        Added to the mean of the normal approximation, standardized.
    """
    common, anchor = posterior.common, posterior.anchor
    assert common is not None
    own = common.entries
    at_anchor = theta.copy()
    at_anchor[own] = anchor[own]
    of_rows = posterior.expansion.gradient[own] + common.products(at_anchor - anchor)
    given = common.given(at_anchor)
    mean = given.root @ (given.root.T @ (of_rows + common.shift + given.gradient))
    old = theta[own] - anchor[own]
    distance = given.inverse_root @ (old - mean)
    there, ratio, is_near = drawn_or_near((distance - offset)[None], near, rng)
    new = mean + given.root @ (there[0] + offset)
    proposed = theta.copy()
    proposed[own] = anchor[own] + new
    log_ratio = float(ratio[0]) + float(posterior.row_free_part(proposed, theta))
    log_ratio += float((new - old).dot(of_rows + common.hessian @ (0.5 * (new + old))))
    moved = decided(posterior, 0, (proposed, theta), log_ratio, rng, inflation)
    return moved._replace(distance=distance, drawn=(is_near, np.array([moved.accepted > 0.0])))


class Ridges(NamedTuple):
    """Directions in which levels, the means of their prior and common entries move at once.

    Attributes
    ----------
    directions : float array, shape (k, d)
        As long as the standard deviation of the posterior along each, given the rest.
    duals : float array, shape (k, d)
        Multipliers of the common entries that tell how far along each direction a point is.
    """

    directions: NDArray[np.float64]
    duals: NDArray[np.float64]

    def part(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """What other moves see of a point if it moved along the directions alone, shape (d,)."""
        return (self.duals @ theta) @ self.directions


def move_along(
    posterior: GroupedPosterior,
    direction: NDArray[np.float64],
    theta: NDArray[np.float64],
    rng: np.random.Generator,
    inflation: float = 1.0,
) -> Moved:
    """One step of a random walk along a direction, with one decision.

    Parameters
    ----------
    posterior, theta, rng, inflation
        As in `move_common`.
    direction : float array, shape (d,)
        As long as a usual step.
    """
    proposed = theta + rng.standard_normal() * direction
    log_ratio = float(posterior.row_free_part(proposed, theta))
    log_ratio += posterior.expansion.difference(proposed, theta)
    return decided(posterior, 0, (proposed, theta), log_ratio, rng, inflation)


@dataclass(frozen=True, eq=False)
class NestedLevels:
    r"""Levels that rise while all levels within them fall, as effects of schools and their classes.

    No row notices :math:`w_r + \delta_r` together with :math:`u_p - \delta_r` for all p within r,
    so that moves of one factor after the other are slow wherever rows determine the sums. Priors
    are normal given everything else, and independent from one r to another: each :math:`\delta_r`
    is drawn from its distribution.

    Attributes
    ----------
    outer, inner : int
        Numbers of the factors.
    columns : (int, int)
        Which entry of a level of each.
    within : int array, shape (G,)
        The level of the outer factor for each level of the inner one.
    """

    outer: int
    inner: int
    columns: tuple[int, int]
    within: NDArray[np.int64]

    def drawn(
        self,
        factors: Sequence[LevelsOfFactor],
        theta: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Draw how far each level of the outer factor rises; reads no rows."""
        (i, j), above, below = self.columns, factors[self.outer], factors[self.inner]
        slope, precision = _slope_and_precision(above, theta, i)
        slope_below, precision_below = _slope_and_precision(below, theta, j)
        slope = slope - np.bincount(self.within, slope_below, slope.size)
        precision = precision + np.bincount(self.within, precision_below, slope.size)
        rises = slope / precision + rng.standard_normal(slope.size) / np.sqrt(precision)
        there = theta.copy()
        there[above.entries[:, i]] += rises
        there[below.entries[:, j]] -= rises[self.within]
        return there


def _slope_and_precision(
    levels: LevelsOfFactor, theta: NDArray[np.float64], column: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Derivative of the normal prior by one entry of each level where it is, and its precision."""
    gradients, curvatures = levels.prior_derivatives(theta)
    away = theta[levels.entries] - levels.anchor
    slopes = gradients[:, column] + np.einsum("gk,gk->g", curvatures[:, column], away)
    return slopes, -curvatures[:, column, column]
