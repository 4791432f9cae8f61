"""Generalized linear models."""

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from pytensor.tensor import TensorVariable

from examples.families.models.data import N_ROWS, coin, columns
from examples.families.registry import family


def linear(x: NDArray) -> TensorVariable:
    """An intercept and a coefficient for each column."""
    return pm.Normal("a", 0.0, 2.0) + x @ pm.Normal("b", 0.0, 2.0, shape=x.shape[1])


@family()
def logistic_with_dims() -> None:
    """Logistic regression with coords, dims and pm.Data."""
    rng, x, eta = columns(1)
    model = pm.modelcontext(None)
    model.add_coords({"row": np.arange(N_ROWS), "column": list("pqrs")})
    design = pm.Data("design", x, dims=("row", "column"))
    a, b = pm.Normal("a", 0.0, 2.0), pm.Normal("b", 0.0, 2.0, dims="column")
    pm.Bernoulli("y", logit_p=a + design @ b, observed=coin(rng, eta), dims="row")


@family()
def probit() -> None:
    """Probit regression."""
    rng, x, eta = columns(2)
    y = (eta + rng.standard_normal(N_ROWS) > 0.0).astype(int)
    pm.Bernoulli("y", p=pm.math.invprobit(linear(x)), observed=y)


@family()
def binomial() -> None:
    """Binomial regression, successes of several trials."""
    rng, x, eta = columns(3)
    trials = rng.integers(1, 20, size=N_ROWS)
    y = rng.binomial(trials, 1.0 / (1.0 + np.exp(-eta)))
    pm.Binomial("y", n=trials, logit_p=linear(x), observed=y)


@family()
def normal() -> None:
    """Linear regression with an unknown standard deviation."""
    rng, x, eta = columns(4)
    y = rng.normal(eta, 0.7)
    pm.Normal("y", linear(x), pm.HalfNormal("sigma", 2.0), observed=y)


@family()
def heteroscedastic() -> None:
    """Linear regression whose log standard deviation is linear, too."""
    rng, x, eta = columns(5)
    y = rng.normal(eta, np.exp(-0.5 + 0.3 * x[:, 0]))
    log_sigma = pm.Normal("c", 0.0, 2.0) + x @ pm.Normal("d", 0.0, 1.0, shape=x.shape[1])
    pm.Normal("y", linear(x), pm.math.exp(log_sigma), observed=y)


@family()
def robust() -> None:
    """Robust regression, Student's t with unknown degrees of freedom."""
    rng, x, eta = columns(6)
    y = eta + 0.7 * rng.standard_t(4.0, size=N_ROWS)
    nu, sigma = pm.Gamma("nu", 2.0, 0.1), pm.HalfNormal("sigma", 2.0)
    pm.StudentT("y", nu=nu, mu=linear(x), sigma=sigma, observed=y)


@family()
def quantile() -> None:
    """Quantile regression, asymmetric Laplace."""
    rng, x, eta = columns(7)
    y = eta + rng.laplace(0.0, 0.7, size=N_ROWS)
    b = pm.HalfNormal("scale", 2.0)
    pm.AsymmetricLaplace("y", mu=linear(x), b=1.0 / b, q=0.7, observed=y)


@family()
def poisson_with_exposure() -> None:
    """Poisson regression with exposure and an offset."""
    rng, x, eta = columns(8)
    exposure, offset = rng.uniform(0.5, 3.0, size=N_ROWS), 0.2 * rng.standard_normal(N_ROWS)
    y = rng.poisson(exposure * np.exp(eta + offset))
    pm.Poisson("y", exposure * pm.math.exp(linear(x) + offset), observed=y)


@family()
def negative_binomial() -> None:
    """Negative binomial regression."""
    rng, x, eta = columns(9)
    y = rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, size=N_ROWS))
    alpha = pm.Exponential("alpha", 0.5)
    pm.NegativeBinomial("y", mu=pm.math.exp(linear(x)), alpha=alpha, observed=y)


@family()
def gamma() -> None:
    """Gamma regression with a log link."""
    rng, x, eta = columns(10)
    y = rng.gamma(3.0, np.exp(eta) / 3.0)
    alpha = pm.Exponential("alpha", 0.2)
    pm.Gamma("y", alpha=alpha, beta=alpha / pm.math.exp(linear(x)), observed=y)


@family()
def beta() -> None:
    """Beta regression."""
    rng, x, eta = columns(11)
    mean = 1.0 / (1.0 + np.exp(-eta))
    y = rng.beta(8.0 * mean, 8.0 * (1.0 - mean)).clip(1e-6, 1.0 - 1e-6)
    mu, nu = pm.math.invlogit(linear(x)), pm.HalfNormal("nu", 20.0)
    pm.Beta("y", alpha=mu * nu, beta=(1.0 - mu) * nu, observed=y)


@family()
def several_normal_responses() -> None:
    """Three normal responses in each of 2,000 rows, with an unknown covariance (LKJ)."""
    rng, x, eta = columns(12)
    x, eta = x[:2_000], eta[:2_000]
    covariance = np.array([[1.0, 0.4, 0.1], [0.4, 0.8, 0.0], [0.1, 0.0, 0.5]])
    y = eta[:, None] + rng.multivariate_normal(np.zeros(3), covariance, size=2_000)
    b = pm.Normal("b", 0.0, 2.0, shape=(x.shape[1] + 1, 3))
    chol, _, _ = pm.LKJCholeskyCov("chol", n=3, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
    pm.MvNormal("y", mu=np.c_[np.ones(2_000), x] @ b, chol=chol, observed=y)
