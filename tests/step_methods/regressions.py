"""Regressions of 20,000 rows on an intercept and three covariates, of several families."""

import numpy as np
import pymc as pm
from scipy.special import expit

N_ROWS, COEFFICIENTS = 20_000, np.array([0.4, -0.3, 0.2, 0.0])


def normal(predictor, eta, rng):
    pm.Normal("y", predictor, pm.HalfNormal("sigma", 1.0), observed=eta + rng.normal(size=N_ROWS))


def normal_of_known_scale(predictor, eta, rng):
    pm.Normal("y", predictor, 0.7, observed=eta + 0.7 * rng.normal(size=N_ROWS))


def logistic(predictor, eta, rng):
    pm.Bernoulli("y", logit_p=predictor, observed=rng.random(N_ROWS) < expit(eta))


def poisson(predictor, eta, rng):
    pm.Poisson("y", pm.math.exp(predictor), observed=rng.poisson(np.exp(eta)))


def student_t(predictor, eta, rng):
    sigma, nu = pm.HalfNormal("sigma", 1.0), pm.Gamma("nu", 2.0, 0.1)
    observed = eta + 0.5 * rng.standard_t(4, size=N_ROWS)
    pm.StudentT("y", nu=nu, mu=predictor, sigma=sigma, observed=observed)


def covariates(rng):
    return np.column_stack([np.ones(N_ROWS), rng.normal(size=(N_ROWS, 3))])


def regression(write, seed=20_000):
    """The model of a family."""
    rng = np.random.default_rng(seed)
    x = covariates(rng)
    with pm.Model() as model:
        write(x @ pm.Normal("beta", 0.0, 1.0, shape=4), x @ COEFFICIENTS, rng)
    return model
