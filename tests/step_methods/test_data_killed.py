"""AusterityMH(data=...) whose set-up is killed, and goes on in another process."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pymc_austerity.setup import kept_passes
from tests.running import assert_same_draws, sample
from tests.setup.killed import constructed, write_rows

ROOT = Path(__file__).parents[2]
RUN = {"draws": 100, "tune": 50, "chains": 2}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    write_rows(folder)
    return folder


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder for temporary files, in which pieces are written one by one."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(kept_passes, "_SECONDS_BETWEEN_WRITES", 0.0)
    return tmp_path


def kill(rows, where, number, settings):
    command = [sys.executable, "-m", "tests.setup.killed", str(rows), where, str(number)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    child = subprocess.run([*command, json.dumps(settings)], cwd=ROOT, env=environment, timeout=300)
    assert child.returncode == -signal.SIGKILL


def kept_in(place):
    return {path.name for path in place.glob("pymc_austerity-passes-*/*")}


@pytest.mark.parametrize(
    ("settings", "kills"),
    [
        # in the second pass, then two passes on, then in the middle of a write of a later one
        ({}, [("pieces", 6), ("pieces", 12), ("files", 12)]),
        # while the influence of the rows is measured, or rows are stored
        ({"epsilon": 0.05}, [("pieces", 22)]),
    ],
)
@pytest.mark.few("settings1-kills1")
def test_draws_are_those_of_a_set_up_that_was_not_killed(rows, place, settings, kills, caplog):
    model, step = constructed(rows, **settings)
    expected = sample(step, model, **RUN)
    assert not kept_in(place)
    before: set[str] = set()
    for where, number in kills:
        kill(rows, where, number, settings)
        assert kept_in(place) > before
        before = {name for name in kept_in(place) if name.endswith(".pass")}
    with caplog.at_level("INFO", logger="pymc.austerity"):
        model, step = constructed(rows, **settings)
    (said,) = re.findall(r"Set-up goes on with results of (\d+) passes .* ago\.", caplog.text)
    assert 1 <= int(said) < step.target.source.rows.n_passes if not settings else int(said) > 1
    assert not kept_in(place)
    assert_same_draws(sample(step, model, **RUN), expected)


def test_results_stay_in_a_folder_that_was_named(rows, place, caplog):
    folder = place / "of" / "set-up"
    _, first = constructed(rows, setup_folder=folder)
    n_passes = first.target.source.rows.n_passes
    with caplog.at_level("INFO", logger="pymc.austerity"):
        _, again = constructed(rows, setup_folder=str(folder))
    assert f"goes on with results of {n_passes} passes over the rows, which were" in caplog.text
    for name in ("point", "hessian", "root"):
        first_one, other = (getattr(step.target.anchor, name) for step in (first, again))
        np.testing.assert_array_equal(first_one, other)
    assert {path.suffix for path in folder.iterdir()} == {".pass"}
