"""Audits next to promises, drawn."""

import numpy as np
import pytest

from pymc_austerity import SettingError
from pymc_austerity.diagnostics import audit
from pymc_austerity.plots import plot_audit
from tests.diagnostics.runs import audited, real, synthetic
from tests.plots.reading import legend_of
from tests.step_methods.models import normal_regression


def intervals(ax):
    """Lower end, rate and upper end of every interval."""
    found = []
    for container in ax.containers:
        points, _, (bars,) = container.lines
        for rate, segment in zip(points.get_xdata(), bars.get_segments(), strict=True):
            found.append([segment[0][0], rate, segment[1][0]])
    return np.array(found)


def test_what_the_audit_says(run):
    table = audit(run, promised=0.3)
    ax = plot_audit(run, promised=0.3)
    columns = ["wrong_rate_low", "wrong_rate", "wrong_rate_high"]
    np.testing.assert_allclose(intervals(ax), table[columns].to_numpy())
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["chain 0 (200 audited)", "chain 1 (200 audited)", "all (400 audited)"]
    assert "promised" in legend_of(ax)
    (promised,) = (line for line in ax.lines if line.get_label() == "promised")
    np.testing.assert_allclose(promised.get_xdata(), 0.3)
    assert ax.get_xlim()[0] == 0
    assert ax.get_xlim()[1] >= 0.3


def test_broken_promises_stand_out():
    ax = plot_audit({"kept": audited(50, 1), "broken": audited(50, 25)})
    assert legend_of(ax) == [
        "promised",
        "audited, 95% interval",
        "audited, above what was promised",
    ]
    kept, broken = (container.lines[0] for container in ax.containers)
    assert (kept.get_xdata(), broken.get_xdata()) == ([0.02], [0.5])
    assert kept.get_color() != broken.get_color()
    assert kept.get_marker() != broken.get_marker()
    assert [line.tolist() for line in (kept.get_ydata(), broken.get_ydata())] == [[0], [1]]


def test_several_runs_keep_their_promises_apart():
    runs = {str(e): audited(50, 1, attrs={"epsilon": e}) for e in (0.01, 0.1)}
    ax = plot_audit(runs)
    (promised,) = (line for line in ax.lines if line.get_label() == "promised")
    assert promised.get_xdata().tolist() == [0.01, 0.1]


def test_without_audits():
    with pytest.raises(SettingError, match="No decision was audited"):
        plot_audit(synthetic())
    with pytest.raises(SettingError, match="names no run"):
        plot_audit({})


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            {"attrs": {"acceptance_rule": "barker"}},
            "Barker's decisions are random.*nothing",
        ),
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


def test_compound_runs():
    ax = plot_audit(real(normal_regression, blocked=False, audit=1.0, draws=50), promised=1.0)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[-1] == "all (200 audited)"
