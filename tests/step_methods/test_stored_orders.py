"""The order in which rows are stored does not matter, even where decisions err."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy.stats import chi2

from pymc_austerity import AusterityMH
from tests.running import QUIET

N_ORDERS, N_ROWS = 6, 5_000


@pytest.fixture(scope="module")
def model():
    """A posterior whose spread a loose test on single looks increases by half."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=N_ROWS)
    with pm.Model() as model:
        a, b = pm.Normal("a"), pm.Normal("b")
        pm.Poisson("y", pm.math.exp(a + b * x), observed=rng.poisson(np.exp(0.5 + 0.3 * x)))
    return model


def moments(model, order):
    """Means and their Monte Carlo variances, for one stored order."""
    with model:
        step = AusterityMH(control_variates=None, epsilon=0.05, batch_size=250, rng=order)
        settings = {"draws": 4_000, "tune": 1_000, "chains": 2, "cores": 1, "random_seed": order}
        idata = pm.sample(step=step, **settings, **QUIET)
    posterior = idata.posterior
    means = [float(posterior[name].mean()) for name in ("a", "b")]
    ess = [float(az.ess(idata, var_names=[name])[name].values) for name in ("a", "b")]
    sds = [float(posterior[name].std()) for name in ("a", "b")]
    return means, np.square(sds) / ess


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:.*audited decisions were wrong")  # as they are meant to be
def test_posterior_means_of_several_orders_agree(model):
    found = [moments(model, order) for order in range(1, 1 + N_ORDERS)]
    means, variances = (np.array(part) for part in zip(*found, strict=True))
    centers = np.average(means, axis=0, weights=1.0 / variances)
    statistic = ((means - centers) ** 2 / variances).sum(axis=0)
    assert (chi2.sf(statistic, df=N_ORDERS - 1) > 0.01).all()
