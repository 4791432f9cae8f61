"""The cost of decisions, drawn."""

import numpy as np
import pytest

from pymc_austerity import SettingError, SettingTypeError
from pymc_austerity.plots import plot_data_usage
from tests.diagnostics.runs import synthetic
from tests.plots.reading import legend_of, widths


def test_a_line_for_each_chain():
    shares = np.linspace(0.2, 0.9, 100).reshape(2, 50)
    left, _ = plot_data_usage(synthetic(data_fraction=shares), window=1)
    for line, expected in zip(left.lines, shares, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), np.arange(50))
        np.testing.assert_allclose(line.get_ydata(), expected)
    assert legend_of(left) == ["chain 0", "chain 1"]


def test_lines_are_moving_means(rng):
    shares = rng.uniform(0.5, 1.0, size=(2, 50))
    left, _ = plot_data_usage(synthetic(data_fraction=shares), window=5)
    np.testing.assert_allclose(left.lines[0].get_ydata()[10], shares[0, 8:13].mean())
    np.testing.assert_allclose(left.lines[1].get_ydata()[-1], shares[1, -3:].mean())
    assert left.get_xlabel() == "draw (lines: mean of 5 draws)"


def test_the_distribution_is_of_all_decisions():
    shares = np.where(np.arange(50) < 10, 0.3, 0.6)
    _, right = plot_data_usage(synthetic(data_fraction=shares))
    assert widths(right).sum() == pytest.approx(1)
    assert np.sort(widths(right))[-2:].tolist() == pytest.approx([0.2, 0.8])
    assert right.lines[0].get_ydata()[0] == pytest.approx(0.54)
    assert legend_of(right) == ["mean 54%"]


def test_small_shares_are_seen():
    shares = np.geomspace(1e-4, 1, 50)
    for ax in plot_data_usage(synthetic(data_fraction=shares)):
        assert ax.get_yscale() == "log"
    assert widths(ax).sum() == pytest.approx(1)


def test_no_more_than_all_rows_are_shown():
    for ax in plot_data_usage(synthetic(data_fraction=1.0)):
        ax.figure.canvas.draw()
        shown = [t for t in ax.get_yticks() if ax.get_ylim()[0] <= t <= ax.get_ylim()[1]]
        assert max(shown) == pytest.approx(1.0)
    assert widths(ax).sum() == pytest.approx(1)


def test_decisions_without_rows_are_left_out():
    looks = np.arange(50) % 2
    left, right = plot_data_usage(synthetic(n_looks=looks, data_fraction=0.4 * looks), window=2)
    np.testing.assert_allclose(left.lines[0].get_ydata()[1:], 0.4)
    assert widths(right).sum() == pytest.approx(1)
    with pytest.raises(SettingError, match="nothing to draw"):
        plot_data_usage(synthetic(n_looks=0))


def test_step_methods():
    run = synthetic(n_step_methods=2, data_fraction=[0.2, 0.4])
    assert plot_data_usage(run)[0].lines[0].get_ydata()[5] == pytest.approx(0.3)
    one = plot_data_usage(run, step_method=1)[0]
    assert one.lines[0].get_ydata()[5] == pytest.approx(0.4)


def test_window_is_checked():
    for value in (0, 51):
        with pytest.raises(SettingError, match=f"from 1 to 50.*not {value}"):
            plot_data_usage(synthetic(), window=value)
    for value in (2.0, True, "2"):
        with pytest.raises(SettingTypeError, match="window must be an integer"):
            plot_data_usage(synthetic(), window=value)


def test_a_real_run_from_disk(run, tmp_path):
    run.to_netcdf(tmp_path / "run.nc")
    _, right = plot_data_usage(tmp_path / "run.nc")
    mean = float(run["sample_stats"]["data_fraction"].values.mean())
    assert right.lines[0].get_ydata()[0] == pytest.approx(mean)
