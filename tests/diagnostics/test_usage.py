"""What decisions cost, on runs whose cost is known."""

import numpy as np
import pytest

from pymc_austerity import SettingError
from pymc_austerity.diagnostics import block_usage, data_usage, report
from tests.diagnostics.runs import grouped, real, synthetic
from tests.step_methods.models import normal_mean


def test_by_chain_and_overall():
    rows = np.array([[100, 100, 200, 1000], [100, 300, 300, 500]])
    usage = data_usage(
        synthetic(
            n_draws=4,
            n_rows_used=rows,
            data_fraction=rows / 1_000,
            n_looks=rows // 100,
            used_all_rows=rows == 1_000,
            accepted=[[1, 1, 1, 0], [1, 0, 0, 0]],
        )
    )
    assert usage.index.tolist() == [0, 1, "all"]
    assert usage["n_decisions"].tolist() == [4, 4, 8]
    assert usage["rows_mean"].tolist() == [350, 300, 325]
    assert usage["rows_median"].tolist() == [150, 300, 250]
    assert usage.loc["all", "rows_q95"] == np.quantile(rows, 0.95)
    np.testing.assert_allclose(usage["data_fraction"], [0.35, 0.3, 0.325])
    assert usage["looks_mean"].tolist() == [3.5, 3, 3.25]
    assert usage["exact_fraction"].tolist() == [0.25, 0, 0.125]
    assert usage["acceptance"].tolist() == [0.75, 0.25, 0.5]


def test_decisions_without_rows_are_exact():
    looks = np.tile([0, 1], 25)
    usage = data_usage(synthetic(n_looks=looks, n_rows_used=100 * looks, data_fraction=looks / 10))
    assert usage.loc["all", "exact_fraction"] == 0.5
    assert usage.loc["all", "rows_mean"] == 50


def test_sums_over_the_steps_of_a_draw_are_not_taken_for_decisions():
    attrs = {"steps_per_draw": 4}
    usage = data_usage(synthetic(n_rows_used=400, n_looks=4, accepted=0.25, attrs=attrs))
    columns = ["n_decisions", "rows_mean", "rows_median", "looks_mean", "acceptance"]
    assert usage.loc["all", columns].tolist() == [400, 100, 100, 1, 0.25]


def test_step_methods_count_by_their_decisions():
    run = synthetic(
        n_step_methods=2,
        n_rows_used=[300, 900],
        n_looks=[3, 9],
        data_fraction=[0.1, 0.9],
        accepted=[0.5, 0.0],
        attrs={"steps_per_draw": [3, 1]},
    )
    together = data_usage(run).loc["all"]
    assert together["n_decisions"] == 400
    assert together["rows_mean"] == (3 * 100 + 900) / 4
    assert together["data_fraction"] == pytest.approx((3 * 0.1 + 0.9) / 4)
    assert together["acceptance"] == 0.375
    assert data_usage(run, step_method=0).loc["all", "rows_mean"] == 100
    assert data_usage(run, step_method=1).loc["all", "rows_mean"] == 900


def test_a_run_that_reads_everything():
    usage = data_usage(real(normal_mean, epsilon=0.0, draws=20))
    assert (usage[["rows_mean", "rows_median", "rows_q95"]] == 2_000).all(axis=None)
    assert (usage[["data_fraction", "exact_fraction"]] == 1).all(axis=None)


def test_a_real_run():
    run = real(normal_mean)
    usage, statistics = data_usage(run), run["sample_stats"]
    used = statistics["n_rows_used"].values
    np.testing.assert_allclose(usage["rows_mean"], [*used.mean(axis=1), used.mean()])
    np.testing.assert_allclose(usage["data_fraction"], usage["rows_mean"] / 2_000)
    assert usage.loc["all", "exact_fraction"] == np.mean(used == 2_000)
    assert usage.loc["all", "acceptance"] == pytest.approx(statistics["accepted"].values.mean())


def test_means_by_block():
    table = block_usage(grouped(steps_per_draw=2))
    assert list(table.index) == ["untouched", "county", "common"]
    np.testing.assert_allclose(table["rows_mean"], [0.0, 30.0, 20.0])
    np.testing.assert_allclose(table["share"], [0.0, 0.6, 0.4])
    np.testing.assert_allclose(table["acceptance"], [0.3, 0.9, 0.6])


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
