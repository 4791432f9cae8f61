"""Likelihoods whose support depends on the parameters, and rows that are cut off."""

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from scipy.special import log_ndtr

from examples.hard_models.moments import Moments, quadrature
from examples.hard_models.registry import hard


def _pareto_data() -> NDArray:
    return 2.0 * (1.0 + np.random.default_rng(41).pareto(3.0, size=2_000))


def _pareto_answer() -> dict[str, Moments]:
    y = _pareto_data()

    def log_density(alpha: NDArray, m: NDArray) -> NDArray:
        terms = y.size * (np.log(alpha) + alpha * np.log(m)) - alpha * np.log(y).sum()
        return (terms - 0.5 * (alpha**2 + m**2) / 25.0)[:, 0]

    return quadrature(log_density, {"alpha": (0.01, 10.0), "m": (0.01, float(y.min()))})


@hard(_pareto_answer)
def pareto_with_unknown_bound() -> None:
    """Pareto rows whose lower bound is unknown: the support depends on a parameter."""
    alpha, m = pm.HalfNormal("alpha", 5.0), pm.HalfNormal("m", 5.0, initval=1.0)
    pm.Pareto("y", alpha=alpha, m=m, observed=_pareto_data())


def _uniform_data() -> NDArray:
    return np.random.default_rng(42).uniform(0.0, 3.0, size=1_000)


def _uniform_answer() -> dict[str, Moments]:
    y = _uniform_data()

    def log_density(upper: NDArray) -> NDArray:
        return (-y.size * np.log(upper) - 0.5 * upper**2 / 100.0)[:, 0]

    return quadrature(log_density, {"upper": (float(y.max()), 4.0)}, size=2_001)


@hard(_uniform_answer)
def uniform_with_unknown_bound() -> None:
    """Uniform rows whose upper bound is unknown."""
    upper = pm.HalfNormal("upper", 10.0, initval=5.0)
    pm.Uniform("y", 0.0, upper, observed=_uniform_data())


def _truncated_data() -> NDArray:
    y = np.random.default_rng(43).normal(0.0, 1.0, size=4_000)
    return y[y < 0.7][:2_000]


def _truncated_answer() -> dict[str, Moments]:
    y = _truncated_data()
    n, total, squares = y.size, y.sum(), (y**2).sum()

    def log_density(mu: NDArray, upper: NDArray) -> NDArray:
        terms = -0.5 * (squares - 2.0 * mu * total + n * mu**2) - n * log_ndtr(upper - mu)
        return (terms - 0.5 * (mu**2 + upper**2 / 25.0))[:, 0]

    return quadrature(log_density, {"mu": (-3.0, 3.0), "upper": (float(y.max()), 6.0)}, size=401)


@hard(_truncated_answer)
def unknown_truncation() -> None:
    """Normal rows of which those above an unknown bound are missing."""
    mu = pm.Normal("mu", 0.0, 1.0)
    upper = pm.Normal("upper", 0.0, 5.0, initval=2.0)
    pm.Truncated("y", pm.Normal.dist(mu, 1.0), upper=upper, observed=_truncated_data())


def _censored_data() -> NDArray:
    return np.minimum(np.random.default_rng(44).normal(2.0, 1.0, size=5_000), 1.0)


def _censored_answer() -> dict[str, Moments]:
    y = _censored_data()
    seen, n_censored = y[y < 1.0], (y == 1.0).sum()
    n, total, squares = seen.size, seen.sum(), (seen**2).sum()

    def log_density(mu: NDArray, sigma: NDArray) -> NDArray:
        terms = -0.5 * (squares - 2.0 * mu * total + n * mu**2) / sigma**2 - n * np.log(sigma)
        terms += n_censored * log_ndtr((mu - 1.0) / sigma)
        return (terms - 0.5 * (mu**2 / 100.0 + sigma**2 / 4.0))[:, 0]

    return quadrature(log_density, {"mu": (-5.0, 10.0), "sigma": (0.01, 8.0)})


@hard(_censored_answer)
def mostly_censored() -> None:
    """Normal rows of which five in six are censored."""
    mu, sigma = pm.Normal("mu", 0.0, 10.0), pm.HalfNormal("sigma", 2.0)
    rows = pm.Normal.dist(mu, sigma)
    pm.Censored("y", rows, lower=None, upper=1.0, observed=_censored_data())
