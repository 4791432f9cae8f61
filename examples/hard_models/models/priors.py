"""Priors that make the posterior far from normal, or say nothing at all."""

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from examples.hard_models.horseshoe import horseshoe_moments
from examples.hard_models.moments import Moments, quadrature
from examples.hard_models.registry import hard


def _sparse_data() -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(31)
    x = rng.normal(size=(500, 20))
    return x, rng.normal(x[:, :3] @ np.array([1.0, -1.0, 0.3]), 1.0)


@hard(lambda: horseshoe_moments(*_sparse_data()))
def horseshoe() -> None:
    """A horseshoe prior on 20 coefficients, 17 of which are zero."""
    x, y = _sparse_data()
    tau = pm.HalfCauchy("tau", 1.0)
    local = pm.HalfCauchy("local", 1.0, shape=20)
    beta = pm.Normal("beta", 0.0, tau * local, shape=20)
    pm.Normal("y", x @ beta, 1.0, observed=y)


def _kink_data() -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(32)
    x = rng.normal(size=(10_000, 2))
    return x, (rng.random(10_000) < 1.0 / (1.0 + np.exp(-0.05 * x[:, 0]))).astype(int)


def _kink_answer() -> dict[str, Moments]:
    x, y = _kink_data()

    def log_density(b: NDArray, c: NDArray) -> NDArray:
        log_likelihood = (b * (x[:, 0] @ y) + c * (x[:, 1] @ y))[:, 0]
        log_likelihood -= np.logaddexp(0.0, b * x[:, 0] + c * x[:, 1]).sum(axis=1)
        return log_likelihood - (np.abs(b) + np.abs(c))[:, 0] / 0.01

    bounds = {"beta[0]": (-0.2, 0.2), "beta[1]": (-0.2, 0.2)}
    return quadrature(log_density, bounds, size=81, zooms=2)


@hard(_kink_answer)
def narrow_laplace_prior() -> None:
    """A Laplace prior of scale 0.01: a kink at zero, where the posterior lies."""
    x, y = _kink_data()
    beta = pm.Laplace("beta", 0.0, 0.01, shape=2)
    pm.Bernoulli("y", logit_p=(x * beta).sum(axis=1), observed=y)


def _near_bound_data() -> NDArray:
    return np.random.default_rng(33).normal(-0.02, 1.0, size=2_000)


def _near_bound_answer() -> dict[str, Moments]:
    y = _near_bound_data()

    def log_density(mu: NDArray) -> NDArray:
        return -0.5 * y.size * (y.mean() - mu[:, 0]) ** 2

    return quadrature(log_density, {"mu": (0.0, 1.0)}, size=2_001)


@hard(_near_bound_answer)
def posterior_at_a_bound() -> None:
    """A mean with a uniform prior, piled up at the lower bound."""
    mu = pm.Uniform("mu", 0.0, 1.0)
    pm.Normal("y", mu, 1.0, observed=_near_bound_data())


@hard(None)
def separation_with_a_flat_prior() -> None:
    """Logistic regression with separated classes and a flat prior: there is no posterior."""
    x = np.linspace(-1.0, 1.0, 1_000)
    b = pm.Flat("b", initval=0.0)
    pm.Bernoulli("y", logit_p=b * x, observed=(x > 0.0).astype(int))


@hard(None)
def constant_data() -> None:
    """A hundred times the same number, with unknown mean and spread: there is no posterior."""
    mu, sigma = pm.Normal("mu", 0.0, 10.0), pm.HalfNormal("sigma", 1.0)
    pm.Normal("y", mu, sigma, observed=np.full(100, 3.0))
