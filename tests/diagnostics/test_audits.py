"""Audits count, bound and contradict."""

import warnings

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom

from pymc_austerity import AusterityWarning, SettingError, SettingTypeError
from pymc_austerity.diagnostics import audit
from pymc_austerity.diagnostics.decisions import exact_interval
from tests.diagnostics.runs import audited, real, synthetic
from tests.step_methods.models import normal_mean, normal_regression


@pytest.mark.parametrize(("n_hits", "n_trials"), [(0, 10), (3, 40), (40, 40), (13, 1012)])
def test_interval_leaves_out_the_improbable(n_hits, n_trials):
    low, high = exact_interval(n_hits, n_trials, 0.9)
    above = binom.sf(n_hits - 1, n_trials, low)
    below = binom.cdf(n_hits, n_trials, high)
    assert low == 0 if n_hits == 0 else above == pytest.approx(0.05)
    assert high == 1 if n_hits == n_trials else below == pytest.approx(0.05)


def test_by_chain_and_overall():
    table = audit(audited(40, 2))
    assert table.index.tolist() == [0, 1, "all"]
    assert table["n_audited"].tolist() == [40, 0, 40]
    assert table["n_wrong"].tolist() == [2, 0, 2]
    assert table["wrong_rate"].tolist() == pytest.approx([0.05, np.nan, 0.05], nan_ok=True)
    assert table.loc[1, ["wrong_rate_low", "wrong_rate_high"]].tolist() == [0, 1]
    ends = table.loc["all", ["wrong_rate_low", "wrong_rate_high"]].tolist()
    assert ends == pytest.approx(exact_interval(2, 40, 0.95))
    assert (table["limit"] == 0.05).all()


def test_counts_of_draws_are_added_up():
    """Thousands of decisions a draw: some are wrong in every draw, and few are."""
    run = synthetic(n_audited=20, n_wrong=1, attrs={"steps_per_draw": 1_000, "audit": 0.02})
    row = audit(run).loc["all"]
    assert row[["n_decisions", "n_audited", "n_wrong"]].tolist() == [100_000, 2_000, 100]
    found = row[["wrong_rate", "error_mean", "expected_wrong"]].tolist()
    assert found == pytest.approx([0.05, 0.02, 2_000])
    ends = row[["wrong_rate_low", "wrong_rate_high"]].tolist()
    assert ends == pytest.approx(exact_interval(100, 2_000, 0.95))


def test_warns_when_the_interval_lies_above_the_limit():
    low = exact_interval(10, 50, 0.95)[0]
    run = audited(50, 10)
    with pytest.warns(
        AusterityWarning, match=r"10 of 50 audited .* 5\.00% allowed by epsilon, which"
    ):
        audit(run)
    with pytest.warns(AusterityWarning, match="limit: choose a smaller epsilon"):
        audit(run, limit=low - 1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        audit(run, limit=low + 1e-6)
        audit(run, prob=1 - 1e-9)
        audit(audited(50, 0), limit=0.0)
        audit(audited(0, 0), limit=0.0)


def test_warning_points_at_the_caller():
    with pytest.warns(AusterityWarning) as caught:
        audit(audited(50, 25))
    assert caught[0].filename == __file__


def test_step_methods_of_one_kind_add_up():
    wrong = np.zeros((2, 50, 2), dtype=int)
    wrong[0, :2, 1] = 1
    settings = {"n_step_methods": 2, "n_audited": [0, 1], "n_wrong": wrong}
    run = synthetic(**settings, attrs={"epsilon": [0.2, 0.01], "steps_per_draw": [3, 1]})
    assert audit(run).loc["all", ["n_audited", "n_wrong", "limit"]].tolist() == [100, 2, 0.2]
    assert audit(run, step_method=0).loc["all", "n_audited"] == 0
    assert audit(run, step_method=1).loc["all", "limit"] == 0.01


@pytest.mark.parametrize("name", ["limit", "prob"])
def test_shares_are_checked(name):
    for value in (-0.1, 1.1, float("nan"), *((0.0, 1.0) if name == "prob" else ())):
        with pytest.raises(SettingError, match=f"{name}={value} is not .*between 0 and 1"):
            audit(synthetic(), **{name: value})
    for value in ("much", [1, 2], object()):
        with pytest.raises(SettingTypeError, match=f"^{name}=.*give a number"):
            audit(synthetic(), **{name: value})


def test_exact_runs_are_never_wrong():
    table = audit(real(normal_mean, epsilon=0.0, audit=1.0, draws=50))
    assert table.loc["all", ["n_audited", "n_wrong", "wrong_rate"]].tolist() == [100, 0, 0]
    assert (table[["error_mean", "error_max", "expected_wrong"]] == 0).all(axis=None)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_loose_test_is_caught(steps):
    settings = {"epsilon": 0.5, "batch_size": 20, "audit": 1.0, "steps_per_draw": steps}
    run = real(normal_regression, **settings)
    with pytest.warns(AusterityWarning, match="more than the 5"):
        row = audit(run, limit=0.05).loc["all"]
    assert 0.1 < row["wrong_rate"] < 0.5


def test_runs_without_right_and_wrong_have_nothing_to_audit():
    dims = ("chain", "draw")
    values = {"n_rows_used": 10, "n_audited": 0, "n_wrong": 0, "test_epsilon": np.nan}
    run = xr.Dataset(
        {name: (dims, np.full((2, 5), value)) for name, value in values.items()},
        attrs={"epsilon": np.nan},
    )
    row = audit(run).loc["all"]
    assert row["n_audited"] == 0
    assert np.isnan(row["limit"])


def test_errors_by_chain_and_overall():
    table = audit(synthetic(n_draws=2, decision_error=[[0.01, 0.03], [0.0, 0.04]]))
    assert table.index.tolist() == [0, 1, "all"]
    assert table["n_decisions"].tolist() == [2, 2, 4]
    assert table["error_mean"].tolist() == pytest.approx([0.02, 0.02, 0.02])
    assert table["error_max"].tolist() == [0.03, 0.04, 0.04]
    assert table["expected_wrong"].tolist() == pytest.approx([0.04, 0.04, 0.08])


def test_step_methods_add_up():
    run = synthetic(n_step_methods=2, decision_error=[0.01, 0.03])
    assert audit(run).loc["all", "expected_wrong"] == pytest.approx(4)
    assert audit(run, step_method=1).loc["all", "expected_wrong"] == pytest.approx(3)


def test_belief_is_near_the_truth_where_a_test_looks_once():
    """With one look the tail probabilities are what they say, given a flat prior for the mean."""
    run = real(normal_mean, epsilon=0.5, batch_size=500, audit=1.0, draws=1_500)
    expected = audit(run).loc["all", "expected_wrong"]
    wrong = int(run["sample_stats"]["n_wrong"].sum())
    assert abs(wrong - expected) < 0.2 * expected
