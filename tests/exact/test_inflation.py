"""The factor of the bounds: the noise that it is chosen by, against brute force."""

import numpy as np
import pytest

from pymc_austerity.exact.inflation import Inflation, noise_variance
from tests.references import log_weight


def candidates(residuals, bounds, rng):
    rows = np.repeat(np.arange(residuals.size), rng.poisson(bounds))
    return residuals[rows], bounds[rows]


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_variance_of_the_noise_is_estimated_without_bias(factor):
    """From candidates at one inflation, for another one."""
    rng = np.random.default_rng(0)
    bounds = rng.uniform(0.02, 0.2, size=100)
    residuals = bounds * rng.uniform(-0.7, 0.7, size=100)
    estimates, weights = [], []
    for _ in range(4_000):
        found, their = candidates(residuals, 2.0 * bounds, rng)
        estimates.append(noise_variance(found / their, 2.0, np.array([factor]))[0])
        inflated = candidates(residuals, factor * bounds, rng)
        weights.append(log_weight(*inflated, rng))
    variance = np.var(weights)
    error = np.hypot(np.std(estimates), np.std((weights - np.mean(weights)) ** 2)) / 4_000**0.5
    assert abs(np.mean(estimates) - variance) < 4.0 * error


def tuned(spread, n=2_000):
    """Inflation after decisions about a log-ratio that is normal, and the acceptance rates."""
    rng = np.random.default_rng(1)
    bounds = np.full(200, 0.05)
    residuals = bounds * rng.uniform(-0.5, 0.5, size=200)
    residuals -= residuals.mean()
    inflation, ours, all_rows = Inflation.begin(1.0), [], []
    for _ in range(n):
        known = rng.normal(-0.5 * spread**2, spread)
        found, their = candidates(residuals, inflation.value * bounds, rng)
        log_ratio = known + log_weight(found, their, rng)
        inflation = inflation.after(found / their, found.size, log_ratio)
        ours.append(np.exp(min(0.0, log_ratio)))
        all_rows.append(np.exp(min(0.0, known)))
    half = n // 2
    return inflation.value, np.mean(ours[half:]) / np.mean(all_rows[half:])


@pytest.mark.parametrize("spread", [0.1, 2.0])
def test_acceptance_stays_close_to_that_of_all_rows(spread):
    value, share = tuned(spread)
    assert value > 1.0
    assert share > 0.95


def test_noise_matters_less_where_proposals_are_often_rejected_anyway():
    assert tuned(2.0)[0] < tuned(0.1)[0]


def test_no_noise_needs_no_inflation():
    inflation = Inflation.begin(4.0)
    for _ in range(60):
        inflation = inflation.after(np.zeros(20), 20, 0.0)
    assert inflation.value == 1.0
