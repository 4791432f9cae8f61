"""Firefly Monte Carlo through the step method."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_austerity import FireflyMH
from pymc_austerity.diagnostics import report
from pymc_austerity.errors import SettingError
from tests.running import sample


@pytest.fixture(scope="module")
def run():
    """A Poisson rate, with the gamma posterior that belongs to it."""
    y = np.random.default_rng(1).poisson(0.5, size=2_000)
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2.0, 3.0)
        pm.Poisson("y", rate, observed=y)
        step = FireflyMH()
    posterior = stats.gamma(2.0 + y.sum(), scale=1.0 / (3.0 + y.size))
    return step, posterior, sample(step, model, draws=4_000, tune=1_000)


def test_a_known_posterior(run):
    _, posterior, idata = run
    draws = idata.posterior["rate"].values[:, ::10].ravel()
    assert stats.kstest(draws, posterior.cdf).pvalue > 1e-3


def test_statistics(run):
    step, _, idata = run
    values = idata.sample_stats
    assert (values["n_bright"] <= values["n_rows_used"]).all()
    assert 0 < values["n_bright"].mean() < 50
    assert (values["decision_error"] == 0.0).all()
    assert values.attrs["test"] == "firefly"
    assert "exact Firefly Monte Carlo; no decision can be wrong." in step.summary
    assert "fireflies" in step.explain()
    assert "nothing to audit" in str(report(idata))


def test_several_steps_of_a_draw_add_up():
    y = np.random.default_rng(1).poisson(0.5, size=2_000)
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2.0, 3.0)
        pm.Poisson("y", rate, observed=y)
        step = FireflyMH(steps_per_draw=3)
    values = sample(step, model, draws=50, tune=50).sample_stats
    assert values["n_looks"].max() == 3
    assert (values["n_bright"] <= values["n_rows_used"]).all()


def test_models_without_bounds_are_refused():
    with pm.Model():
        mean = pm.Normal("mean")
        pm.Laplace("y", mean, 1.0, observed=np.random.default_rng(2).normal(size=500))
        with pytest.raises(SettingError, match=r"FireflyMH is not possible .* use AusterityMH\(\)"):
            FireflyMH()
