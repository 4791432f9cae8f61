"""What blocks cost, drawn."""

import pytest

from pymc_austerity import SettingError
from pymc_austerity.plots import plot_block_usage
from tests.diagnostics.runs import grouped, synthetic


def test_one_bar_for_each_block():
    ax = plot_block_usage(grouped())
    assert [bar.get_width() for bar in ax.patches] == [0.0, 60.0, 40.0]
    assert [text.get_text() for text in ax.texts] == [
        "30% accepted",
        "90% accepted",
        "60% accepted",
    ]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["untouched", "county", "common"]


def test_refuses_other_runs():
    with pytest.raises(SettingError, match="no statistics of blocks"):
        plot_block_usage(synthetic())
