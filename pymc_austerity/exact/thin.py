"""The factor of the likelihood ratio that the rows of a decision stand for."""

import math

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["log_weight"]

_RELATIVE, _ABSOLUTE = 1e-6, 1e-9


@numba.njit(cache=True)
def log_weight(
    residuals: NDArray[np.float64], bounds: NDArray[np.float64], rng: np.random.Generator
) -> tuple[float, int]:
    r"""Logarithm of the factor that takes the place of the sum of all residuals.

    With residuals r and bounds B that hold for both directions of the move, candidates are kept
    with probability :math:`\phi / B`, :math:`\phi = B - \max(0, r)`, and each one kept adds
    :math:`\log(\psi / \phi)`, :math:`\psi = \phi + r`. Rows that are read as they are add r.

    Parameters
    ----------
    residuals : float array, shape (n,)
        Differences of log-likelihood less those of the expansion, nats.
    bounds : float array, shape (n,)
        Their bounds, nats; infinite for rows that are read as they are.
    rng : numpy.random.Generator

    Returns
    -------
    log_weight : float
        Nats.
    violated : int
        Position of the first residual above its bound by more than rounding, -1 for none.

    References
    ----------
    Zhang, R., Cooper, A. F. and De Sa, C. (2020). Asymptotically optimal exact minibatch
    Metropolis-Hastings. NeurIPS, algorithm 1.
    """
    total = 0.0
    for i in range(residuals.size):
        r, bound = residuals[i], bounds[i]
        if bound == math.inf:
            total += r
            continue
        if not abs(r) <= bound * (1.0 + _RELATIVE) + _ABSOLUTE:
            return -math.inf, i
        r = min(bound, max(-bound, r))
        phi = bound - max(0.0, r)
        if rng.random() * bound < phi:
            psi = phi + r
            if psi <= 0.0:
                return -math.inf, -1
            total += math.log(psi / phi)
    return total, -1
