"""What tests believed, on runs where that is known."""

import pytest

from pymc_austerity.diagnostics import decision_errors
from tests.diagnostics.runs import real, synthetic
from tests.step_methods.models import normal_mean


def test_by_chain_and_overall():
    table = decision_errors(synthetic(n_draws=2, decision_error=[[0.01, 0.03], [0.0, 0.04]]))
    assert table.index.tolist() == [0, 1, "all"]
    assert table["n_decisions"].tolist() == [2, 2, 4]
    assert table["error_mean"].tolist() == pytest.approx([0.02, 0.02, 0.02])
    assert table["error_max"].tolist() == [0.03, 0.04, 0.04]
    assert table["expected_wrong"].tolist() == pytest.approx([0.04, 0.04, 0.08])


def test_every_step_of_a_draw_may_be_wrong():
    row = decision_errors(synthetic(attrs={"steps_per_draw": 5})).loc["all"]
    assert row["n_decisions"] == 500
    assert row["expected_wrong"] == pytest.approx(10)
    assert row["error_mean"] == pytest.approx(0.02)


def test_step_methods_add_up():
    run = synthetic(n_step_methods=2, decision_error=[0.01, 0.03])
    assert decision_errors(run).loc["all", "expected_wrong"] == pytest.approx(4)
    assert decision_errors(run, step_method=1).loc["all", "expected_wrong"] == pytest.approx(3)


def test_exact_runs_expect_no_error():
    table = decision_errors(real(normal_mean, epsilon=0.0, draws=20))
    assert (table[["error_mean", "error_max", "expected_wrong"]] == 0).all(axis=None)


def test_belief_is_near_the_truth_where_a_test_looks_once():
    """With one look the tail probabilities are what they say, given a flat prior for the mean."""
    run = real(normal_mean, epsilon=0.5, batch_size=500, audit=1.0, draws=1_500)
    expected = decision_errors(run).loc["all", "expected_wrong"]
    wrong = int(run["sample_stats"]["n_wrong"].sum())
    assert abs(wrong - expected) < 0.2 * expected
