"""A scale that all rows share, beside many levels with few rows each."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import GroupedMH
from tests.references import moments_of
from tests.running import assert_moments, sample

N_LEVELS, N_EACH = 3_000, 3


@pytest.fixture(scope="module")
def y():
    rng = np.random.default_rng(9)
    return rng.normal(rng.normal(size=(N_LEVELS, 1)), 1.0, size=(N_LEVELS, N_EACH))


@pytest.fixture(scope="module")
def run(y):
    with pm.Model() as model:
        sigma = pm.HalfNormal("sigma", 2.0)
        a = pm.Normal("a", 0.0, 1.0, shape=N_LEVELS)
        level = np.repeat(np.arange(N_LEVELS), N_EACH)
        pm.Normal("y", a[level], sigma, observed=y.ravel())
        step = GroupedMH()
    return step, sample(step, model, draws=800, tune=300, random_seed=4)


def moments(y):
    """Mean and standard deviation of sigma, with the levels integrated out."""
    sigma = np.linspace(0.8, 1.2, 4_001)
    within = ((y - y.mean(axis=1, keepdims=True)) ** 2).sum()
    of_means = sigma**2 / N_EACH + 1.0
    log_density = -N_LEVELS * (N_EACH - 1) * np.log(sigma) - within / (2.0 * sigma**2)
    log_density -= 0.5 * N_LEVELS * np.log(of_means) + (y.mean(axis=1) ** 2).sum() / (
        2.0 * of_means
    )
    return moments_of(log_density - sigma**2 / 8.0, sigma)


def test_its_posterior_is_that_of_quadrature(run, y):
    assert_moments(run[1].posterior["sigma"], *moments(y), at_least=200)


def test_the_modes_of_levels_are_far_from_where_it_lies(run, y):
    posterior = run[0].target.sweep.posterior
    mean, sd = moments(y)
    anchor = np.exp(posterior.anchor[posterior.common.entries[0]])
    assert abs(anchor - mean) > 5.0 * sd
