"""Small models that the tests of the step methods share."""

import numpy as np
import pymc as pm

N_ROWS = 2_000


def normal_of(y, spread=1.0, sigma=1.0, **more):
    """One unknown: the mean of given values."""
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0.0, spread), sigma, observed=y, **more)
    return model


def normal_mean(n_rows=N_ROWS, seed=1):
    """A normal mean, whose posterior is known."""
    y = np.random.default_rng(seed).normal(1.0, 2.0, size=n_rows)
    return normal_of(y, spread=10.0, sigma=2.0)


def mean_of(model):
    """Mean and standard deviation of the posterior of `normal_mean`."""
    y = np.asarray(model.rvs_to_values[model["y"]].data)
    precision = 1 / 10.0**2 + y.size / 2.0**2
    return (y.sum() / 2.0**2) / precision, precision**-0.5


def logistic(n_rows, coefficients, seed, prior_sd=1.0, dtype="float64"):
    """A logistic regression with standard normal covariates."""
    rng, n_columns = np.random.default_rng(seed), len(coefficients)
    x = rng.normal(size=(n_rows, n_columns)).astype(dtype)
    y = rng.random(n_rows) < 1.0 / (1.0 + np.exp(-x @ coefficients))
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, prior_sd, shape=n_columns)
        pm.Bernoulli("y", logit_p=x @ beta, observed=y)
    return model


def wide(n_rows=2_000, n_columns=150):
    """So many columns that decisions need most of the rows."""
    return logistic(n_rows, np.eye(n_columns)[0], seed=8, prior_sd=0.2)


def counts(n_rows):
    """A Poisson regression, whose posterior a loose test of single looks widens by half."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=n_rows)
    with pm.Model() as model:
        a, b = pm.Normal("a"), pm.Normal("b")
        pm.Poisson("y", pm.math.exp(a + b * x), observed=rng.poisson(np.exp(0.5 + 0.3 * x)))
    return model


def normal_regression(n_rows=N_ROWS, seed=2):
    """Three coefficients and an unknown noise scale."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 3))
    y = x @ [0.5, -0.3, 0.2] + rng.normal(size=n_rows)
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=3)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", x @ beta, sigma, observed=y)
    return model


def changing_data(n_rows=N_ROWS, seed=3):
    """A regression on pm.Data, which can be set anew."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n_rows)
    with pm.Model() as model:
        data = pm.Data("x", x)
        beta = pm.Normal("beta")
        pm.Normal("y", beta * data, 1.0, observed=2.0 * x + rng.normal(size=n_rows))
    return model


def switch_point(n_rows=N_ROWS, seed=4):
    """An integer and a binary unknown beside a real one."""
    rng = np.random.default_rng(seed)
    t = np.arange(n_rows)
    y = rng.normal(np.where(t < n_rows // 4, 0.0, 1.0), 1.0)
    with pm.Model() as model:
        tau = pm.DiscreteUniform("tau", 0, n_rows)
        flip = pm.Bernoulli("flip", 0.5)
        level = pm.Normal("level")
        pm.Normal("y", pm.math.where(t < tau, 0.0, level) + 0.01 * flip, 1.0, observed=y)
    return model


def groups(n_rows=N_ROWS, seed=5):
    """A hierarchical model."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 5, size=n_rows)
    with pm.Model() as model:
        spread = pm.HalfNormal("spread", 1.0)
        effect = pm.Normal("effect", 0.0, spread, shape=5)
        pm.Normal("y", effect[group], 1.0, observed=rng.normal(np.linspace(-1, 1, 5)[group]))
    return model


def many_levels(n_rows=4_000, n_levels=40, seed=6):
    """A logistic regression with groups, and a coefficient beside them."""
    rng = np.random.default_rng(seed)
    group, x = rng.integers(0, n_levels, size=n_rows), rng.normal(size=n_rows)
    eta = rng.normal(0.3, 0.8, size=n_levels)[group] + 0.5 * x
    with pm.Model() as model:
        mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
        a = pm.Normal("a", mu, tau, shape=n_levels)
        b = pm.Normal("b")
        y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-eta))).astype(np.int64)
        pm.Bernoulli("y", logit_p=a[group] + b * x, observed=y)
    return model
