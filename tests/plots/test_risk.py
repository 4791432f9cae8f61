"""Risk against time, drawn."""

import numpy as np
import pytest

from pymc_austerity import SettingError, SettingTypeError
from pymc_austerity.plots import plot_risk
from tests.plots.reading import legend_of


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
def test_bad_input(risks, error, match):
    with pytest.raises(error, match=match):
        plot_risk(risks)
