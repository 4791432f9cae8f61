"""The factor of the likelihood ratio that is estimated from the rows of a decision."""

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = [
    "RELATIVE",
    "ROUNDING",
    "Weight",
    "fill_thinned",
    "first_violation",
    "log_weight",
    "thinned",
]

RELATIVE = 1e-6
"""Share of a bound that may be rounding of the bound itself."""
ROUNDING = 1e-9
"""Nats beyond a bound that never count as a violation: rounding of rows of ordinary size."""


class Weight(NamedTuple):
    """Weight of the rows of a decision.

    Attributes
    ----------
    log_weight : float
        Replaces the sum of all residuals, nats.
    violated : int
        Position of the first residual above its bound by more than rounding, -1 for none.
    """

    log_weight: float
    violated: int = -1


def first_violation(
    residuals: NDArray[np.float64], bounds: NDArray[np.float64], rounding: float = ROUNDING
) -> int:
    """Position of the first residual above its bound by more than rounding, -1 for none."""
    within = abs(residuals) <= bounds * (1.0 + RELATIVE) + rounding
    return -1 if within.all() else int(np.argmin(within))


def log_weight(
    residuals: NDArray[np.float64],
    bounds: NDArray[np.float64],
    rng: np.random.Generator,
    rounding: float = ROUNDING,
) -> Weight:
    r"""Logarithm of the factor that replaces the sum of all residuals.

    With residuals r and bounds B that hold for both directions of the move, candidates are kept
    with probability :math:`\phi / B`, :math:`\phi = B - \max(0, r)`, and each one kept adds
    :math:`\log(\psi / \phi)`, :math:`\psi = \phi + r`. Rows that are always read add r.

    Parameters
    ----------
    residuals : float array, shape (n,)
        Differences of log-likelihood minus those of the expansion, nats.
    bounds : float array, shape (m,)
        Bounds of the last m rows, nats; the rows before these are always read.
    rng : numpy.random.Generator
        Gives one uniform number for each candidate.
    rounding : float
        Nats by which rounding may take a residual beyond its bound.

    References
    ----------
    Zhang, R., Cooper, A. F. and De Sa, C. (2020). Asymptotically optimal exact minibatch
    Metropolis-Hastings. NeurIPS, algorithm 1.
    """
    n_read = residuals.size - bounds.size
    total = float(residuals[:n_read].sum()) if n_read else 0.0
    if not bounds.size:
        return Weight(total)
    residuals = residuals[n_read:]
    violated = first_violation(residuals, bounds, rounding)
    if violated >= 0:
        return Weight(-math.inf, n_read + violated)
    return Weight(total + float(thinned(residuals, bounds, rng).sum()))


def thinned(
    residuals: NDArray[np.float64], bounds: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """What each candidate adds to the log weight, 0 for those that are not kept.

    Parameters
    ----------
    residuals, bounds : float array, shape (m,)
        Of the candidates, nats.
    rng : numpy.random.Generator
        Gives one uniform number for each.
    """
    residuals = np.clip(residuals, -bounds, bounds)
    phi = bounds - np.maximum(0.0, residuals)
    kept = rng.random(bounds.size) * bounds < phi
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(kept, np.log1p(residuals / phi), 0.0)


@numba.njit(cache=True, error_model="numpy")
def fill_thinned(
    residuals: NDArray[np.float64],
    bounds: NDArray[np.float64],
    uniform: NDArray[np.float64],
    rounding: float,
    levels: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> int:
    """Add the results of `thinned` to the weights of levels, with given uniform numbers.

    Returns
    -------
    int
        As `first_violation`; the function stops at that position.
    """
    for k in range(bounds.size):
        bound = bounds[k]
        if not abs(residuals[k]) <= bound * (1.0 + RELATIVE) + rounding:
            return k
        residual = min(bound, max(-bound, residuals[k]))
        phi = bound - max(0.0, residual)
        if uniform[k] * bound < phi:
            weights[levels[k]] += math.log1p(residual / phi)
    return -1
