"""Censoring, truncation, missing values and survival."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from tests.zoo.registry import N_COLUMNS, Data, works


@works(predictors=2)
def censored(d: Data) -> None:
    """An upper bound per row."""
    b, s = pm.Normal("b", shape=N_COLUMNS), pm.HalfNormal("s")
    upper = d.rng.uniform(0.5, 1, d.n).astype(d.X.dtype)
    y = np.minimum(d.eta, upper)
    pm.Censored("y", pm.Normal.dist(d.X @ b, s), lower=None, upper=upper, observed=y)


@works(predictors=1)
def censored_gamma(d: Data) -> None:
    """A distribution function that has derivatives and no rules."""
    rate = pm.math.exp(d.X @ pm.Normal("b", shape=N_COLUMNS))
    inner = pm.Gamma.dist(alpha=2.0, beta=rate)
    y = np.minimum(d.rng.gamma(2.0, size=d.n), 3.0)
    pm.Censored("y", inner, lower=None, upper=3.0, observed=y)


@works(predictors=2)
def truncated(d: Data) -> None:
    """Fixed bounds."""
    b, s = pm.Normal("b", shape=N_COLUMNS), pm.HalfNormal("s")
    inner = pm.Normal.dist(d.X @ b, s)
    pm.Truncated("y", inner, lower=-5, upper=5, observed=np.clip(d.eta, -4, 4))


@works(predictors=2)
def missing_observations(d: Data) -> None:
    """Some observations are parameters."""
    y = d.eta.copy()
    y[[3, 10, 11]] = np.nan
    b, s = pm.Normal("b", shape=N_COLUMNS), pm.HalfNormal("s")
    pm.Normal("y", d.X @ b, s, observed=y)


@works(predictors=3)
def missing_covariates(d: Data) -> None:
    """Some covariates are parameters."""
    x = d.X[:, 0].copy()
    x[[2, 5]] = np.nan
    b = pm.Normal("b", shape=2)
    covariate = pm.Normal("x", pm.Normal("mx"), 1.0, observed=x)
    pm.Normal("y", b[0] + b[1] * covariate, 1.0, observed=d.eta)


@works(predictors=2)
def survival_with_a_potential(d: Data) -> None:
    """Masked rows in the likelihood, the censored ones in a potential."""
    t, is_censored = d.rng.weibull(2, d.n), d.binary().astype(bool)
    b, a = pm.Normal("b", shape=N_COLUMNS), pm.Exponential("a", 1)
    scale = pm.math.exp(d.X @ b)
    pm.Weibull("y", alpha=a, beta=scale[~is_censored], observed=t[~is_censored])
    pm.Potential("cens", -((t[is_censored] / scale[is_censored]) ** a))


@works(predictors=1)
def survival_by_hand(d: Data) -> None:
    """A hand-written likelihood with a condition per row."""
    t, event = d.rng.exponential(1, d.n), d.binary()

    def log_density(value, rate):
        return pt.where(pt.eq(event, 1), pt.log(rate), 0.0) - rate * value

    rate = pm.math.exp(pt.clip(d.X @ pm.Normal("b", shape=N_COLUMNS), -5, 5))
    pm.CustomDist("t", rate, logp=log_density, observed=t)
