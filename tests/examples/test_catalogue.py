"""The catalogue: two small models that a folder holds, and what is said of two runs."""

import os
from pathlib import Path

import pytest

from examples.catalogue import tables
from examples.catalogue.__main__ import RESULTS, SITE, main
from examples.catalogue.kinds import chosen_kinds
from examples.catalogue.run import Run, is_mixed
from examples.catalogue.verdicts import is_slow, kind

MODEL = """
import numpy as np
import pymc as pm

def build_model():
    with pm.Model() as model:
        {line}
    return model, model.initial_point()
"""


def run(mean=1.0, error=0.01, **others):
    given = {"r_hat": 1.0, "ess": 400.0, "seconds": 10.0} | others
    return Run({"a": mean}, {"a": error}, {"a": 1.0}, **given)


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (run(), "right and mixed"),
        (run(mean=1.09), "right and mixed"),
        (run(mean=1.2), "wrong"),
        (run(mean=1.2, error=0.1), "right and mixed"),
        (run(r_hat=1.06), "not mixed"),
        (run(ess=49.0), "not mixed"),
        (Run(error="DataError: no", refused=True), "refused"),
        (Run(error="LinAlgError: no"), "error"),
        (Run(error="time: 300 s"), "no answer in time"),
    ],
)
def test_kinds(ours, expected):
    assert kind(ours, run()) == expected


def test_means_are_compared_only_where_nuts_mixed():
    assert kind(run(mean=9.0), run(r_hat=2.0)) == "right and mixed"


def test_slow_runs():
    assert is_slow(run(seconds=13.1), run())
    assert not is_slow(run(seconds=16.9), run(), times=1.5, more=2.0)
    assert is_slow(run(seconds=17.1), run(), times=1.5, more=2.0)
    assert not is_slow(Run(error="x", seconds=99.0), run())
    assert not is_slow(run(seconds=99.0), Run(error="x"))  # it took longer than there was time


def test_runs_with_several_seeds():
    """NUTS must mix with each; of ours, what most of the runs are counts."""
    stuck = run(r_hat=2.0)
    pairs = {
        "by chance": [(stuck, run()), (run(), run()), (run(), run())],
        "truly": [(stuck, run()), (stuck, run()), (run(), run())],
        "one of two": [(stuck, run()), (run(), run())],
        "hard for NUTS": [(stuck, run()), (run(), stuck)],
    }
    ends = {row.model: (row.ends, row.by_nuts) for row in tables.rows_of(pairs)}
    assert ends == {
        "by chance": ("right and mixed", True),
        "truly": ("not mixed", True),
        "one of two": ("not mixed", True),
        "hard for NUTS": ("not mixed", False),
    }


def test_the_table_of_the_site_has_all_that_were_sampled(tmp_path):
    versions = {file.stem: tables.read(file) for file in sorted(RESULTS.glob("*.json"))}
    assert SITE.read_text() == tables.page(versions)
    (rows, *_) = versions.values()
    tables.write(tmp_path / "rows.json", rows)
    assert str(tables.read(tmp_path / "rows.json")) == str(rows)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    line = 'pm.Normal("y", pm.Normal("mu"), 1.0, observed=np.ones(20))'
    (folder / "ones.py").write_text(MODEL.format(line=line))
    (folder / "broken.py").write_text(MODEL.format(line='raise RuntimeError("no data")'))
    return folder


@pytest.mark.exhaustive
def test_a_model_that_cannot_be_built(folder, tmp_path, capsys):
    main([str(folder), "broken", "--out", str(tmp_path / "out")])
    said = capsys.readouterr().out
    assert "broken: error" in said
    assert "RuntimeError: no data" in said


@pytest.mark.exhaustive
def test_a_model(folder, tmp_path, capsys):
    for _ in range(2):  # the second time from the files
        main([str(folder), "ones", "--out", str(tmp_path / "out")])
        said = capsys.readouterr().out
        assert "ones: right and mixed" in said
        assert "too few to gain" in said


@pytest.mark.exhaustive
@pytest.mark.choice
def test_what_is_chosen_for_the_public_catalogue():
    """Names with an even number of letters; the environment variable names their folder."""
    folder = os.environ.get("PYMC_AUSTERITY_CATALOGUE")
    if not folder:
        pytest.skip("PYMC_AUSTERITY_CATALOGUE does not name a folder of models")
    kinds = chosen_kinds(Path(folder))
    assert kinds, "no models"
    assert {name: error for name, (_, error) in kinds.items() if error} == {}


def test_a_run_without_draws_is_not_mixed():
    assert not is_mixed(Run(error="time: 3 s"))
