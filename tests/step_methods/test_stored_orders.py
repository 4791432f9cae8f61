"""The order in which rows are stored does not matter, even where decisions err."""

import numpy as np
import pytest
from scipy.stats import chi2

from tests.running import built, sample
from tests.setup.test_defaults import moments
from tests.step_methods.models import counts

N_ORDERS = 6


def means_and_variances(model, order):
    """Means and their Monte Carlo variances, for one stored order."""
    step = built(model, control_variates=None, epsilon=0.05, batch_size=250, rng=order)
    mean, sd, ess = moments(sample(step, model, draws=4_000, tune=1_000, random_seed=order))
    return mean, sd**2 / ess


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:.*audited decisions were wrong")  # as they are meant to be
def test_posterior_means_of_several_orders_agree():
    model = counts(5_000)
    found = [means_and_variances(model, order) for order in range(1, 1 + N_ORDERS)]
    means, variances = (np.array(part) for part in zip(*found, strict=True))
    centers = np.average(means, axis=0, weights=1.0 / variances)
    statistic = ((means - centers) ** 2 / variances).sum(axis=0)
    assert (chi2.sf(statistic, df=N_ORDERS - 1) > 0.01).all()
