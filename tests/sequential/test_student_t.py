import numpy as np
import pytest
from scipy import stats

from pymc_austerity.sequential import Evidence, StudentTTest


def evidence(difference, standard_error=1.0, n_seen=20):
    return Evidence(difference, standard_error, n_seen - 1, n_seen, 10_000, 1)


@pytest.mark.parametrize("epsilon", [0.001, 0.05, 0.2, 0.49])
@pytest.mark.parametrize("n_seen", [2, 20, 5_000])
def test_stops_exactly_where_the_tail_probability_falls_below_epsilon(epsilon, n_seen):
    quantile = stats.t.ppf(1 - epsilon, df=n_seen - 1)
    rule = StudentTTest(epsilon)
    for sign in (-1, 1):
        assert rule.stops(evidence(sign * quantile * 1.0001, n_seen=n_seen))
        assert not rule.stops(evidence(sign * quantile * 0.9999, n_seen=n_seen))


@pytest.mark.parametrize("statistic", [-3.0, 0.1, 2.0, 40.0])
def test_error_is_the_tail_probability(statistic):
    error = StudentTTest(0.05).error(evidence(2.0 * statistic, standard_error=2.0))
    assert error == pytest.approx(stats.t.sf(abs(statistic), df=19), rel=1e-10)


def test_epsilon_zero_never_stops():
    assert not StudentTTest(0.0).stops(evidence(1e300, standard_error=1e-300))


def test_epsilon_one_half_stops_at_once():
    assert StudentTTest(0.5).stops(evidence(np.nextafter(0.0, 1.0)))
