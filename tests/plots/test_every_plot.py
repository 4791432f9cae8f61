"""What holds for every plot."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from pymc_austerity import SettingTypeError, plots
from pymc_austerity.plots import plot_audit, plot_block_usage, plot_data_usage, plot_decision_errors
from tests.diagnostics.runs import audited, grouped, synthetic

CALLS = {
    "plot_audit": lambda **kwargs: plot_audit(audited(40, 2), **kwargs),
    "plot_block_usage": lambda **kwargs: plot_block_usage(grouped(), **kwargs),
    "plot_decision_errors": lambda **kwargs: plot_decision_errors(synthetic(), **kwargs),
    "plot_data_usage": lambda **kwargs: plot_data_usage(
        synthetic(), **{name: (ax, ax.figure.add_subplot()) for name, ax in kwargs.items()}
    ),
}


def test_is_here():
    assert set(CALLS) == set(plots.__all__)


@pytest.mark.parametrize("name", CALLS)
def test_draws_where_it_is_told(name):
    given = plt.figure().add_subplot()
    drawn = np.ravel(CALLS[name](ax=given))
    assert drawn[0] is given
    assert plt.get_fignums() == [given.figure.number]


@pytest.mark.few("plot_data_usage", "plot_audit")
@pytest.mark.parametrize("name", CALLS)
def test_makes_one_figure_with_labels(name):
    for ax in np.ravel(CALLS[name]()):
        assert ax.get_xlabel()
        assert ax.get_ylabel() or ax.get_yticklabels()
        ax.figure.canvas.draw()
    assert len(plt.get_fignums()) == 1


@pytest.mark.few("5.0-plot_data_usage", "12.0-plot_audit")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("width", [5.0, 12.0])
def test_legends_are_not_cut_off(name, width):
    figure = plt.figure(figsize=(width, 4.0), layout="constrained")
    for ax in np.ravel(CALLS[name](ax=figure.add_subplot())):
        ax.figure.canvas.draw()
        box = ax.get_legend().get_window_extent()
        assert box.x0 >= 0 and box.x1 <= ax.figure.bbox.x1


@pytest.mark.parametrize(
    "plot", [plot_audit, plot_block_usage, plot_decision_errors, plot_data_usage]
)
def test_refuses_what_is_no_run(plot):
    with pytest.raises(SettingTypeError, match="not int"):
        plot(3)


def test_refuses_what_are_no_axes():
    with pytest.raises(SettingTypeError, match="Axes, not str"):
        plot_audit(audited(40, 2), ax="left")
    with pytest.raises(SettingTypeError, match="pair of matplotlib Axes"):
        plot_data_usage(synthetic(), ax=plt.figure().add_subplot())


def test_importing_the_plots_does_not_import_matplotlib():
    code = (
        "import sys, pymc; alone = 'matplotlib.pyplot' in sys.modules; import pymc_austerity.plots;"
        " print(alone == ('matplotlib.pyplot' in sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "True\n"


@pytest.mark.parametrize(("steps", "unit"), [(1, "decisions"), (5, "draws")])
def test_means_of_draws_are_not_called_decisions(steps, unit):
    run = synthetic(attrs={"steps_per_draw": steps})
    assert plot_decision_errors(run).get_ylabel() == f"share of the {unit}"
    assert plot_data_usage(run)[1].get_xlabel() == f"share of the {unit}"
