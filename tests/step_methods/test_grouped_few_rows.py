"""A scale that all rows share, beside many levels with few rows each."""

import arviz as az
import numpy as np
import pymc as pm
import pytest

from pymc_austerity import GroupedMH
from tests.running import QUIET

N_LEVELS, N_EACH = 3_000, 3


@pytest.fixture(scope="module")
def y():
    rng = np.random.default_rng(9)
    return rng.normal(rng.normal(size=(N_LEVELS, 1)), 1.0, size=(N_LEVELS, N_EACH))


@pytest.fixture(scope="module")
def run(y):
    with pm.Model():
        sigma = pm.HalfNormal("sigma", 2.0)
        a = pm.Normal("a", 0.0, 1.0, shape=N_LEVELS)
        level = np.repeat(np.arange(N_LEVELS), N_EACH)
        pm.Normal("y", a[level], sigma, observed=y.ravel())
        step = GroupedMH()
        settings = {"draws": 500, "tune": 300, "chains": 2, "cores": 1, "random_seed": 4}
        return step, pm.sample(step=step, **settings, **QUIET)


def moments(y):
    """Mean and standard deviation of sigma, with the levels integrated out."""
    sigma = np.linspace(0.8, 1.2, 4_001)
    within = ((y - y.mean(axis=1, keepdims=True)) ** 2).sum()
    of_means = sigma**2 / N_EACH + 1.0
    log_density = -N_LEVELS * (N_EACH - 1) * np.log(sigma) - within / (2.0 * sigma**2)
    log_density -= 0.5 * N_LEVELS * np.log(of_means) + (y.mean(axis=1) ** 2).sum() / (
        2.0 * of_means
    )
    weights = np.exp(log_density - log_density.max() - sigma**2 / 8.0)
    mean = np.average(sigma, weights=weights)
    return mean, np.sqrt(np.average((sigma - mean) ** 2, weights=weights))


def test_its_posterior_is_that_of_quadrature(run, y):
    draws = run[1].posterior["sigma"]
    mean, sd = moments(y)
    ess = float(az.ess(draws.values))
    assert ess > 200
    assert abs(float(draws.mean()) - mean) < 4.0 * sd / np.sqrt(ess)
    assert float(draws.std()) == pytest.approx(sd, rel=4.0 / np.sqrt(2.0 * ess))


def test_the_modes_of_levels_are_far_from_where_it_lies(run, y):
    posterior = run[0].target.sweep.posterior
    mean, sd = moments(y)
    anchor = np.exp(posterior.anchor[posterior.common.entries[0]])
    assert abs(anchor - mean) > 5.0 * sd
