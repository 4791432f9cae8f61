"""Posteriors that numerical integration knows."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm


def normal_means(group: NDArray[np.int64], y: NDArray) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of mu and tau in a hierarchy of normal means.

    Standard normal and half-normal priors; rows of variance 1. Given mu and tau the average of a
    group is normal about mu.
    """
    counts = np.bincount(group)
    averages = np.bincount(group, y) / counts
    mu, tau = np.linspace(-1.5, 3.5, 801), np.linspace(0.002, 4.0, 2_000)
    log_density = norm.logpdf(mu)[:, None] + norm.logpdf(tau)
    for average, count in zip(averages, counts, strict=True):
        spread = np.sqrt(tau**2 + 1.0 / count)
        log_density = log_density + norm.logpdf(average, mu[:, None], spread)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    moments = {}
    for name, values, marginal in [("mu", mu, weights.sum(1)), ("tau", tau, weights.sum(0))]:
        mean = float(marginal @ values)
        moments[name] = mean, float(np.sqrt(marginal @ (values - mean) ** 2))
    return moments
