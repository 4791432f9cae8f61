"""A t statistic next to Student's t, drawn."""

import numpy as np
import pytest
from scipy import stats

from pymc_austerity import SettingError, SettingTypeError
from pymc_austerity.plots import plot_risk, plot_t_statistic
from tests.plots.reading import heights, legend_of, widths


def test_density_next_to_students(rng):
    values = rng.standard_t(9, size=20_000)
    ax = plot_t_statistic(values, degrees_of_freedom=9)
    curve = ax.lines[0]
    np.testing.assert_allclose(curve.get_ydata(), stats.t(9).pdf(curve.get_xdata()))
    middle = [patch.get_x() + patch.get_width() / 2 for patch in ax.patches]
    np.testing.assert_allclose(heights(ax), stats.t(9).pdf(middle), atol=0.03)
    share = np.sum(heights(ax) * widths(ax))
    assert share == pytest.approx(np.mean(np.abs(values) <= curve.get_xdata()[-1]))


def test_tails_are_told():
    values = np.where(np.arange(100) < 12, 50.0, 0.1)
    ax = plot_t_statistic(values, degrees_of_freedom=9)
    assert legend_of(ax) == [
        "resampled (12.0% where Student's t has 5%)",
        "Student's t, 9 degrees of freedom",
    ]


def test_bad_input():
    with pytest.raises(SettingError, match="must be positive, not 0"):
        plot_t_statistic([1.0], degrees_of_freedom=0)
    with pytest.raises(SettingTypeError, match="must be a number"):
        plot_t_statistic([1.0], degrees_of_freedom="many")
    with pytest.raises(SettingError, match="no finite values"):
        plot_t_statistic([np.nan], degrees_of_freedom=3)
    with pytest.raises(SettingTypeError, match="array of numbers"):
        plot_t_statistic(["a"], degrees_of_freedom=3)


def test_curves_as_given():
    time = np.array([1.0, 10.0])
    ax = plot_risk({"a": (time, 1 / time), "b": (2 * time, [3, 4])}, of="parameter mean")
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), 1 / time)
    np.testing.assert_array_equal(ax.lines[1].get_xdata(), 2 * time)
    assert legend_of(ax) == ["a", "b"]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_xlabel() == "time (s)"
    assert "parameter mean" in ax.get_ylabel()
    assert ax.lines[0].get_color() != ax.lines[1].get_color()
    assert ax.lines[0].get_linestyle() != ax.lines[1].get_linestyle()


def test_points_that_a_log_scale_cannot_show():
    ax = plot_risk({"a": ([0, 1, 2, 3], [1, 2, np.nan, 0])})
    assert ax.lines[0].get_xydata().tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("risks", "error", "match"),
    [
        ([1, 2], SettingTypeError, "not be list"),
        ({}, SettingError, "no run"),
        ({"a": 1}, SettingTypeError, "'a' must be a pair"),
        ({"a": (["x"], [1])}, SettingTypeError, "'a' must be a pair"),
        ({"a": ([1, 2], [1])}, SettingError, "same length"),
        ({"a": ([0], [1])}, SettingError, "no positive"),
    ],
)
def test_bad_risks(risks, error, match):
    with pytest.raises(error, match=match):
        plot_risk(risks)
