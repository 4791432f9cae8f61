"""Hierarchies, whose means and scales no row reads."""

import arviz as az
import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH
from tests.running import QUIET
from tests.step_methods.quadrature import normal_means

N_GROUPS, N_PER_GROUP = 8, 600


@pytest.fixture(scope="module")
def means():
    """Averages of each group, and the observations."""
    rng = np.random.default_rng(5)
    effect = rng.normal(1.0, 0.6, N_GROUPS)
    group = np.repeat(np.arange(N_GROUPS), N_PER_GROUP)
    y = effect[group] + rng.normal(size=group.size)
    return group, y


@pytest.fixture(scope="module")
def model(means):
    group, y = means
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        tau = pm.HalfNormal("tau", 1.0)
        a = pm.Normal("a", mu, tau, shape=N_GROUPS)
        pm.Normal("y", a[group], 1.0, observed=y)
    return model


@pytest.fixture(scope="module")
def run(model):
    with model:
        step = AusterityMH()
        settings = {"draws": 4_000, "tune": 1_000, "chains": 2, "cores": 1, "random_seed": 3}
        return step, pm.sample(step=step, **settings, **QUIET)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["mu", "tau"])
def test_means_and_scales_are_those_of_quadrature(name, means, run):
    draws = run[1].posterior[name]
    mean, sd = normal_means(*means)[name]
    ess = float(az.ess(draws.values))
    assert ess > 800
    assert abs(float(draws.mean()) - mean) < 4 * sd / np.sqrt(ess)
    ess_of_spread = float(az.ess(draws.values, method="sd"))
    assert float(draws.std()) == pytest.approx(sd, rel=4 / np.sqrt(2 * ess_of_spread) + 0.05)


def test_effects_mix_as_well(run):
    assert float(az.ess(run[1].posterior["a"].values[..., 0])) > 1_500
    assert float(run[1].sample_stats["accepted"].mean()) > 0.6


def test_every_draw_moves_what_no_row_reads(run):
    step, idata = run
    assert "Read by no row: [mu, tau_log__]." in step.explain()
    moved = np.diff(idata.posterior["tau"].values, axis=1) != 0.0
    assert moved.mean() > 0.4


def test_a_state_goes_on_where_it_was_taken(model, run):
    step, _ = run
    step.set_rng(np.random.default_rng(1))
    point = model.initial_point()
    for _ in range(5):
        point, _ = step.step(point)
    state, again = step.sampling_state, []
    for _ in range(2):
        step.sampling_state, here = state, point
        for _ in range(10):
            here, _ = step.step(here)
        again.append(np.concatenate([np.ravel(value) for value in here.values()]))
    np.testing.assert_array_equal(*again)
