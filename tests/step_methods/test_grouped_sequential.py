"""`GroupedMH` with sequential tests for rows that have no bounds."""

import functools
from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_austerity import GroupedMH, SettingError, diagnostics
from pymc_austerity.compiled import SequentialSettings
from pymc_austerity.levels.moves import decide_levels
from tests import running
from tests.running import assert_alike, sample

N_GROUPS, N_EACH = 30, 600
N = N_GROUPS * N_EACH


def log_density(value, mean):
    """Of a distribution with heavy tails; the arcus tangent has no rule for bounds."""
    away = value - mean
    return -pt.log(pt.cosh(away) + 0.1 * pt.arctan(away) ** 2 + 1.0)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(3)
    group, x = np.repeat(np.arange(N_GROUPS), N_EACH), rng.normal(size=N)
    y = rng.normal(0.3, 0.5, size=N_GROUPS)[group] + 0.2 * x + rng.logistic(size=N)
    with pm.Model() as model:
        mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
        effect = pm.Normal("effect", mu, tau, shape=N_GROUPS)
        mean = effect[group] + pm.Normal("slope") * x
        pm.CustomDist("y", mean, logp=log_density, observed=y)
    return model


built = functools.partial(running.built, make=GroupedMH, likelihood=["y"])


@pytest.fixture(scope="module")
def steps(model):
    return built(model), built(model, epsilon=0.05, audit=0.05)


@pytest.mark.exhaustive
def test_posterior_is_that_of_exact_decisions(model, steps):
    runs = [sample(step, model, draws=600, tune=400, chains=2) for step in steps]
    used = [float(run.sample_stats["n_rows_used"].mean()) for run in runs]
    assert used[0] > N
    assert used[1] < 0.5 * used[0]
    assert_alike(*runs[::-1], ("mu", "tau", "slope", "effect"), 0.25, 0.22)
    statistics = runs[1].sample_stats
    assert statistics.attrs["test"] == "StudentTTest"
    assert statistics.attrs["epsilon"] == 0.05
    assert statistics["n_wrong"].sum() + statistics["n_audited"].sum() > 0
    table = diagnostics.audit(runs[1])
    assert table.loc["all", "wrong_rate_low"] < 0.05
    words = diagnostics.report(runs[1])
    assert "Every decision is exact" not in words
    assert "Every decision is exact" in diagnostics.report(runs[0])


def test_the_log_says_so(steps):
    exact, tested = (step.summary for step in steps)
    assert "no decision can be wrong" in exact
    assert "for 30 of them by sequential tests with epsilon=0.05 because their rows have" in tested
    assert "decisions can be wrong" in tested


def test_a_tiny_epsilon_decides_as_all_rows_do(steps):
    exact, tested = (step.target.sweep.posterior for step in steps)
    always = replace(tested, sequential=SequentialSettings(1e-300))
    theta, levels = exact.anchor, exact.factors[0].entries
    rng = np.random.default_rng(4)
    accepted = []
    for seed in range(20):
        proposed = theta.copy()
        proposed[levels] += 0.05 * rng.standard_normal(levels.shape)
        known = -abs(rng.standard_normal(len(levels)))
        points, seeds = (proposed, theta), [np.random.default_rng(seed) for _ in range(4)]
        one, two = (
            decide_levels(its, 0, points, known, rng)
            for its, rng in zip((exact, always), seeds[:2], strict=True)
        )
        assert np.array_equal(one.accept, two.accept)
        assert one.n_rows == N >= two.n_rows
        both = [
            decide_levels(its, 0, points, np.array([-1.0]), rng, together=True)
            for its, rng in zip((exact, always), seeds[2:], strict=True)
        ]
        assert both[0].accept == both[1].accept
        np.testing.assert_allclose(both[0].log_ratio, both[1].log_ratio, atol=0.05)
        accepted += [one.accept.mean(), both[0].accept.mean()]
    assert 0.05 < np.mean(accepted) < 0.95


def test_rows_with_bounds_have_exact_decisions_whatever_epsilon():
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(200), 50)
    with pm.Model() as model:
        effect = pm.Normal("effect", pm.Normal("mu"), pm.HalfNormal("tau"), shape=200)
        pm.Bernoulli("y", logit_p=effect[group], observed=rng.random(10_000) < 0.4)
    step = built(model, epsilon=0.05, audit=0.1)
    assert "no decision can be wrong, and there is nothing to audit." in step.summary
    assert step.constants["epsilon"] == step.constants["audit"] == 0.0


@pytest.mark.parametrize("settings", [{"epsilon": 0.7}, {"epsilon": -0.1}, {"audit": 2.0}])
def test_refuses(model, settings):
    with pytest.raises(SettingError, match=next(iter(settings))):
        built(model, **settings)
