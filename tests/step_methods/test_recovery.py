"""Posteriors of regressions agree with NUTS on all the data."""

import pytest

from tests.running import built, sample
from tests.setup.test_defaults import assert_agree, moments
from tests.step_methods.regressions import logistic, normal, poisson, regression, student_t

TEST, PAPER = {"epsilon": 0.01}, {"epsilon": 0.01, "control_variates": None}


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
@pytest.mark.parametrize("settings", [{}, TEST, PAPER], ids=["defaults", "test", "paper"])
@pytest.mark.parametrize("family", [normal, logistic, poisson, student_t])
def test_posteriors_agree_with_nuts(family, settings):
    """PyMC's NUTS warns of overflows where it looks around before it has found its step size."""
    model, run = regression(family), {"cores": 2, "random_seed": 7}
    ours = sample(built(model, **settings), model, draws=8_000, tune=1_500, **run)
    nuts = sample(None, model, draws=1_500, tune=500, init="jitter+adapt_diag", **run)
    assert_agree(moments(ours), moments(nuts), spreads=not settings)
    share = ours["sample_stats"]["data_fraction"].values.mean()
    assert 0.05 < share < 0.95 if settings is PAPER else share < 0.1
    assert settings or moments(ours)[2].min() > 1_000
