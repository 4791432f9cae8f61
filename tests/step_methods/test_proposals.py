"""A user's own proposal, symmetric or not, leaves the posterior as it is."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH, SettingTypeError
from tests.running import QUIET
from tests.step_methods.models import normal_mean


def drifting_walk(point, rng):
    """Steps with a drift upwards: reverse steps are less likely, which the log-ratio repairs."""
    drift, sd = 0.03, 0.05
    new = point + drift + sd * rng.standard_normal(point.size)

    def log_q(a, b):  # log-density of going from a to b
        return -0.5 * np.sum((b - a - drift) ** 2) / sd**2

    return new, log_q(new, point) - log_q(point, new)


def independence(point, rng):
    """An independence sampler from a distribution wider than the posterior."""
    center, sd = 1.05, 0.1
    new = center + sd * rng.standard_normal(point.size)
    return new, 0.5 * np.sum((new - center) ** 2 - (point - center) ** 2) / sd**2


@pytest.mark.parametrize("proposal", [drifting_walk, independence])
def test_posterior_with_a_proposal_that_is_not_symmetric(proposal):
    import arviz as az

    model = normal_mean()
    y = np.asarray(model.rvs_to_values[model["y"]].data)
    precision = 1 / 10.0**2 + y.size / 2.0**2
    mean, sd = (y.sum() / 2.0**2) / precision, precision**-0.5
    with model:
        idata = pm.sample(
            step=AusterityMH(epsilon=0.0, proposal=proposal),
            draws=6_000,
            tune=200,
            chains=2,
            cores=1,
            random_seed=1,
            **QUIET,
        )
    ess = float(az.ess(idata)["mu"].values)
    draws = idata.posterior["mu"].values
    assert ess > 200
    assert abs(draws.mean() - mean) < 4 * sd / np.sqrt(ess)
    assert abs(draws.std() / sd - 1) < 4 / np.sqrt(2 * ess)
    assert np.isnan(idata["sample_stats"]["scaling"].values).all()


def test_a_proposal_of_the_wrong_shape_is_named():
    with normal_mean(), pytest.raises(SettingTypeError, match=r"shape \(3,\)"):
        AusterityMH(proposal=lambda point, rng: (np.zeros(3), 0.0))
