"""Mixtures, excess zeros, missing data, and likelihoods that users write by hand."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from examples.families.models.data import N_ROWS, coin, columns
from examples.families.models.generalized import linear
from examples.families.registry import family


@family()
def mixture() -> None:
    """Mixture of two normal distributions, ordered means."""
    rng = np.random.default_rng(61)
    y = np.where(rng.random(N_ROWS) < 0.3, rng.normal(-1.0, 0.6, N_ROWS), rng.normal(1, 1, N_ROWS))
    mu = pm.Normal(
        "mu", 0.0, 2.0, shape=2, transform=pm.distributions.transforms.ordered,
        initval=[-1.0, 1.0],
    )  # fmt: skip
    sigma, w = pm.HalfNormal("sigma", 2.0, shape=2), pm.Dirichlet("w", np.ones(2))
    pm.NormalMixture("y", w=w, mu=mu, sigma=sigma, observed=y)


@family()
def mixture_of_regressions() -> None:
    """Mixture of a regression and of outliers (pm.Mixture)."""
    rng, x, eta = columns(62)
    y = np.where(rng.random(N_ROWS) < 0.1, rng.normal(0.0, 5.0, N_ROWS), rng.normal(eta, 0.5))
    share, sigma = pm.Beta("share", 1.0, 5.0), pm.HalfNormal("sigma", 1.0)
    parts = [pm.Normal.dist(linear(x), sigma), pm.Normal.dist(0.0, 5.0)]
    pm.Mixture("y", w=pt.stack([1.0 - share, share]), comp_dists=parts, observed=y)


@family()
def zero_inflated() -> None:
    """Zero-inflated Poisson regression."""
    rng, x, eta = columns(63)
    y = rng.poisson(np.exp(eta)) * (rng.random(N_ROWS) < 0.7)
    psi = pm.Beta("psi", 1.0, 1.0)
    pm.ZeroInflatedPoisson("y", psi=psi, mu=pm.math.exp(linear(x)), observed=y)


@family()
def zero_inflated_negative_binomial() -> None:
    """Zero-inflated negative binomial regression."""
    rng, x, eta = columns(64)
    y = rng.poisson(np.exp(1.0 + eta) * rng.gamma(3.0, 1.0 / 3.0, size=N_ROWS))
    y *= rng.random(N_ROWS) < 0.7
    psi, alpha = pm.Beta("psi", 1.0, 1.0), pm.Exponential("alpha", 0.2)
    mu = pm.math.exp(linear(x))
    pm.ZeroInflatedNegativeBinomial("y", psi=psi, mu=mu, alpha=alpha, observed=y)


@family()
def hurdle() -> None:
    """Hurdle Poisson regression (pm.HurdlePoisson)."""
    rng, x, eta = columns(65)
    counts = rng.poisson(np.exp(eta))
    while not counts.all():
        counts = np.where(counts, counts, rng.poisson(np.exp(eta)))
    y = counts * (rng.random(N_ROWS) < 0.6)
    psi = pm.Beta("psi", 1.0, 1.0)
    pm.HurdlePoisson("y", psi=psi, mu=pm.math.exp(linear(x)), observed=y)


@family()
def missing_responses() -> None:
    """Linear regression in which 20 responses are missing (a masked array)."""
    rng, x, eta = columns(66)
    y = np.ma.masked_array(rng.normal(eta, 0.7), mask=np.arange(N_ROWS) % 1_000 == 7)
    pm.Normal("y", linear(x), pm.HalfNormal("sigma", 2.0), observed=y)


@family()
def missing_predictors() -> None:
    """Linear regression in which 20 entries of a predictor are missing, with a distribution."""
    rng, x, eta = columns(67)
    z = rng.normal(0.5, 1.0, size=N_ROWS)
    y = rng.normal(eta + 0.8 * z, 0.7)
    z = np.ma.masked_array(z, mask=np.arange(N_ROWS) % 1_000 == 7)
    center, spread = pm.Normal("center", 0.0, 1.0), pm.HalfNormal("spread", 1.0)
    filled = pm.Normal("z", center, spread, observed=z)
    mu = linear(x) + pm.Normal("c", 0.0, 1.0) * filled
    pm.Normal("y", mu, pm.HalfNormal("sigma", 2.0), observed=y)


@family()
def measurement_error() -> None:
    """A predictor that was measured with error: a latent value for each of 1,000 rows."""
    rng = np.random.default_rng(68)
    true = rng.standard_normal(1_000)
    seen, y = rng.normal(true, 0.5), coin(rng, 0.3 + true)
    latent = pm.Normal("latent", 0.0, 1.0, shape=1_000)
    pm.Normal("seen", latent, 0.5, observed=seen)
    a, b = pm.Normal("a", 0.0, 1.0), pm.Normal("b", 0.0, 1.0)
    pm.Bernoulli("y", logit_p=a + b * latent, observed=y)


@family()
def custom_distribution() -> None:
    """A likelihood by pm.CustomDist: exponentially modified Laplace noise."""
    rng, x, eta = columns(69)
    y = eta + rng.gumbel(0.0, 0.6, size=N_ROWS)

    def logp(value, mu, scale):
        z = (value - mu) / scale
        return -pt.log(scale) - z - pt.exp(-z)

    pm.CustomDist("y", linear(x), pm.HalfNormal("scale", 1.0), logp=logp, observed=y)


@family(settings={"likelihood": ["rows"]})
def likelihood_as_potential() -> None:
    """A likelihood by pm.Potential, with one entry for each row, named to AusterityMH."""
    rng, x, eta = columns(70)
    y = coin(rng, eta)
    pm.Potential("rows", pm.logp(pm.Bernoulli.dist(logit_p=linear(x)), y))


@family()
def constraint_as_potential() -> None:
    """Logistic regression with a soft constraint by pm.Potential."""
    rng, x, eta = columns(71)
    b = pm.Normal("b", 0.0, 2.0, shape=x.shape[1])
    pm.Potential("soft", pm.logp(pm.Normal.dist(0.0, 0.01), b.sum()))
    pm.Bernoulli("y", logit_p=pm.Normal("a", 0.0, 2.0) + x @ b, observed=coin(rng, eta))


@family(compared=("slopes",))
def horseshoe() -> None:
    """Logistic regression, 20 coefficients with a horseshoe prior."""
    rng, x, _ = columns(72, 20)
    b = np.zeros(20)
    b[:3] = [1.0, -0.5, 0.3]
    spread, local = pm.HalfCauchy("spread", 0.1), pm.HalfCauchy("local", 1.0, shape=20)
    slopes = pm.Deterministic("slopes", pm.Normal("z", shape=20) * local * spread)
    pm.Bernoulli("y", logit_p=x @ slopes, observed=coin(rng, x @ b))


@family()
def nonlinear() -> None:
    """A dose-response curve with four parameters."""
    rng = np.random.default_rng(73)
    dose = rng.uniform(0.1, 10.0, size=N_ROWS)
    y = rng.normal(1.0 + 4.0 / (1.0 + (dose / 2.0) ** -1.5), 0.5)
    low, rise = pm.Normal("low", 0.0, 3.0), pm.HalfNormal("rise", 5.0)
    half, slope = pm.LogNormal("half", 0.0, 1.0), pm.LogNormal("slope", 0.0, 0.5)
    mu = low + rise / (1.0 + (dose / half) ** (-slope))
    pm.Normal("y", mu, pm.HalfNormal("sigma", 1.0), observed=y)
