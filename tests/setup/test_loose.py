"""What is asked of a test where there are no control variates, and what is said about it."""

import pytest

from pymc_austerity import AusterityWarning
from tests.running import built
from tests.step_methods.models import counts, normal_mean, switch_point


@pytest.fixture(scope="module")
def regression():
    return counts(2_000)


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
