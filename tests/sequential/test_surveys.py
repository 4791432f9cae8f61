import math

import numpy as np
import pytest

from pymc_austerity.control_variates import LargestScores
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.rows import in_random_order
from pymc_austerity.sequential import StratifiedSurvey, StudentTTest, UniformSurvey, exceeds
from pymc_austerity.setup.by_influence import strata_by_score
from pymc_austerity.strata import Strata


class Stream:
    """Differences in a random order within each stratum."""

    def __init__(self, strata, rng):
        self.strata = [rng.permutation(values) for values in strata]
        self.n_read = np.zeros(len(strata), dtype=int)
        self.calls = []

    def read(self, counts):
        self.calls.append(np.array(counts))
        ends = self.n_read + counts
        pieces = [v[a:b] for v, a, b in zip(self.strata, self.n_read, ends, strict=True)]
        assert [piece.size for piece in pieces] == list(counts)
        self.n_read = ends
        return np.concatenate(pieces)


def sizes_of(strata):
    return np.array([values.size for values in strata])


def survey_of(strata, first_counts, rng):
    stream = Stream(strata, rng)
    return StratifiedSurvey(stream, Strata(sizes_of(strata), np.array(first_counts)))


@pytest.fixture
def strata(rng):
    """A few wild rows, some lively ones and many quiet ones."""
    return [
        rng.normal(0.0, 100.0, size=30),
        rng.normal(0.5, 3.0, size=300),
        rng.normal(-0.1, 0.1, size=5_000),
    ]


def test_one_stratum_is_uniform_sampling(rng):
    values = rng.normal(0.3, 1.0, size=1_000)
    shuffled = Stream([values], np.random.default_rng(2)).strata[0]

    class Uniform:
        def read(self, n_rows):
            yield shuffled[:n_rows]

    uniform = UniformSurvey(Uniform(), n_rows=1_000, batch_size=80).look()
    stratified = survey_of([values], [80], np.random.default_rng(2)).look()
    np.testing.assert_allclose(stratified, uniform, rtol=1e-12)


def test_moments_after_many_looks_are_those_of_all_rows_seen(strata, rng):
    survey = survey_of(strata, [30, 10, 10], rng)
    for _ in range(4):
        estimate = survey.look()
    stream = survey.stream
    assert estimate.n_seen == sum(stream.n_read)
    total = variance = lower = 0.0
    for values, n in zip(stream.strata, stream.n_read, strict=True):
        size, seen = values.size, values[:n]
        total += size * seen.mean()
        v = size**2 * seen.var(ddof=1) / n * (1 - (n - 1) / (size - 1)) if n < size else 0.0
        variance += v
        lower += v**2 / (n - 1)
    assert estimate.total == pytest.approx(total, rel=1e-10)
    assert estimate.variance == pytest.approx(variance, rel=1e-10)
    assert estimate.degrees_of_freedom == pytest.approx(variance**2 / lower, rel=1e-10)


def test_total_is_unbiased_and_its_variance_honest(strata, rng):
    truth = sum(values.sum() for values in strata)
    estimates = [survey_of(strata, [30, 12, 12], rng).look() for _ in range(4_000)]
    totals = np.array([estimate.total for estimate in estimates])
    variances = np.array([estimate.variance for estimate in estimates])
    assert abs(totals.mean() - truth) < 4 * totals.std() / math.sqrt(totals.size)
    error = 4 * totals.var() * math.sqrt(2 / totals.size) + 4 * variances.std() / math.sqrt(4_000)
    assert abs(variances.mean() - totals.var()) < error


def test_student_t_holds_with_satterthwaite_degrees_of_freedom(strata, rng):
    truth = sum(values.sum() for values in strata)
    rule, n_beyond, n_repeats = StudentTTest(0.05), 0, 4_000
    for _ in range(n_repeats):
        estimate = survey_of(strata, [30, 12, 12], rng).look()
        statistic = (estimate.total - truth) / math.sqrt(estimate.variance)
        from scipy.stats import t

        n_beyond += abs(statistic) > t.ppf(1 - rule.epsilon, estimate.degrees_of_freedom)
    # two tails of 5 % each, and half a percent for the approximation
    assert abs(n_beyond / n_repeats - 0.10) < 4 * math.sqrt(0.09 / n_repeats) + 0.005


def test_all_rows_in_the_end_and_exact(strata, rng):
    truth = sum(values.sum() for values in strata)
    for log_threshold in (truth - 1e-6, truth + 1e-6):
        survey = survey_of(strata, [30, 10, 10], rng)
        decision = exceeds(survey, log_threshold, rule=StudentTTest(0.0))
        assert decision.exact
        assert decision.n_rows_used == 5_330
        assert decision.accept == (truth > log_threshold)
        assert decision.n_looks < 12  # the sample doubles from look to look


def test_wild_strata_are_looked_at_harder(rng):
    strata = [rng.normal(0, 50.0, size=2_000), rng.normal(0, 1.0, size=2_000)]
    survey = survey_of(strata, [20, 20], rng)
    for _ in range(8):
        survey.look()
    first, second = survey.stream.calls[1]
    assert first > second  # twenty rows are no proof that a stratum is quiet
    first, second = survey.stream.calls[6]  # hundreds are
    assert first > 3 * second
    assert second >= 2


def test_rounding_is_not_spread(rng):
    strata = [0.1 + rng.choice([-1e-17, 0.0, 1e-17], size=200) for _ in range(3)]
    survey = survey_of(strata, [20, 20, 20], rng)
    assert survey.look().variance == 0.0
    assert exceeds(survey_of(strata, [20, 20, 20], rng), 0.0, rule=StudentTTest(0.05)).exact


def test_finish_sees_the_rest(strata, rng):
    truth = sum(values.sum() for values in strata)
    survey = survey_of(strata, [30, 10, 10], rng)
    survey.look()
    estimate = survey.finish()
    assert estimate.total == pytest.approx(truth)
    assert estimate.n_seen == 5_330


def test_a_row_that_is_not_finite_rejects(rng):
    strata = [np.array([1.0, -np.inf, 2.0]), rng.normal(size=100)]
    decision = exceeds(survey_of(strata, [3, 10], rng), -1e9, rule=StudentTTest(0.05))
    assert not decision.accept


def test_rows_whose_squares_overflow_are_all_read(rng):
    """Such as counts with a log link, at a point far from where they are likely."""
    strata = [-1e200 * rng.random(size=500), rng.normal(size=300)]
    decision = exceeds(survey_of(strata, [20, 20], rng), 0.0, rule=StudentTTest(0.05))
    assert not decision.accept
    assert decision.exact


# ------------------------------------------------------------------ residuals as models have them


def stratified(scores, differences, rng, **settings):
    """Rows in the order of their strata, and the strata."""
    largest = LargestScores.of_all(scores, 20_001)
    known = strata_by_score(largest, scores, differences, Settings(**settings), rng)
    labels = known.labels(scores)
    return in_random_order(labels, rng), known.strata(np.bincount(labels))


@pytest.mark.parametrize("epsilon", [0.05, 0.01])
def test_skewed_residuals_of_one_sign(epsilon, rng):
    """Pairs as far apart as the first look is made for, thresholds log u about the border."""
    n_rows, n_orders, n_thresholds = 20_000, 30, 40
    scores = 2e-4 * np.exp(1.5 * rng.standard_normal(n_rows))
    unit = rng.standard_normal((2, n_rows)) ** 2 / math.sqrt(3.0)
    n_wrong, rule = 0, StudentTTest(epsilon)
    for _ in range(n_orders):
        order, strata = stratified(scores, -scores * unit, rng, epsilon=epsilon)
        residuals = -scores[order] * rng.standard_normal(n_rows) ** 2 / math.sqrt(3.0)
        pieces, total = np.split(residuals, strata.offsets[1:]), residuals.sum()
        for log_uniform in np.log(rng.random(n_thresholds)):
            threshold = total + log_uniform + 1.0
            decision = exceeds(survey_of(pieces, strata.first_counts, rng), threshold, rule=rule)
            n_wrong += decision.accept != (total > threshold)
    n_decisions = n_orders * n_thresholds
    assert n_wrong / n_decisions < epsilon + 2 * math.sqrt(epsilon / n_decisions)


@pytest.mark.parametrize("skewed", [False, True])
def test_fewer_strata_where_the_t_statistic_is_as_it_should_be(skewed, rng):
    scores = 2e-5 * np.exp(0.5 * rng.standard_normal(50_000))
    normal = rng.standard_normal((2, scores.size))
    differences = -scores * np.exp(1.5 * normal) if skewed else scores * normal
    _, strata = stratified(scores, differences, rng)
    assert strata.sizes.size == (32 if skewed else 16)
    assert strata.first_counts.sum() == 10 * strata.sizes.size
