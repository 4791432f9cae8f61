"""Coefficients that rows read as products with a scale: `AusterityMH` moves the products."""

import pickle

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy.special import softmax

from tests.running import assert_moments, assert_same_moves, built, sample

N, D = 4_000, 3
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, D))
Y = X @ np.array([0.6, -0.3, 0.1]) + RNG.normal(size=N)


def build(n_rows=N):
    with pm.Model() as model:
        tau, z = pm.HalfNormal("tau"), pm.Normal("z", shape=D)
        pm.Normal("y", X[:n_rows] @ (tau * z), 1.0, observed=Y[:n_rows])
    return model


@pytest.fixture(scope="module")
def run():
    model = build()
    step = built(model)
    return step, sample(step, model, draws=4_000, tune=1_000)


def by_quadrature():
    """Means, standard deviations and kurtoses of tau and of z: given tau they are normal."""
    taus = np.linspace(0.002, 4.0, 4_000)
    log_density, means, variances = np.empty(taus.size), [], []
    for i, tau in enumerate(taus):
        precision = tau**2 * X.T @ X + np.eye(D)
        mean = np.linalg.solve(precision, tau * X.T @ Y)
        log_density[i] = 0.5 * mean @ precision @ mean - 0.5 * np.linalg.slogdet(precision)[1]
        log_density[i] -= 0.5 * tau**2
        means.append(np.append(tau, mean))
        variances.append(np.append(0.0, np.diag(np.linalg.inv(precision))))
    weights, within = softmax(log_density), np.array(variances)
    mean = weights @ np.array(means)
    apart = (np.array(means) - mean) ** 2
    variance = weights @ (apart + within)
    fourth = weights @ (apart**2 + 6.0 * apart * within + 3.0 * within**2)
    return mean, np.sqrt(variance), fourth / variance**2


def test_draws_have_the_posterior(run):
    step, idata = run
    assert step.coordinates.names == ("z",)
    means, sds, kurtoses = by_quadrature()
    draws = np.concatenate([idata.posterior["tau"].values[..., None], idata.posterior["z"]], axis=2)
    for k in range(1 + D):
        assert_moments(draws[..., k], means[k], sds[k], at_least=200, kurtosis=kurtoses[k])


def test_says_so(run):
    step, _ = run
    assert "Moved as products with their scales (centered): z." in step.explain()


def test_copies_sample_the_same(run):
    step, _ = run
    assert_same_moves([step, pickle.loads(pickle.dumps(step))], build().initial_point())


def test_goes_on_with_an_earlier_run(run):
    _, idata = run
    model = build()
    more = sample(built(model, resume=idata), model, draws=2_000, tune=0)
    means, sds, _ = by_quadrature()
    own = more.posterior["tau"].values
    error = own.std() / np.sqrt(float(az.ess(own)))
    assert abs(own.mean() - means[0]) < 4.5 * error
    last = idata.posterior.isel(draw=-1)["z"].values @ np.ones(D)
    first = more.posterior.isel(draw=0)["z"].values @ np.ones(D)
    assert np.abs(first[:, None] - last).min(axis=1).max() < 4.0 * sds[1:].sum()


def test_few_rows_are_left_as_they_are():
    assert built(build(n_rows=100)).coordinates.names == ()
