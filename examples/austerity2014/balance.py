r"""Squared bias and variance of a running mean, as far as a chain can know them while it runs.

Let :math:`P` be the exact Metropolis-Hastings kernel, :math:`\pi` its invariant distribution,
:math:`P_\epsilon` the kernel with the sequential test, and :math:`f` what is averaged. Let
:math:`g` solve Poisson's equation :math:`g - P g = f - \pi f`. Then, whatever the
:math:`\epsilon_t` of each step,

.. math::
    \frac1T \sum_{t=1}^T f(\theta_t) - \pi f
    = \frac1T \sum_t \left[g(\theta_t) - P_{\epsilon_t} g(\theta_{t-1})\right]
    + \frac1T \sum_t (P_{\epsilon_t} - P) g(\theta_{t-1})
    + \frac1T \left[P g(\theta_0) - P g(\theta_T)\right] .

The first term is a martingale, and hence the variance. The last one is the way from the start. The
one in the middle is the bias. With the error :math:`\Delta_\epsilon` of the acceptance probability
(equation 6 of the paper), which an audit on all rows gives,

.. math::
    (P_\epsilon - P) g(\theta)
    = \mathrm{E}_{\theta'} \left[\Delta_\epsilon(\theta, \theta')
      \left(g(\theta') - g(\theta)\right)\right] .

This is the mean of g at the state that the test chooses minus g at the state that all rows
choose, over the random numbers of the decision. To first order f is an eigenfunction of P, with
eigenvalue :math:`\lambda`. Then :math:`g = (f - \pi f) / (1 - \lambda)`, and with the integrated
autocorrelation time :math:`\tau = (1 + \lambda) / (1 - \lambda)`

.. math::
    \mathrm{bias} \approx \frac{\tau + 1}{2} \,
    \mathrm{E}\left[\Delta_\epsilon \left(f(\theta') - f(\theta)\right)\right] ,

the expectation over all steps so far. A random sample of them is audited.

The variance is that of batch means over the whole chain. It includes most of what the way from the
start does to the mean, since the first batches differ from the others.
"""

import numpy as np
from numpy.typing import NDArray

LOOSEST = 0.2
"""The first epsilon."""

FACTOR = 0.5
"""On epsilon, where squared bias exceeds variance."""

N_BATCHES = 20

Floats = NDArray[np.float64]


def following(epsilon: float, squared_bias: float, variance: float) -> float:
    """The next epsilon: half of the present one where squared bias exceeds variance.

    Examples
    --------
    >>> following(0.2, squared_bias=3e-5, variance=1e-5), following(0.2, 1e-5, 3e-5)
    (0.1, 0.2)
    """
    return FACTOR * epsilon if squared_bias > variance else epsilon


def variance_of_mean(values: Floats) -> Floats:
    """Variance of the mean of correlated draws, by batch means.

    Parameters
    ----------
    values : float array, shape (n, k)
        Draws of k quantities, at least `N_BATCHES`.

    Returns
    -------
    float array, shape (k,)

    Examples
    --------
    >>> import numpy as np
    >>> values = np.random.default_rng(1).normal(size=(4_000, 500))
    >>> round(float(4_000 * variance_of_mean(values).mean()), 1)
    1.0
    """
    size = len(values) // N_BATCHES
    batches = values[len(values) - N_BATCHES * size :].reshape(N_BATCHES, size, -1).mean(axis=1)
    variance: Floats = batches.var(axis=0, ddof=1) / N_BATCHES
    return variance


def poisson_factor(values: Floats, steps_per_draw: int) -> Floats:
    r"""Factor :math:`(\tau + 1) / 2` from an effect on one step to one on the mean.

    From the second half of the draws, so that the way from the start does not count as
    autocorrelation.

    Parameters
    ----------
    values : float array, shape (n, k)
        Draws of k quantities, at least twice `N_BATCHES`.
    steps_per_draw : int
        Steps between draws. The autocorrelation time must be longer.

    Returns
    -------
    float array, shape (k,)
    """
    half = values[len(values) // 2 :]
    spread = half.var(axis=0)
    draws = len(half) * variance_of_mean(half) / np.where(spread > 0.0, spread, 1.0)
    factor: Floats = (steps_per_draw * draws + 1.0) / 2.0
    return factor


def squared_bias(effects: Floats, factor: Floats) -> float:
    r"""Squared bias of the running mean, averaged over quantities, without that of the noise.

    Parameters
    ----------
    effects : float array, shape (n, k)
        :math:`\Delta_\epsilon (f(\theta') - f(\theta))` of every audit, for k quantities.
    factor : float array, shape (k,)
        As `poisson_factor` gives it.

    Returns
    -------
    float
        Not biased upward by the variance of the mean of few audits; hence it may be negative. 0
        where fewer than two decisions were audited.

    Examples
    --------
    >>> import numpy as np
    >>> effects = np.random.default_rng(1).normal(0.5, 1.0, size=(50, 400))
    >>> round(squared_bias(effects, np.full(400, 2.0)), 1)
    1.0
    """
    n = len(effects)
    if n < 2:
        return 0.0
    squared = effects.mean(axis=0) ** 2 - effects.var(axis=0, ddof=1) / n
    return float(np.mean(factor**2 * squared))
