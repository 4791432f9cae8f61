"""Noise that turns a normal variable into a logistic one."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.special import expit, ndtr

__all__ = ["LogisticCorrection", "logistic_correction"]

_RANGE = 20.0
"""Largest correction, nats; a logistic variable exceeds it with probability 2e-9."""

_SPACING = 0.2
"""Spacing of possible corrections, nats. The normal variable added to them fills the gaps."""

_N_POINTS = 400
"""Points at which the distribution functions are matched."""


class LogisticCorrection(NamedTuple):
    """A variable that, added to a normal one, makes a standard logistic variable.

    Attributes
    ----------
    values : float array, shape (n,), nats
        Possible values, increasing.
    cumulative : float array, shape (n,)
        Its distribution function at `values`; the last one is 1.
    error : float
        Largest difference between the distribution function of the sum and the logistic one.
    """

    values: NDArray[np.float64]
    cumulative: NDArray[np.float64]
    error: float

    def draw(self, rng: np.random.Generator) -> float:
        """One correction, nats."""
        return float(self.values[np.searchsorted(self.cumulative, rng.random(), side="right")])


@lru_cache(maxsize=64)
def logistic_correction(standard_deviation: float) -> LogisticCorrection:
    r"""Distribution that turns normal noise into logistic noise, computed numerically.

    Finds probabilities :math:`p_k \ge 0` of symmetric corrections :math:`\pm x_k` such that

    .. math:: \sum_k \frac{p_k}{2} \left[ \Phi\left(\frac{y - x_k}{\sigma}\right)
              + \Phi\left(\frac{y + x_k}{\sigma}\right) \right] \approx \frac{1}{1 + e^{-y}}

    in the sense of least squares over a grid of :math:`y`. No exact solution exists: the
    characteristic function :math:`\pi t / \sinh(\pi t)` of the logistic distribution falls more
    slowly than that of the normal one. The remaining error is part of the result.

    Parameters
    ----------
    standard_deviation : float
        :math:`\sigma` of the normal variable, nats, between 0.5 and 1.2. The error grows with it.

    Returns
    -------
    LogisticCorrection
        A few dozen possible values and their distribution.

    Notes
    -----
    Non-negative least squares leave few values with positive probability. The
    original paper instead solves for a density on a fine grid by ridge regression, and clips
    negative values.

    References
    ----------
    Seita, D., Pan, X., Chen, H. and Canny, J. (2017). An efficient minibatch acceptance test for
    Metropolis-Hastings. UAI, section 4.

    Examples
    --------
    >>> from pymc_austerity.sequential import logistic_correction
    >>> logistic_correction(1.0).error < 1e-6 < logistic_correction(1.2).error
    True
    """
    values = np.arange(0.0, _RANGE + _SPACING / 2.0, _SPACING)
    points = np.linspace(0.0, _RANGE + 4.0, _N_POINTS)
    sums_to_one = np.full(values.size, 100.0)
    matrix = np.vstack([_distribution(points, values, standard_deviation) - 0.5, sums_to_one])
    halves, _ = nnls(matrix, np.append(expit(points) - 0.5, 100.0), maxiter=100 * values.size)
    halves /= halves.sum()
    fine = np.linspace(0.0, 2.0 * _RANGE, 10 * _N_POINTS)
    error = np.abs(_distribution(fine, values, standard_deviation) @ halves - expit(fine)).max()
    kept = halves > 0.0
    return _symmetric(values[kept], halves[kept], float(error))


def _distribution(
    points: NDArray[np.float64], values: NDArray[np.float64], standard_deviation: float
) -> NDArray[np.float64]:
    """Distribution function of normal noise plus or minus each value, at each point."""
    above = ndtr((points[:, None] - values) / standard_deviation)
    below = ndtr((points[:, None] + values) / standard_deviation)
    return np.asarray(0.5 * (above + below))


def _symmetric(
    values: NDArray[np.float64], probabilities: NDArray[np.float64], error: float
) -> LogisticCorrection:
    both = np.concatenate([-values[::-1], values])
    cumulative = np.cumsum(np.concatenate([probabilities[::-1], probabilities]) / 2.0)
    cumulative[-1] = 1.0
    return LogisticCorrection(both, cumulative, error)
