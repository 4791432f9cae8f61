"""A user's own proposal, symmetric or not, leaves the posterior as it is."""

import numpy as np
import pytest

from tests.running import assert_moments, built, sample
from tests.step_methods.models import mean_of, normal_mean


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
    model = normal_mean()
    step = built(model, epsilon=0.0, proposal=proposal)
    idata = sample(step, model, draws=6_000, tune=200, random_seed=1)
    assert_moments(idata.posterior["mu"], *mean_of(model), at_least=200)
    assert np.isnan(idata["sample_stats"]["scaling"].values).all()
