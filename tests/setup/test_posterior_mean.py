"""The short run before the chains."""

import numpy as np
import pymc as pm
import pytest
from scipy.integrate import quad
from scipy.special import expit, log_expit

from tests.running import built
from tests.step_methods.models import logistic

N_RARE = 12


def rare_category(n_rows, seed=2):
    """A success rate of 0.3, but none among the few rows of a category."""
    rng = np.random.default_rng(seed)
    rare = np.arange(n_rows) < N_RARE
    successes = (rng.random(n_rows) < 0.3) & ~rare
    with pm.Model() as model:
        alpha = pm.Normal("alpha", 0.0, 1.0)
        beta = pm.Normal("beta", 0.0, 3.0)
        pm.Bernoulli("y", logit_p=alpha + beta * rare, observed=successes)
    others = successes[~rare].mean()
    return model, np.log(others / (1.0 - others))


def mean_of_beta(alpha):
    """By quadrature, given the other parameter, which many rows tell."""

    def weight(beta):
        return np.exp(N_RARE * log_expit(-(alpha + beta)) - 0.5 * (beta / 3.0) ** 2)

    return quad(lambda b: b * weight(b), -20, 10)[0] / quad(weight, -20, 10)[0]


def test_proposals_are_made_about_the_mean():
    model, alpha = rare_category(100_000)
    step = built(model, epsilon=0.05, control_variates=2)  # no row is kept as it is
    mode, mean = step.anchor.point[1], step.target.approximation.mean[1]
    assert expit(alpha + mode) < 0.1
    gap = mean_of_beta(alpha) - mode
    assert gap < -0.5  # skewed
    assert mean - mode == pytest.approx(gap, rel=0.3)


def test_a_posterior_that_is_nearly_normal_is_left_alone():
    step = built(logistic(50_000, np.full(5, 0.3), seed=1))
    np.testing.assert_array_equal(step.target.approximation.mean, step.anchor.point)
