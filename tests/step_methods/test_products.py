"""Coefficients that rows read as products with a scale: `AusterityMH` moves the products."""

import pickle

import arviz as az
import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH

N, D = 4_000, 3
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, D))
Y = X @ np.array([0.6, -0.3, 0.1]) + RNG.normal(size=N)
RUN = {"cores": 1, "progressbar": False, "random_seed": 3, "compute_convergence_checks": False}


def build(n_rows=N):
    with pm.Model() as model:
        tau, z = pm.HalfNormal("tau"), pm.Normal("z", shape=D)
        pm.Normal("y", X[:n_rows] @ (tau * z), 1.0, observed=Y[:n_rows])
    return model


@pytest.fixture(scope="module")
def run():
    with build():
        step = AusterityMH()
        return step, pm.sample(draws=4_000, tune=1_000, chains=2, step=step, **RUN)


def by_quadrature():
    """Means and standard deviations of tau and of z: given tau they are normal."""
    taus = np.linspace(0.002, 4.0, 4_000)
    log_density, means, squares = np.empty(taus.size), [], []
    for i, tau in enumerate(taus):
        precision = tau**2 * X.T @ X + np.eye(D)
        mean = np.linalg.solve(precision, tau * X.T @ Y)
        log_density[i] = 0.5 * mean @ precision @ mean - 0.5 * np.linalg.slogdet(precision)[1]
        log_density[i] -= 0.5 * tau**2
        means.append(mean)
        squares.append(mean**2 + np.diag(np.linalg.inv(precision)))
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    first = np.column_stack([taus, np.array(means)])
    second = np.column_stack([taus**2, np.array(squares)])
    return weights @ first, np.sqrt(weights @ second - (weights @ first) ** 2)


def test_draws_have_the_posterior(run):
    step, idata = run
    assert step.coordinates.names == ("z",)
    means, sds = by_quadrature()
    draws = np.concatenate([idata.posterior["tau"].values[..., None], idata.posterior["z"]], axis=2)
    for k in range(1 + D):
        own = draws[..., k]
        error = own.std() / np.sqrt(float(az.ess(own)))
        assert abs(own.mean() - means[k]) < 4.5 * error
        spread = (own - own.mean()) ** 2
        error = spread.std() / np.sqrt(float(az.ess(spread)))
        assert abs(spread.mean() - sds[k] ** 2) < 4.5 * error


def test_says_so(run):
    step, _ = run
    assert "Moved as products with their scales (centered): z." in step.explain()


def test_copies_sample_the_same(run):
    step, _ = run
    runs = []
    for own in (step, pickle.loads(pickle.dumps(step))):
        own.set_rng(np.random.default_rng(1))
        point, found = build().initial_point(), []
        for _ in range(20):
            point, _ = own.step(point)
            found.append(point["z"])
        runs.append(np.array(found))
    np.testing.assert_array_equal(*runs)


def test_goes_on_with_an_earlier_run(run):
    _, idata = run
    with build():
        step = AusterityMH(resume=idata)
        more = pm.sample(draws=2_000, tune=0, chains=2, step=step, **RUN)
    means, sds = by_quadrature()
    own = more.posterior["tau"].values
    error = own.std() / np.sqrt(float(az.ess(own)))
    assert abs(own.mean() - means[0]) < 4.5 * error
    last = idata.posterior.isel(draw=-1)["z"].values @ np.ones(D)
    first = more.posterior.isel(draw=0)["z"].values @ np.ones(D)
    assert np.abs(first[:, None] - last).min(axis=1).max() < 4.0 * sds[1:].sum()


def test_few_rows_are_left_as_they_are():
    with build(n_rows=100):
        assert AusterityMH().coordinates.names == ()
