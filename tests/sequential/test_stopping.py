import math

import numpy as np
import pytest

from pymc_austerity.sequential import StudentTTest, UniformSurvey, exceeds
from tests.references import sequential_t_test
from tests.streams import Stream


def run(
    differences,
    log_threshold=0.0,
    *,
    epsilon=0.05,
    batch_size=50,
    order=None,
    block=10**9,
):
    order = np.arange(len(differences)) if order is None else order
    stream = Stream(differences[order], block)
    survey = UniformSurvey(stream, n_rows=len(differences), batch_size=batch_size)
    return exceeds(survey, log_threshold, rule=StudentTTest(epsilon))


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.05, 0.2, 0.5])
@pytest.mark.parametrize("batch_size", [2, 50, 333, 1_000, 5_000])
@pytest.mark.parametrize("block", [10**9, 17])
def test_agrees_with_the_paper_line_by_line(epsilon, batch_size, block, rng):
    outcomes = set()
    for mean in (-0.2, -0.01, 0.0, 0.03, 0.2):
        differences = rng.normal(mean, 1.0, size=1_000)
        order = rng.permutation(1_000)
        log_threshold = rng.normal()
        settings = {"epsilon": epsilon, "batch_size": batch_size, "order": order, "block": block}
        decision = run(differences, log_threshold, **settings)
        expected = sequential_t_test(differences, order, log_threshold, epsilon, batch_size)
        assert decision[:3] == expected[:3]
        assert decision.decision_error == pytest.approx(expected[3], abs=1e-12)
        assert decision.exact == (decision.n_rows_used == 1_000)
        outcomes.add(decision.accept)
    assert outcomes == {True, False}


def test_standardized_mean(rng):
    differences = rng.normal(0.1, 2.0, size=400)
    decision = run(differences, 3.0, epsilon=0.0)
    mu_std = (differences.mean() - 3.0 / 400) * math.sqrt(399) / differences.std(ddof=1)
    assert decision.standardized_mean == pytest.approx(mu_std)


def test_a_sample_without_spread_is_no_evidence():
    differences = np.ones(1_000)
    differences[600:] = -5.0
    decision = run(differences, 0.0, epsilon=0.05, batch_size=100)
    assert decision.n_rows_used > 600  # the first six looks saw nothing but ones


def test_differences_that_are_all_equal_are_decided_exactly():
    for value in (-0.25, 0.25):
        decision = run(np.full(1_000, value), 0.0)
        assert decision.accept == (value > 0)
        assert decision.n_rows_used == 1_000
        assert math.isnan(decision.standardized_mean)


@pytest.mark.parametrize("bad", [[np.nan], [-np.inf], [np.inf], [np.inf, -np.inf]])
def test_a_difference_that_is_not_finite_rejects_at_once(bad):
    differences = np.full(1_000, 5.0)
    differences[10 : 10 + len(bad)] = bad
    decision = run(differences, -1e9, block=25)
    assert not decision.accept
    assert decision.n_rows_used == 25
    assert decision.exact
