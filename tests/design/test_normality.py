"""The check of the t-test's assumption, against samples drawn one by one."""

import numpy as np
import pytest
from scipy import stats

from pymc_austerity.design import NormalityCheck, first_look_statistics
from pymc_austerity.sequential import StratifiedSurvey
from pymc_austerity.strata import Strata


class Window:
    """Consecutive rows of each stratum from given starts, wrapping around."""

    def __init__(self, pieces, starts):
        self.pieces, self.starts = pieces, starts

    def read(self, counts):
        taken = [
            np.take(values, np.arange(start, start + count), mode="wrap")
            for values, start, count in zip(self.pieces, self.starts, counts, strict=True)
        ]
        return np.concatenate(taken)


def test_statistics_are_those_of_the_survey():
    rng = np.random.default_rng(2)
    strata = Strata(np.array([5, 300, 1_000]), np.array([5, 20, 40]))
    differences = rng.gamma(0.5, size=1_305)
    pieces = np.split(differences, [5, 305])
    found = first_look_statistics([differences], strata, n_samples=50, rng=np.random.default_rng(7))
    statistics, freedom, errors, within, _ = found
    again = np.random.default_rng(7)
    starts = np.column_stack(
        [np.zeros(50, int)] + [again.integers(values.size, size=50) for values in pieces[1:]]
    )
    for r in range(50):
        window = Window(pieces, starts[r])
        estimate = StratifiedSurvey(window, strata).look()
        standard_error = np.sqrt(estimate.variance)
        expected = (estimate.total - differences.sum()) / standard_error
        np.testing.assert_allclose(statistics[r], expected, rtol=1e-8)
        np.testing.assert_allclose(freedom[r], estimate.degrees_of_freedom, rtol=1e-8)
        np.testing.assert_allclose(errors[r], standard_error, rtol=1e-8)
    assert np.isnan(within[:, 0]).all()
    one = pieces[1]
    sample = np.take(one, np.arange(starts[0, 1], starts[0, 1] + 20), mode="wrap")
    spread = sample.std(ddof=1) * np.sqrt((1 - 19 / 299) / 20)
    np.testing.assert_allclose(within[0, 1], (sample.mean() - one.mean()) / spread, rtol=1e-8)


def checked(differences, count, epsilon):
    strata = Strata.single(differences.size, count)
    samples = first_look_statistics(
        [differences], strata, n_samples=4_000, rng=np.random.default_rng(3)
    )
    return NormalityCheck(*samples, epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [0.01, 0.05])
def test_normal_rows_pass(epsilon):
    check = checked(np.random.default_rng(4).normal(size=20_000), 100, epsilon)
    assert check.passes
    assert check.is_light_tailed
    assert "near enough to" in str(check)


def test_rare_large_rows_fail_unless_they_do_no_harm():
    rng = np.random.default_rng(5)
    rows = np.where(rng.random(20_000) < 1e-3, 300.0, rng.normal(size=20_000))
    harmful, harmless = checked(rows, 100, 0.05), checked(1e-6 * rows, 100, 0.05)
    assert not harmful.passes
    assert "NOT" in str(harmful)
    assert harmless.tail_shares == harmful.tail_shares
    assert harmless.passes
    assert "does no harm" in str(harmless)


def test_wrong_decisions_are_those_of_a_simulation():
    rng = np.random.default_rng(6)
    rows = rng.exponential(size=10_000) * 1e-3
    check = checked(rows, 100, 0.05)
    n = 400_000
    chosen = rng.integers(check.statistics.size, size=n)
    distance = rng.laplace(size=n)
    estimated = distance + (check.statistics * check.standard_errors)[chosen]
    quantile = stats.t.isf(0.05, check.degrees_of_freedom[chosen])
    stops = np.abs(estimated) > quantile * check.standard_errors[chosen]
    wrong = np.mean(stops & (np.sign(estimated) != np.sign(distance)))
    margin = 4.0 * np.sqrt(wrong / n) + 1e-4
    assert abs(check.wrong_decisions - wrong) < margin


def test_the_worst_stratum_is_named():
    rng = np.random.default_rng(8)
    strata = Strata(np.array([5_000, 5_000]), np.array([50, 50]))
    rows = np.concatenate([rng.normal(size=5_000), rng.lognormal(sigma=3.0, size=5_000)])
    samples = first_look_statistics([rows], strata, n_samples=2_000, rng=rng)
    assert NormalityCheck(*samples, epsilon=0.05).worst_stratum == 1
