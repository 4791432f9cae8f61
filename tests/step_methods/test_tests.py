"""Tests other than the default one, schedules, and errors that are asked for."""

import numpy as np
import pymc as pm
import pytest
from scipy.stats import binom

from pymc_austerity import (
    AusterityMH,
    AusterityWarning,
    BarkerTest,
    EmpiricalBernsteinTest,
    HoeffdingTest,
    ReversibleJumpProposal,
    SettingError,
    StudentTTest,
)
from pymc_austerity.diagnostics import audit, report
from pymc_austerity.sequential import Tightening
from tests.running import assert_moments, built
from tests.running import sample as run
from tests.step_methods.models import mean_of, normal_mean
from tests.step_methods.regressions import logistic, poisson, regression, student_t
from tests.step_methods.test_bad_input import refused

PAPER = {"control_variates": None, "batch_size": 200}


def sample(model, draws=1_000, tune=1_000, chains=2, seed=1, **settings):
    step = built(model, **settings)
    return run(step, model, draws=draws, tune=tune, chains=chains, random_seed=seed)


def largest_difference(model):
    """Bound of the log-likelihood differences of the rows of `normal_mean`."""
    (y,) = (model.rvs_to_values[rv].data for rv in model.observed_RVs)

    def bound(proposed, current):
        ends = np.abs(2.0 * np.array([y.min(), y.max()]) - proposed - current)
        return float(np.abs(proposed - current).max() * ends.max() / 8.0)

    return bound


# ------------------------------------------------------------------ other tests


@pytest.mark.parametrize(
    ("test", "settings"),
    [
        (BarkerTest(), {}),
        (BarkerTest(), PAPER),
        (StudentTTest(0.01, alpha=0.25), PAPER),
        (StudentTTest(0.01), PAPER),
        (HoeffdingTest, {}),
        (EmpiricalBernsteinTest, {}),
    ],
    ids=lambda value: str(getattr(value, "__name__", value))[:24],
)
@pytest.mark.few("BarkerTest(noise=1.0)-{}")
def test_posterior_of_a_normal_mean(test, settings):
    model = normal_mean()
    if isinstance(test, type):
        test = test(largest_difference(model), error_prob=0.05)
    idata = sample(model, draws=4_000, seed=3, test=test, **settings)
    assert_moments(idata.posterior["mu"], *mean_of(model), at_least=200, slack=0.02)
    stats = idata["sample_stats"]
    assert stats.attrs["test"] == type(test).__name__
    np.testing.assert_array_equal(stats["test_epsilon"], getattr(test, "epsilon", np.nan))


def test_bounded_differences_need_uniform_samples_that_double():
    model = normal_mean()
    bound = largest_difference(model)
    step = built(model, test=HoeffdingTest(bound), batch_size=100)
    assert step.anchor is None
    assert "at most 5% of decisions are wrong, if the bound is right" in repr(step)
    idata = sample(model, draws=200, tune=0, test=HoeffdingTest(bound), batch_size=100)
    used = np.unique(idata["sample_stats"]["n_rows_used"])
    assert set(used) <= {100, 200, 400, 800, 1_600, 2_000}


# ------------------------------------------------------------------ schedules


def test_epsilon_as_a_function_of_the_draw():
    idata = sample(
        normal_mean(),
        draws=50,
        tune=30,
        epsilon=lambda draw: 0.4 / (1.0 + draw),
        **PAPER,
    )
    assert np.isnan(idata["sample_stats"].attrs["epsilon"])  # there is not one for all draws
    expected = 0.4 / (1.0 + np.arange(30, 80))
    for chain in idata["sample_stats"]["test_epsilon"].values:
        np.testing.assert_allclose(chain, expected)


@pytest.mark.parametrize("tune", [100, 800])
def test_the_default_tightens_while_tuning_only(tune):
    model = normal_mean()
    step = built(model, epsilon=0.05, **PAPER)
    idata = run(step, model, draws=20, tune=tune, chains=1, discard_tuned_samples=False)
    np.testing.assert_array_equal(idata["sample_stats"]["test_epsilon"], 0.05)
    schedule = Tightening(0.05)
    expected = [schedule(draw) for draw in range(tune)]
    np.testing.assert_allclose(idata["warmup_sample_stats"]["test_epsilon"].values[0], expected)
    assert expected[0] > 0.05


# ------------------------------------------------------------------ an error that is asked for


@pytest.mark.exhaustive
def test_the_test_is_designed_on_decisions_of_the_tuning_phase():
    model = normal_mean(n_rows=10_000)
    step = built(model, max_error=0.02, control_variates=None, audit=0.5)
    idata = run(step, model, draws=800, tune=800, random_seed=1)
    assert "designed while tuning); on average at most 2% of decisions are wrong" in repr(step)
    assert "wrong with a probability of at most 0.02 in the worst case" in step.explain()
    assert f"with epsilon={step.decider.worst_case.epsilon:g} while tuning" in step.explain()
    stats = idata["sample_stats"]
    assert stats.attrs["max_error"] == 0.02
    assert stats.attrs["test"] == "designed"
    assert np.isnan([stats.attrs["epsilon"], stats.attrs["batch_size"]]).all()
    designed = np.unique(stats["test_epsilon"].values, axis=1)
    assert designed.shape == (2, 1)  # one for each chain
    worst = step.decider.worst_case
    assert worst.worst_error <= 0.02
    assert (designed > worst.epsilon).all()
    assert stats["data_fraction"].values.mean() < 0.95
    table = audit(idata)
    assert table.loc["all", "limit"] == 0.02
    assert table.loc["all", "wrong_rate_low"] <= 0.02
    assert "allowed by max_error" in report(idata)


WITHOUT, STRATA = {"control_variates": None}, {"sampling": "strata"}


@pytest.mark.parametrize("kind", [logistic, poisson, student_t])
@pytest.mark.parametrize("settings", [WITHOUT, STRATA])
@pytest.mark.exhaustive
def test_the_audited_error_is_the_one_asked_for(kind, settings):
    idata = sample(
        regression(kind), max_error=0.01, audit=0.5, draws=1_000, tune=600, chains=1, **settings
    )
    row = audit(idata).loc["all"]
    assert row["n_audited"] > 400
    assert row["n_wrong"] <= binom.isf(1e-3, row["n_audited"], 0.01)


# ------------------------------------------------------------------ bad input


def test_rows_that_rule_points_out_are_warned_of():
    """A bound that a few rows know about: mini-batches would walk through it."""
    rng = np.random.default_rng(3)
    y = rng.uniform(0.0, 1.0, size=5_000)
    with pm.Model():
        top = pm.Normal("top", 1.5, 1.0, initval=1.0005)
        pm.Uniform("y", 0.0, top, observed=y)
        with pytest.warns(AusterityWarning, match="make a proposal impossible"):
            AusterityMH(
                control_variates=None, epsilon=0.05, proposal=lambda q, rng: (q - 0.01, 0.0)
            )


def test_a_jump_needs_a_prior_with_point_masses():
    with pm.Model() as model:
        gamma = pm.Bernoulli("gamma", 0.5, shape=2)
        beta = pm.Normal("beta", shape=2)
        x = np.random.default_rng(1).normal(size=(1_000, 2))
        pm.Normal("y", x @ (beta * gamma), 1.0, observed=x[:, 0])
    jump = ReversibleJumpProposal("beta", "gamma")
    refused(SettingError, "point mass", "SpikeAndSlab", model=model, proposal=jump)
