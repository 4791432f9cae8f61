"""The relative error of acceptance probabilities, by quadrature and by simulation."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from pymc_austerity.sequential import (
    Evidence,
    StudentTTest,
    WangTsiatisTest,
    relative_excess,
)

N_ROWS = 10**6


def evidence(distance, standard_error, n_seen=500_000):
    return Evidence(distance, standard_error, n_seen - 1, n_seen, N_ROWS, 1)


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
    test, level = WangTsiatisTest(0.05, alpha=0.0, relative=True), norm.sf(2.0 * 1.6449)
    s, n_seen = 6.0, N_ROWS // 4
    least = least_distance(test, s, n_seen)
    assert relative_excess(least, s) == pytest.approx(level, rel=1e-2)
    assert least > 1.2 * least_distance(WangTsiatisTest(0.05, alpha=0.0), s, n_seen)
