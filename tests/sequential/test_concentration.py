import math

import numpy as np
import pytest

from pymc_austerity.sequential import (
    EmpiricalBernsteinTest,
    Evidence,
    HoeffdingTest,
    StratifiedSurvey,
    UniformSurvey,
    exceeds,
)
from pymc_austerity.sequential.rules import row_standard_deviation, share_of_error
from pymc_austerity.strata import Strata
from tests.streams import Stratum, Stream

RULES = [HoeffdingTest, EmpiricalBernsteinTest]


def evidence_of(sample, n_rows, distance, n_looks=1):
    """Evidence as `decide` makes it, but for a distance of the mean that is given."""
    survey = UniformSurvey(Stream(sample), n_rows=n_rows, batch_size=sample.size)
    _, variance, degrees_of_freedom, n_seen, _ = survey.look()
    standard_error = math.sqrt(variance)
    return Evidence(n_rows * distance, standard_error, degrees_of_freedom, n_seen, n_rows, n_looks)


def hoeffding(sample, n_rows, delta, largest):
    n = sample.size
    return largest * math.sqrt(2 / n * (1 - (n - 1) / n_rows) * math.log(2 / delta))


def bernstein(sample, n_rows, delta, largest):
    n, log_term = sample.size, math.log(3 / delta)
    return sample.std(ddof=1) * math.sqrt(2 * log_term / n) + 6 * largest * log_term / n


@pytest.mark.parametrize(
    ("rule", "half_width"), [(HoeffdingTest, hoeffding), (EmpiricalBernsteinTest, bernstein)]
)
@pytest.mark.parametrize("n", [2, 60, 900])
@pytest.mark.parametrize("look", [1, 2, 7])
def test_stops_where_the_formula_says(rule, half_width, n, look, rng):
    sample = rng.normal(0.0, 0.3, size=n)
    delta = 0.1 / (2 * look**2)
    width = half_width(sample, 1_000, delta, 2.5)
    asked = rule(largest_difference=2.5, error_prob=0.1)
    for sign in (-1, 1):
        assert asked.stops(evidence_of(sample, 1_000, sign * width * (1 + 1e-9), look))
        assert not asked.stops(evidence_of(sample, 1_000, sign * width * (1 - 1e-9), look))
        at = evidence_of(sample, 1_000, sign * width, look)
        assert asked.error(at) == pytest.approx(delta, rel=1e-8)


@pytest.mark.parametrize("rule", RULES)
def test_error_is_a_probability(rule, rng):
    sample = rng.normal(size=50)
    asked = rule(largest_difference=1.0)
    assert asked.error(evidence_of(sample, 1_000, 0.0)) == 1.0
    assert asked.error(evidence_of(sample, 1_000, 1e9)) == 0.0


def test_errors_of_all_looks_stay_within_the_whole():
    rule = HoeffdingTest(1.0, error_prob=0.2)
    total = sum(share_of_error(rule.error_prob, k) for k in range(1, 100_000))
    assert 0.1 < total <= 0.2


def test_row_standard_deviation_is_recovered(rng):
    for n in (2, 50, 999):
        sample = rng.normal(size=n)
        found = row_standard_deviation(evidence_of(sample, 1_000, 1.0))
        assert found == pytest.approx(sample.std(ddof=1), rel=1e-12)


def decide_often(rule, differences, rng, *, n_repeats, first=50):
    """Shares of wrong decisions, and of decisions before all rows were seen, threshold 0."""
    n_rows, truth = differences.size, differences.sum() > 0
    first_look = Strata.single(n_rows, first)
    wrong = early = 0
    for _ in range(n_repeats):
        survey = StratifiedSurvey(Stratum(rng.permutation(differences)), first_look)
        decision = exceeds(survey, 0.0, rule=rule)
        wrong += decision.accept != truth
        early += not decision.exact
    return wrong / n_repeats, early / n_repeats


def two_values(n_rows, mean):
    """Rows of +1 and -1: the widest spread that a bound of 1 allows."""
    n_above = round(n_rows * (1 + mean) / 2)
    return np.repeat([1.0, -1.0], [n_above, n_rows - n_above])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("mean", [0.004, 0.1, 0.3])
def test_errs_no_more_than_promised(rule, mean, rng):
    """A generous promise of 40 %, so that a bound that were wrong by little would be seen."""
    asked, n_repeats = rule(largest_difference=1.0, error_prob=0.4), 1_000
    wrong, _ = decide_often(asked, two_values(2_000, mean), rng, n_repeats=n_repeats)
    # intervals have two sides, and a wrong decision lies beyond one of them
    assert wrong <= 0.4 / 2 + 3 * math.sqrt(0.2 * 0.8 / n_repeats)


@pytest.mark.parametrize(("rule", "mean"), [(HoeffdingTest, 0.3), (EmpiricalBernsteinTest, 0.6)])
def test_clear_cases_are_decided_early(rule, mean, rng):
    asked = rule(largest_difference=1.0, error_prob=0.05)
    wrong, early = decide_often(asked, two_values(2_000, mean), rng, n_repeats=200)
    assert wrong <= 0.05
    assert early > 0.99


def test_a_range_that_is_too_small_breaks_the_promise(rng):
    """The test above can fail: a bound of a tenth of the truth errs far more often than 5 %."""
    asked = HoeffdingTest(largest_difference=0.1, error_prob=0.05)
    wrong, _ = decide_often(asked, two_values(2_000, 0.004), rng, n_repeats=300)
    assert wrong > 0.25


def test_bernstein_profits_from_small_spread(rng):
    differences = np.clip(rng.normal(0.05, 0.02, size=20_000), -1, 1)
    shares = {}
    for rule in RULES:
        asked = rule(largest_difference=1.0, error_prob=0.05)
        first_look = Strata.single(20_000, 100)
        survey = StratifiedSurvey(Stratum(differences), first_look)
        shares[rule] = exceeds(survey, 0.0, rule=asked).n_rows_used
    assert shares[EmpiricalBernsteinTest] < shares[HoeffdingTest] / 2


@pytest.mark.parametrize("rule", RULES)
def test_the_bound_between_two_points_comes_with_the_evidence(rule):
    number, function = rule(2.0), rule(lambda new, old: 2.0)
    for bound in (0.5, 2.0, math.inf):
        evidence = Evidence(2e3, 60.0, 499, 500, 10_000, n_looks=1, largest_difference=bound)
        assert number.error(evidence) == number.error(evidence._replace(largest_difference=7.0))
        assert function.error(evidence) == rule(min(bound, 1e300)).error(evidence)


@pytest.mark.parametrize("rule", RULES)
def test_a_bound_that_is_infinite_reads_on(rule):
    """Far beyond the posterior a norm overflows; such a proposal must not end a run."""
    evidence = Evidence(1e6, 60.0, 499, 500, 10_000, n_looks=1, largest_difference=1e300)
    assert not rule(lambda new, old: math.inf).stops(evidence)


@pytest.mark.parametrize("rule", RULES)
def test_evidence_without_a_bound_does_not_stop(rule):
    evidence = Evidence(1e6, 60.0, 499, n_seen=500, n_rows=10_000, n_looks=1)
    assert not rule(lambda new, old: 1.0).stops(evidence)
