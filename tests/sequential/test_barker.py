import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from pymc_austerity.sequential import BarkerTest, logistic_correction
from tests.streams import survey_of


def decide(differences, log_threshold, rng, *, noise=1.0, batch_size=100):
    survey = survey_of(differences, batch_size)
    return BarkerTest(noise).decide(survey, -log_threshold, rng)


@pytest.mark.parametrize(("sigma", "bound"), [(0.5, 1e-7), (0.8, 1e-8), (1.0, 1e-6), (1.2, 1e-4)])
def test_normal_noise_and_correction_are_logistic(sigma, bound):
    correction = logistic_correction(sigma)
    probabilities = np.diff(correction.cumulative, prepend=0.0)
    points = np.linspace(-30, 30, 2_001)
    below = stats.norm.cdf((points[:, None] - correction.values) / sigma)
    error = np.abs(below @ probabilities - expit(points)).max()
    assert error < bound
    assert correction.error == pytest.approx(error, rel=0.02, abs=1e-12)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 1.2])
def test_correction_is_a_symmetric_distribution(sigma):
    values, cumulative, _ = logistic_correction(sigma)
    probabilities = np.diff(cumulative, prepend=0.0)
    assert np.all(probabilities >= 0.0) and cumulative[-1] == 1.0
    np.testing.assert_array_equal(values, -values[::-1])
    np.testing.assert_allclose(probabilities, probabilities[::-1], atol=1e-15)
    variance = probabilities @ values**2
    assert variance + sigma**2 == pytest.approx(math.pi**2 / 3, abs=2e-3)


def test_draws_follow_the_distribution(rng):
    correction = logistic_correction(1.0)
    draws = np.array([correction.draw(rng) for _ in range(20_000)])
    noisy = draws + rng.normal(size=draws.size)
    assert stats.kstest(noisy, stats.logistic.cdf).pvalue > 0.01


@pytest.mark.parametrize("excess", [-3.0, -0.5, 0.0, 1.0, 4.0])
def test_accepts_with_barkers_probability(excess, rng):
    """Rows drawn anew for every decision: their noise is part of what is tested."""
    n_rows, n_repeats, accepted, used = 1_000, 4_000, 0, []
    differences = rng.normal(0.0, 0.05, size=n_rows)
    log_threshold = differences.sum() - excess
    for _ in range(n_repeats):
        decision = decide(rng.permutation(differences), log_threshold, rng)
        accepted += decision.accept
        used.append(decision.n_rows_used)
        assert not decision.exact
    probability = expit(excess)
    error = math.sqrt(probability * (1 - probability) / n_repeats)
    assert abs(accepted / n_repeats - probability) < 3 * error
    # the standard error of the sum falls to 1 nat at 714 of the rows
    assert 650 < np.mean(used) < 900


def test_more_noise_needs_fewer_rows(rng):
    differences = rng.normal(0.0, 0.003, size=10_000)
    used = [decide(differences, 0.0, rng, noise=noise).n_rows_used for noise in (0.5, 0.8, 1.2)]
    assert used == sorted(used, reverse=True) and used[0] > 2 * used[2]


def test_all_rows_leave_logistic_noise_only(rng):
    differences, n_repeats = np.full(50, 0.01), 4_000
    accepted = 0
    for _ in range(n_repeats):
        decision = decide(differences, 0.0, rng, batch_size=20)
        assert decision.exact and decision.n_rows_used == 50 and decision.decision_error == 0.0
        accepted += decision.accept
    probability = expit(0.5)
    assert abs(accepted / n_repeats - probability) < 3 * math.sqrt(0.25 / n_repeats)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_difference_that_is_not_finite_rejects(bad, rng):
    differences = np.full(1_000, 5.0)
    differences[10] = bad
    decision = decide(differences, -1e9, rng)
    assert not decision.accept and decision.exact


def test_statistics_of_a_decision(rng):
    differences = rng.normal(0.001, 0.01, size=2_000)
    decision = decide(differences, 1.0, rng)
    seen = differences[: decision.n_rows_used]
    mu_std = (seen.mean() - 1.0 / 2_000) * math.sqrt(1_999) / seen.std(ddof=1)
    assert decision.standardized_mean == pytest.approx(mu_std)
    assert decision.decision_error == logistic_correction(1.0).error
    assert decision.n_looks == decision.n_rows_used / 100
