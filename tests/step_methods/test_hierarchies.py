"""Hierarchies, whose means and scales no row reads."""

import arviz as az
import numpy as np
import pytest

from tests.running import assert_moments, built, sample
from tests.step_methods.quadrature import normal_means
from tests.step_methods.test_grouped_mh import model_of

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
    return model_of("centered", *means)


@pytest.fixture(scope="module")
def run(model):
    step = built(model)
    return step, sample(step, model, draws=4_000, tune=1_000)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["mu", "tau"])
def test_means_and_scales_are_those_of_quadrature(name, means, run):
    mean, sd = normal_means(*means)[name]
    assert_moments(run[1].posterior[name], mean, sd, at_least=800, slack=0.05)


def test_effects_mix_as_well(run):
    assert float(az.ess(run[1].posterior["a"].values[..., 0])) > 1_500
    assert float(run[1].sample_stats["accepted"].mean()) > 0.6


def test_every_draw_moves_what_no_row_reads(run):
    step, idata = run
    assert "Read by no row: [mu, tau_log__]." in step.explain()
    moved = np.diff(idata.posterior["tau"].values, axis=1) != 0.0
    assert moved.mean() > 0.4
