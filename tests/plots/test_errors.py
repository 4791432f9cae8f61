"""Distances from the threshold and an error curve, drawn."""

import numpy as np
import pytest

from pymc_austerity import SettingError, SettingTypeError
from pymc_austerity.diagnostics import audit
from pymc_austerity.plots import plot_audit, plot_decision_errors
from tests.diagnostics.runs import audited, synthetic
from tests.plots.reading import heights, legend_of

GRID = np.linspace(-4.0, 4.0, 9)


def test_distribution_of_the_run():
    distances = np.where(np.arange(50) < 10, -2.0, 1.0)
    ax = plot_decision_errors(synthetic(standardized_mean=distances))
    assert np.sort(heights(ax))[-2:].tolist() == pytest.approx([0.2, 0.8])
    assert legend_of(ax) == ["decisions of the run"]
    assert len(ax.figure.axes) == 1


def test_curve_on_its_own_axis():
    error = np.exp(-(GRID**2))
    ax = plot_decision_errors(synthetic(), mu_std=GRID, error=error)
    twin = ax.figure.axes[-1]
    np.testing.assert_array_equal(twin.lines[0].get_xdata(), GRID)
    np.testing.assert_array_equal(twin.lines[0].get_ydata(), error)
    assert twin.get_ylabel() == "probability of a wrong decision"
    assert legend_of(ax) == ["decisions of the run", "probability of a wrong decision"]
    assert ax.get_xlim() == (-4.0, 4.0)


def test_says_how_many_lie_beyond():
    distances = np.where(np.arange(50) < 5, 9.0, 1.0)
    run = synthetic(standardized_mean=distances)
    ax = plot_decision_errors(run, mu_std=GRID, error=0 * GRID)
    assert heights(ax).sum() == pytest.approx(0.9)
    assert legend_of(ax)[0] == "decisions of the run (10.0% lie beyond)"


def test_far_decisions_do_not_hide_the_near_ones(rng):
    """With control variates most lie tens of thousands of standard errors away."""
    distances = np.where(np.arange(50) < 5, 3.0, 10.0 ** rng.uniform(3, 4.6, size=50))
    ax = plot_decision_errors(synthetic(standardized_mean=distances))
    near = np.array([p.get_height() for p in ax.patches if abs(p.get_x() + p.get_width() / 2) < 9])
    assert near.max() == pytest.approx(0.1)
    assert (near > 0).sum() == 1
    assert near.size > 3


def test_unknown_distances_are_left_out():
    distances = np.where(np.arange(50) < 25, np.nan, 1.0)
    ax = plot_decision_errors(synthetic(standardized_mean=distances))
    assert heights(ax).sum() == pytest.approx(1)
    with pytest.raises(SettingError, match="no finite values"):
        plot_decision_errors(synthetic(standardized_mean=np.nan))


@pytest.mark.parametrize(
    ("mu_std", "error", "match"),
    [
        ([0, 1], None, "both or neither"),
        (None, [0, 1], "both or neither"),
        ([0, 1], [0, 1, 1], "same length"),
        ([0], [0], "at least 2"),
        ([1, 0], [0, 0], "must increase"),
        ([0, 1], [0, 2], "probabilities"),
        ([0, 1], [0, np.nan], "probabilities"),
    ],
)
def test_curves_that_are_none(mu_std, error, match):
    with pytest.raises(SettingError, match=match):
        plot_decision_errors(synthetic(), mu_std=mu_std, error=error)


def test_curves_of_words():
    with pytest.raises(SettingTypeError, match="arrays of numbers"):
        plot_decision_errors(synthetic(), mu_std=["a", "b"], error=[0, 1])


def test_a_real_run(run):
    ax = plot_decision_errors(run)
    assert 0.97 < heights(ax).sum() < 1


def intervals(ax):
    """Lower end, rate and upper end of every interval."""
    found = []
    for container in ax.containers:
        points, _, (bars,) = container.lines
        for rate, segment in zip(points.get_xdata(), bars.get_segments(), strict=True):
            found.append([segment[0][0], rate, segment[1][0]])
    return np.array(found)


def test_what_the_audit_says(run):
    table = audit(run, limit=0.3)
    ax = plot_audit(run, limit=0.3)
    columns = ["wrong_rate_low", "wrong_rate", "wrong_rate_high"]
    np.testing.assert_allclose(intervals(ax), table[columns].to_numpy())
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["chain 0 (200 audited)", "chain 1 (200 audited)", "all (400 audited)"]
    assert "limit" in legend_of(ax)
    (limit,) = (line for line in ax.lines if line.get_label() == "limit")
    np.testing.assert_allclose(limit.get_xdata(), 0.3)
    assert ax.get_xlim()[0] == 0
    assert ax.get_xlim()[1] >= 0.3


def test_shares_above_the_limit_stand_out():
    ax = plot_audit({"kept": audited(50, 1), "broken": audited(50, 25)})
    assert legend_of(ax) == [
        "limit",
        "audited, 95% interval",
        "audited, above the limit",
    ]
    kept, broken = (container.lines[0] for container in ax.containers)
    assert (kept.get_xdata(), broken.get_xdata()) == ([0.02], [0.5])
    assert kept.get_color() != broken.get_color()
    assert kept.get_marker() != broken.get_marker()
    assert [line.tolist() for line in (kept.get_ydata(), broken.get_ydata())] == [[0], [1]]


def test_several_runs_keep_their_limits_apart():
    runs = {str(e): audited(50, 1, attrs={"epsilon": e}) for e in (0.01, 0.1)}
    ax = plot_audit(runs)
    (limit,) = (line for line in ax.lines if line.get_label() == "limit")
    assert limit.get_xdata().tolist() == [0.01, 0.1]


def test_without_audits():
    with pytest.raises(SettingError, match="No decision was audited"):
        plot_audit(synthetic())
    with pytest.raises(SettingError, match="names no run"):
        plot_audit({})


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"attrs": {"acceptance_rule": "barker"}}, "Barker's decisions are random.*nothing"),
        ({"attrs": {"acceptance_rule": "none"}, "n_looks": 0}, "no test that could be wrong"),
        ({"used_all_rows": True}, "Every decision is exact"),
        ({"attrs": {"sampler": "AusterityGibbs"}}, "pass audit=0.1 to AusterityGibbs"),
    ],
)
def test_says_why_nothing_was_audited(changed, reason):
    run = synthetic(**changed)
    for runs in (run, {"one": run, "other": run}):
        with pytest.raises(SettingError, match=reason):
            plot_audit(runs)
