"""What is asked of a test where there are no control variates, and what is said about it."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH, AusterityWarning
from tests.step_methods.models import normal_mean, switch_point


def built(model, **settings):
    with model:
        return AusterityMH(**settings)


@pytest.fixture(scope="module")
def regression():
    """Poisson counts whose posterior a test for single looks widens by half."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=2_000)
    with pm.Model() as model:
        a, b = pm.Normal("a"), pm.Normal("b")
        pm.Poisson("y", pm.math.exp(a + b * x), observed=rng.poisson(np.exp(0.5 + 0.3 * x)))
    return model


def test_without_control_variates_all_rows_decide(regression):
    step = built(regression, control_variates=None)
    assert "on all rows, which is exact" in step.summary
    assert "Cost: all 2,000 rows per decision; set-up took " in step.summary
    assert "(epsilon=0), the default without control variates." in step.explain()
    assert step.constants["epsilon"] == 0.0
    step = built(switch_point())
    assert step.target.sampling.is_exact
    assert "There are no control variates because" in step.summary
    assert step.summary.splitlines()[0].endswith("as pm.Mixture does.")


@pytest.mark.parametrize("settings", [{"batch_size": 100}, {"sampling": "fresh"}])
def test_some_rows_decide_by_a_test_for_whole_decisions(regression, settings):
    step = built(regression, control_variates=None, **settings)
    assert step.constants["max_error"] == 0.01
    assert step.decider.worst_case.worst_error <= 0.01


def test_epsilon_is_obeyed_and_what_it_leads_to_is_said(regression):
    with pytest.warns(AusterityWarning, match=r"epsilon=0.05 bounds .* about 1\d% of all dec"):
        step = built(regression, control_variates=None, epsilon=0.05, batch_size=100)
    assert step.constants["epsilon"] == 0.05
    assert not step.target.sampling.is_exact


def test_with_control_variates_single_looks_decide():
    assert built(normal_mean(), sampling="strata").constants["epsilon"] == 0.05
    built(normal_mean(), epsilon=0.05)
