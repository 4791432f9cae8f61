"""The cost of decisions, drawn."""

import numpy as np
import pytest

from pymc_austerity import SettingError
from pymc_austerity.plots import plot_block_usage, plot_data_usage
from tests.diagnostics.runs import grouped, synthetic
from tests.plots.reading import legend_of, widths


def test_a_line_for_each_chain():
    rows = np.linspace(20, 900, 100).reshape(2, 50)
    left, _ = plot_data_usage(synthetic(n_rows_used=rows), window=1)
    for line, expected in zip(left.lines, rows, strict=False):
        np.testing.assert_array_equal(line.get_xdata(), np.arange(50))
        np.testing.assert_allclose(line.get_ydata(), expected)
    assert legend_of(left) == ["chain 0", "chain 1", "all 1,000 rows"]


def test_lines_are_moving_means(rng):
    rows = rng.uniform(500, 1_000, size=(2, 50))
    left, _ = plot_data_usage(synthetic(n_rows_used=rows), window=5)
    np.testing.assert_allclose(left.lines[0].get_ydata()[10], rows[0, 8:13].mean())
    np.testing.assert_allclose(left.lines[1].get_ydata()[-1], rows[1, -3:].mean())
    assert left.get_xlabel() == "draw (lines: mean of 5 draws)"


def test_the_distribution_is_of_all_decisions():
    rows = np.where(np.arange(50) < 10, 300, 600)
    _, right = plot_data_usage(synthetic(n_rows_used=rows))
    assert widths(right).sum() == pytest.approx(1)
    assert np.sort(widths(right))[-2:].tolist() == pytest.approx([0.2, 0.8])
    assert [line.get_ydata()[0] for line in right.lines[:2]] == pytest.approx([600, 540])
    assert legend_of(right) == ["median 600", "mean 540"]


def test_a_cheap_run_fills_the_picture(rng):
    """Two rows of a million: what is read takes a quarter of the axis, and zero is on it."""
    run = synthetic(2, 500, n_rows_used=rng.poisson(2.0, size=(2, 500)), attrs={"n_rows": 10**6})
    for ax in plot_data_usage(run):
        assert ax.get_yscale() == "symlog"
        (bottom, ten, top) = ax.transAxes.inverted().transform(
            ax.transData.transform([(0, 0), (0, 10), (0, 10**6)])
        )[:, 1]
        assert bottom == pytest.approx(0.0, abs=1e-9)
        assert ten > 0.25
        assert top < 1.0
    assert widths(ax).sum() == pytest.approx(1)
    assert legend_of(ax) == ["median 2", "mean 2.1"]


@pytest.mark.parametrize("n_rows", [1_000, 7_300])
def test_ticks_are_rows(n_rows):
    run = synthetic(n_rows_used=n_rows, data_fraction=1.0, attrs={"n_rows": n_rows})
    for ax in plot_data_usage(run):
        assert ax.get_yscale() == "log"
        ax.figure.canvas.draw()
        shown = [t for t in ax.get_yticks() if ax.get_ylim()[0] <= t <= ax.get_ylim()[1]]
        assert shown
        assert ax.yaxis.get_major_formatter()(shown[0]) == f"{shown[0]:,.0f}"
    assert widths(ax).sum() == pytest.approx(1)


def test_decisions_without_rows_are_left_out():
    looks = np.arange(50) % 2
    left, right = plot_data_usage(synthetic(n_looks=looks, n_rows_used=40 * looks), window=2)
    np.testing.assert_allclose(left.lines[0].get_ydata()[1:], 40)
    assert widths(right).sum() == pytest.approx(1)
    with pytest.raises(SettingError, match="nothing to draw"):
        plot_data_usage(synthetic(n_looks=0))


def test_step_methods():
    run = synthetic(n_step_methods=2, n_rows_used=[200, 400])
    assert plot_data_usage(run)[0].lines[0].get_ydata()[5] == pytest.approx(300)
    one = plot_data_usage(run, step_method=1)[0]
    assert one.lines[0].get_ydata()[5] == pytest.approx(400)


def test_window_is_checked():
    with pytest.raises(SettingError, match=r"from 1 to 50.*not 51"):
        plot_data_usage(synthetic(), window=51)
    for value in (0, 2.0, True, "2"):
        with pytest.raises(SettingError, match=r"window=.*give an integer of at least 1"):
            plot_data_usage(synthetic(), window=value)


def test_one_bar_for_each_block():
    ax = plot_block_usage(grouped())
    assert [bar.get_width() for bar in ax.patches] == [0.0, 60.0, 40.0]
    assert [text.get_text() for text in ax.texts] == [
        "30% accepted",
        "90% accepted",
        "60% accepted",
    ]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["untouched", "county", "common"]
