"""The picture of the start page, from files; and the files that the example on groups keeps."""

import json

import numpy as np
import pytest
import xarray as xr

from examples import many_groups, start_page
from examples.benchmarks import grouped_table

ROWS = {"model": "logistic-20", "ess_min": 900.0, "rhat_max": 1.0, "n_draws": 1_000}
SECONDS = {"setup_seconds": 2.0, "compile_seconds": 3.0, "tuning_seconds": 1.0}
SPEED = {"ess_per_second_min": 100.0, "ess_per_second_median": 200.0}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "peers").mkdir()
    for n_rows in (100_000, 10_000):
        for sampler, others in {"ours": {}, "nutpie": {"rhat_max": 1.5, "n_draws": 2_000}}.items():
            cell = ROWS | SECONDS | SPEED | {"n_rows": n_rows, "sampler": sampler} | others
            (tmp_path / "peers" / f"{n_rows}_{sampler}.json").write_text(json.dumps(cell))
    return tmp_path


def a_result():
    draws = np.random.default_rng(1).normal(size=(1, 500))
    posterior = xr.Dataset({"tau": (("chain", "draw"), draws)})
    return many_groups.Result(ready=2.0, tuned=1.0, sampled=0.5, posterior=posterior)


def test_chains_that_have_not_converged_have_no_time(folder):
    points = start_page.over_rows(folder / "peers")
    assert points["ours"] == [(10_000, 16.0), (100_000, 16.0)]
    assert points["nutpie"] == []


def test_numbers_on_groups_are_kept_and_read_again(folder):
    result = a_result()
    many_groups.keep("1,000 groups", "ours", result.cell, folder / "groups")
    many_groups.keep("radon", "ours", result.cell, folder / "groups")
    points = start_page.over_groups(folder / "groups")
    ((n_groups, seconds),) = points["ours"]
    assert n_groups == 1_000
    assert seconds == pytest.approx(many_groups.seconds_to(1_000, result.cell))
    assert seconds == pytest.approx(3.0 + 1_000 / (500 / 0.5), rel=0.3)


def test_the_table_of_groups_is_that_of_the_files():
    cells = grouped_table.read(many_groups.RESULTS)
    assert len(cells) == len(list(many_groups.RESULTS.glob("*.json")))
    assert many_groups.SITE.read_text() == grouped_table.table(cells)
    assert "| 1,000 groups | nutpie |" in grouped_table.table(cells)


def test_a_panel_for_groups_once_there_are_numbers(folder, tmp_path):
    start_page.draw(folder, tmp_path / "one.png")
    many_groups.keep("100 groups", "ours", a_result().cell, folder / "groups")
    start_page.draw(folder, tmp_path / "two.png")
    widths = [
        int.from_bytes((tmp_path / f"{name}.png").read_bytes()[16:20]) for name in ("one", "two")
    ]
    assert widths[1] == pytest.approx(2 * widths[0], rel=0.01)
