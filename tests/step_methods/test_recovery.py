"""Regressions of 20,000 rows: posterior means agree with NUTS on all the data."""

import arviz as az
import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH
from tests.running import QUIET

N_ROWS, COEFFICIENTS = 20_000, np.array([0.4, -0.3, 0.2, 0.0])


def linear(x, eta, rng):
    y = eta + rng.normal(size=N_ROWS)
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=4)
        pm.Normal("y", x @ beta, pm.HalfNormal("sigma", 1.0), observed=y)
    return model


def logistic(x, eta, rng):
    y = (rng.random(N_ROWS) < 1 / (1 + np.exp(-eta))).astype("int8")
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=4)
        pm.Bernoulli("y", logit_p=x @ beta, observed=y)
    return model


def poisson(x, eta, rng):
    y = rng.poisson(np.exp(eta))
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=4)
        pm.Poisson("y", pm.math.exp(x @ beta), observed=y)
    return model


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered in dot:RuntimeWarning")
@pytest.mark.parametrize(
    ("build", "settings"),
    [
        (linear, "paper"),
        (logistic, "defaults"),
        pytest.param(linear, "defaults", marks=pytest.mark.exhaustive),
        pytest.param(logistic, "paper", marks=pytest.mark.exhaustive),
        pytest.param(poisson, "paper", marks=pytest.mark.exhaustive),
        pytest.param(poisson, "defaults", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.few("logistic-defaults")
def test_means_agree_with_nuts(build, settings):
    """PyMC's NUTS warns of overflows where it looks around before it has found its step size."""
    rng = np.random.default_rng(20_000)
    x = np.column_stack([np.ones(N_ROWS), rng.normal(size=(N_ROWS, 3))])
    own = {"control_variates": None} if settings == "paper" else {}
    settings = {"chains": 2, "cores": 2, "random_seed": 7} | QUIET
    with build(x, x @ COEFFICIENTS, rng):
        ours = pm.sample(step=AusterityMH(epsilon=0.01, **own), draws=4_000, tune=1_500, **settings)
        nuts = pm.sample(draws=1_000, tune=500, init="jitter+adapt_diag", **settings)
    for name in ours.posterior.data_vars:
        difference = ours.posterior[name].mean(("chain", "draw")).values
        difference = difference - nuts.posterior[name].mean(("chain", "draw")).values
        variance = sum(az.mcse(idata)[name].values ** 2 for idata in (ours, nuts))
        assert (np.abs(difference) < 4 * np.sqrt(variance)).all()
    share = ours["sample_stats"]["data_fraction"].values.mean()
    assert 0.05 < share < 0.95 if own else share < 0.05
