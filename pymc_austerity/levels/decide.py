"""Decisions on proposed levels, and on proposed points."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels.posterior import GroupedPosterior
from pymc_austerity.levels.sequential import Populations, Verdicts, decide_sequentially

__all__ = ["Moved", "accepted_levels", "decided"]


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
    """

    point: NDArray[np.float64]
    accepted: float
    n_rows: int
    log_ratio: float = -math.inf
    ratios: NDArray[np.float64] = np.empty(0)
    verdicts: Verdicts | None = None


class AcceptedLevels(NamedTuple):
    """Decisions about the levels of a factor.

    Attributes
    ----------
    accept : bool array, shape (G,)
    n_rows : int
        Rows that were read.
    verdicts : Verdicts or None
        Verdicts of sequential tests; None if there were none.
    """

    accept: NDArray[np.bool_]
    n_rows: int
    verdicts: Verdicts | None


def accepted_levels(
    posterior: GroupedPosterior,
    factor: int,
    proposed: NDArray[np.float64],
    theta: NDArray[np.float64],
    log_ratio: NDArray[np.float64],
    rng: np.random.Generator,
) -> AcceptedLevels:
    """Decide on each level of a factor, given its log-ratio without the residuals of rows.

    Parameters
    ----------
    posterior : GroupedPosterior
    factor : int
        Number of the factor.
    proposed, theta : float array, shape (d,)
        Points that differ in all of its levels.
    log_ratio : float array, shape (G,)
        Log acceptance ratio of each level without the residuals of its rows, nats.
    rng : numpy.random.Generator
    """
    weights, tested = posterior.row_weights(factor, proposed, theta, rng)
    log_ratio = log_ratio + weights.log_weight
    left = -rng.standard_exponential(log_ratio.size) - log_ratio
    accept = left < 0.0
    if not tested.size:
        return AcceptedLevels(accept, weights.n_rows, None)
    accept[tested] = False
    tested = tested[np.isfinite(left[tested])]
    populations = Populations.each(tested, posterior.factors[factor].rows)
    verdicts = _tested(posterior, populations, left[populations.levels], proposed, theta, rng)
    accept[populations.levels] = verdicts.above
    return AcceptedLevels(accept, weights.n_rows + verdicts.n_rows, verdicts)


def decided(
    posterior: GroupedPosterior,
    factor: int,
    proposed: NDArray[np.float64],
    theta: NDArray[np.float64],
    log_ratio: float,
    rng: np.random.Generator,
    inflation: float,
) -> Moved:
    """One decision on the whole proposed point, given its log-ratio without the residuals."""
    if not math.isfinite(log_ratio):
        return Moved(theta, 0.0, 0)
    weights, tested = posterior.row_weights(factor, proposed, theta, rng, inflation, together=True)
    log_ratio += float(weights.log_weight.sum())
    left = -rng.standard_exponential() - log_ratio
    accept, n_rows, verdicts = left < 0.0, weights.n_rows, None
    if tested.size:
        accept = False
        if math.isfinite(left):
            populations = Populations.together(tested, posterior.factors[factor].rows)
            verdicts = _tested(posterior, populations, np.array([left]), proposed, theta, rng)
            accept = bool(verdicts.above[0])
            n_rows += verdicts.n_rows
            log_ratio += float(verdicts.means[0] * populations.sizes[0])
    following = proposed if accept else theta
    return Moved(following, float(accept), n_rows, log_ratio, weights.ratios, verdicts)


def _tested(
    posterior: GroupedPosterior,
    populations: Populations,
    left: NDArray[np.float64],
    proposed: NDArray[np.float64],
    theta: NDArray[np.float64],
    rng: np.random.Generator,
) -> Verdicts:
    """Test sequentially whether sums of residuals are above their thresholds."""
    return decide_sequentially(
        populations,
        lambda rows: posterior.residuals(proposed, theta, rows),
        left / populations.sizes,
        posterior.sequential,
        rng,
    )
