"""Levels, the mean of their prior and a coefficient of a column far from 0 move at once."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import GroupedMH
from pymc_austerity.levels.moves import move_along
from tests.running import assert_moments, built, sample

N, G = 3_000, 150
RNG = np.random.default_rng(2)
GROUP, X = RNG.integers(G, size=N), RNG.normal(size=N)
STATE = RNG.integers(8, size=G)
Y = 3.0 + RNG.normal(size=G)[GROUP] + 0.2 * X + RNG.normal(size=N)


def model(*, far=0.0, nested=False):
    with pm.Model() as model:
        mean = pm.Normal("mu", 0.0, 20.0)
        if nested:
            mean = pm.Normal("state", mean, 0.5, shape=8)[STATE]
        a = pm.Normal("a", mean, pm.HalfNormal("tau"), shape=G)
        eta = a[GROUP] + pm.Normal("b") * (far + 5.0 * X)
        pm.Normal("y", eta, pm.HalfNormal("sigma"), observed=Y)
    return model


def test_a_centered_column_has_no_ridge():
    assert built(model(), GroupedMH).target.sweep.ridges is None


@pytest.mark.parametrize("nested", [False, True])
def test_steps_along_a_ridge_are_those_of_its_conditional_distribution(nested):
    """Everything along it is normal: all of a step's decisions agree with the curvature."""
    target = built(model(far=2_000.0, nested=nested), GroupedMH).target
    ridges = target.sweep.ridges
    (ridge,) = ridges.directions
    np.testing.assert_allclose(ridges.part(ridge), ridge)
    its, first = target.sweep.posterior, target.sweep.posterior.factors[0].entries[0, 0]
    risen = np.isclose(ridge, ridge[first], rtol=0.05)
    assert risen.sum() == G + (9 if nested else 1)
    at, distances = its.anchor, []
    for _ in range(2_000):
        at = move_along(its, 2.4 * ridge, at, RNG).point
        distances.append(float((at - its.anchor)[first] / ridge[first]))
    assert np.std(distances) == pytest.approx(1.0, abs=0.15)


def test_chains_mix_along_a_ridge():
    written = model(far=2_000.0)
    idata = sample(built(written, GroupedMH), written, draws=400, tune=200)
    draws = idata.posterior["b"].values
    assert_moments(draws, *_slope(2_000.0), at_least=60)


def _slope(far):
    """Mean and standard deviation of b; scales are known well enough."""
    sigma, tau = _scales()
    design = np.stack([far + 5.0 * X, np.ones(N)], axis=1)
    counts = np.bincount(GROUP, minlength=G)
    shrink = tau**2 / (sigma**2 + counts * tau**2)
    sums = np.stack([np.bincount(GROUP, column, G) for column in design.T], axis=1)
    totals = np.bincount(GROUP, Y, G)
    precision = (design.T @ design - (sums * shrink[:, None]).T @ sums) / sigma**2
    slope = (design.T @ Y - (sums * shrink[:, None]).T @ totals) / sigma**2
    covariance = np.linalg.inv(precision + np.diag([1.0, 1.0 / 20.0**2]))
    return (covariance @ slope)[0], np.sqrt(covariance[0, 0])


def _scales():
    """Of rows within levels, and of levels."""
    within = Y - 0.2 * X
    means = np.bincount(GROUP, within, G) / np.bincount(GROUP, minlength=G)
    sigma = (within - means[GROUP]).std() * np.sqrt(N / (N - G))
    return sigma, np.sqrt(means.var() - sigma**2 * np.mean(1.0 / np.bincount(GROUP)))
