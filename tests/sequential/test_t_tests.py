"""Sequential t-tests: against SciPy, quadrature, simulation and the boundaries of designs."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.stats import norm

from pymc_austerity.design import Boundary, Looks, constant_looks, operating_characteristic
from pymc_austerity.sequential import (
    Evidence,
    StudentTTest,
    Tightening,
    exceeds,
    relative_excess,
)
from tests.streams import survey_of

N_ROWS = 10**6


def evidence_of_mean(difference, standard_error=1.0, n_seen=20, n_rows=10_000):
    return Evidence(difference, standard_error, n_seen - 1, n_seen, n_rows, 1)


@pytest.mark.parametrize("epsilon", [0.001, 0.05, 0.2, 0.49])
@pytest.mark.parametrize("n_seen", [2, 20, 5_000])
def test_stops_exactly_where_the_tail_probability_falls_below_epsilon(epsilon, n_seen):
    quantile = stats.t.ppf(1 - epsilon, df=n_seen - 1)
    rule = StudentTTest(epsilon)
    for sign in (-1, 1):
        assert rule.stops(evidence_of_mean(sign * quantile * 1.0001, n_seen=n_seen))
        assert not rule.stops(evidence_of_mean(sign * quantile * 0.9999, n_seen=n_seen))


@pytest.mark.parametrize("statistic", [-3.0, 0.1, 2.0, 40.0])
def test_error_is_the_tail_probability(statistic):
    error = StudentTTest(0.05).error(evidence_of_mean(2.0 * statistic, standard_error=2.0))
    assert error == pytest.approx(stats.t.sf(abs(statistic), df=19), rel=1e-10)


def test_epsilon_zero_never_stops():
    assert not StudentTTest(0.0).stops(evidence_of_mean(1e300, standard_error=1e-300))


def test_epsilon_one_half_stops_at_once():
    assert StudentTTest(0.5).stops(evidence_of_mean(np.nextafter(0.0, 1.0)))


def evidence(distance, standard_error, n_seen=500_000):
    return evidence_of_mean(distance, standard_error, n_seen, N_ROWS)


@pytest.mark.parametrize("s", [0.2, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("statistic", [0.3, 1.645, 4.0])
def test_the_excess_is_the_integral_over_uniform_numbers(s, statistic):
    c = statistic * s

    def integrand(v):
        return math.exp(v + norm.logcdf(-(v + c) / s))

    peak = max(s * s - c, 0.0)
    parts = [quad(integrand, a, a + 5.0 * s, epsabs=0.0)[0] for a in peak + s * np.arange(0, 60, 5)]
    before = quad(integrand, 0.0, peak, epsabs=0.0, points=[0.5 * peak], limit=200)[0]
    assert relative_excess(c, s) == pytest.approx(sum(parts) + before, rel=1e-6)


@pytest.mark.parametrize(("distance", "s"), [(1e-9, 1e-9), (1e6, 1e4), (1e8, 1e4), (1e-300, 1e300)])
def test_the_excess_of_extreme_numbers_is_a_number(distance, s):
    assert relative_excess(distance, s) >= 0.0


@pytest.mark.parametrize("s", [0.5, 1.0, 2.0, 4.0])
def test_small_acceptance_probabilities_rise_by_at_most_epsilon(s):
    """One look at a normal estimate, where the exact acceptance probability is exp(-8)."""
    epsilon, log_ratio = 0.05, -8.0
    test = StudentTTest(epsilon, relative=True)
    least = least_distance(test, s)
    assert test.stops(evidence(1.001 * least, s))
    log_u = np.linspace(log_ratio, 0.0, 20_001)
    wrong = np.trapezoid(np.exp(log_u) * norm.cdf((log_ratio - log_u - least) / s), log_u)
    assert wrong <= 1.001 * epsilon * math.exp(log_ratio)
    papers = least_distance(StudentTTest(epsilon), s)
    assert papers == pytest.approx(1.645 * s, rel=1e-3)
    assert (least > 1.001 * papers) == (s >= 2.0)


def least_distance(test, s, n_seen=500_000):
    """Smallest distance at which a look accepts."""
    low, high = 0.0, 100.0 * s
    for _ in range(60):
        middle = 0.5 * (low + high)
        stops = test.stops(evidence(middle, s, n_seen))
        low, high = (low, middle) if stops else (middle, high)
    return high


def test_rejections_are_those_of_the_papers_test():
    strict, papers = StudentTTest(0.05, relative=True), StudentTTest(0.05)
    for distance in (-0.1, -1.0, -3.0, -10.0, -100.0):
        for s in (0.1, 1.0, 10.0):
            assert strict.stops(evidence(distance, s)) == papers.stops(evidence(distance, s))


def test_the_share_is_the_level_of_the_look():
    """At a quarter of the rows, the level of this boundary is a tail of 2 * 1.645."""
    test, level = StudentTTest(0.05, alpha=0.0, relative=True), norm.sf(2.0 * 1.6449)
    s, n_seen = 6.0, N_ROWS // 4
    least = least_distance(test, s, n_seen)
    assert relative_excess(least, s) == pytest.approx(level, rel=1e-2)
    assert least > 1.2 * least_distance(StudentTTest(0.05, alpha=0.0), s, n_seen)


def test_it_tightens_in_a_straight_line_and_stays():
    schedule = Tightening(0.05, loosest=0.2, n_draws=300)
    values = np.array([schedule(draw) for draw in range(1_000)])
    assert values[0] == 0.2
    np.testing.assert_allclose(np.diff(values[:301]), -0.15 / 300)
    assert (values[300:] == 0.05).all()


def test_a_loose_test_is_not_tightened():
    schedule = Tightening(0.3, loosest=0.2)
    assert {schedule(draw) for draw in range(1_000)} == {0.3}


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.7])
@pytest.mark.parametrize("n_seen", [100, 4_000, 9_999])
def test_stops_where_the_normal_boundary_of_the_design_lies(alpha, n_seen):
    share = n_seen / 10_000
    bound = float(Boundary(0.3, alpha).at(Looks([share, 1.0]))[0])
    quantile = stats.t.isf(stats.norm.sf(bound), n_seen - 1)
    rule = StudentTTest(0.3, alpha=alpha)
    for edge in (-3.0 * quantile, 3.0 * quantile):
        assert rule.stops(evidence_of_mean(edge * (1 + 1e-6), 3.0, n_seen))
        assert not rule.stops(evidence_of_mean(edge * (1 - 1e-6), 3.0, n_seen))


def test_a_level_below_the_smallest_number_never_stops():
    assert not StudentTTest(0.01, alpha=0.0).stops(evidence_of_mean(1e6, n_seen=10))


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.5])
def test_errs_as_often_as_designed(alpha, rng):
    n_rows, mu_std, n_repeats = 1_000, 0.3, 2_000
    differences = rng.normal(size=n_rows)
    differences -= differences.mean()
    differences += mu_std * differences.std() / math.sqrt(n_rows - 1)
    rule, wrong, used = StudentTTest(0.1, alpha=alpha), 0, []
    for _ in range(n_repeats):
        survey = survey_of(rng.permutation(differences), 100)
        decision = exceeds(survey, 0.0, rule=rule)
        wrong += not decision.accept
        used.append(decision.n_rows_used / n_rows)
    promised = operating_characteristic(mu_std, constant_looks(100, n_rows), Boundary(0.1, alpha))
    error = float(promised.error)
    assert abs(wrong / n_repeats - error) < 3 * math.sqrt(error * (1 - error) / n_repeats)
    assert abs(np.mean(used) - promised.data_fraction) < 3 * np.std(used) / math.sqrt(n_repeats)
