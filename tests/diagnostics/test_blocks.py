"""What blocks cost, from the statistics of a run."""

import numpy as np
import pytest

from pymc_austerity import SettingError
from pymc_austerity.diagnostics import block_usage, report
from tests.diagnostics.runs import forms_of, grouped, synthetic


def test_means_by_block():
    table = block_usage(grouped(steps_per_draw=2))
    assert list(table.index) == ["untouched", "county", "common"]
    np.testing.assert_allclose(table["rows_mean"], [0.0, 30.0, 20.0])
    np.testing.assert_allclose(table["share"], [0.0, 0.6, 0.4])
    np.testing.assert_allclose(table["acceptance"], [0.3, 0.9, 0.6])


@pytest.mark.parametrize("form", ["tree", "idata", "file"])
def test_reads_every_form(form, tmp_path):
    run = forms_of(grouped(), tmp_path)[form]
    assert list(block_usage(run).index) == ["untouched", "county", "common"]


def test_no_rows_have_no_shares():
    assert np.isnan(block_usage(grouped(n_rows=(0, 0, 0)))["share"]).all()


def test_refuses_other_runs():
    with pytest.raises(SettingError, match="no statistics of blocks"):
        block_usage(synthetic())


def test_is_in_the_report():
    assert "untouched 0 rows, 30% accepted; county 60 rows, 90% accepted" in " ".join(
        report(grouped()).split()
    )
    assert "By block" not in report(synthetic())


def test_the_report_counts_sweeps():
    page = " ".join(report(grouped(sampler="GroupedMH")).split())
    assert page.startswith("100 sweeps in 2 chains on 1,000 rows")
    assert "A sweep read 10.00% of the rows on average" in page
