"""Firefly Monte Carlo through the step method."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from pymc_austerity import FireflyMH
from pymc_austerity.diagnostics import report
from pymc_austerity.errors import SettingError
from tests.running import built, sample
from tests.zoo.registry import written

Y = np.random.default_rng(1).poisson(0.5, size=2_000)


def poisson():
    pm.Poisson("y", pm.Gamma("rate", 2.0, 3.0), observed=Y)


@pytest.fixture(scope="module")
def run():
    """A Poisson rate, with the gamma posterior that belongs to it."""
    model = written(poisson)
    step = built(model, FireflyMH)
    posterior = stats.gamma(2.0 + Y.sum(), scale=1.0 / (3.0 + Y.size))
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
    model = written(poisson)
    values = sample(built(model, FireflyMH, steps_per_draw=3), model).sample_stats
    assert values["n_looks"].max() == 3
    assert (values["n_bright"] <= values["n_rows_used"]).all()


def test_models_without_bounds_are_refused():
    with pm.Model():
        mean = pm.Normal("mean")
        pm.Laplace("y", mean, 1.0, observed=np.random.default_rng(2).normal(size=20))
        with pytest.raises(SettingError, match=r"FireflyMH is not possible .* use AusterityMH\(\)"):
            FireflyMH()
