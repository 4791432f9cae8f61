"""A t statistic next to Student's t, drawn."""

import numpy as np
import pytest
from scipy import stats

from pymc_austerity import SettingError, SettingTypeError
from pymc_austerity.plots import plot_t_statistic
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
