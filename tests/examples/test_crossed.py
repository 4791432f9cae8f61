"""Crossed factors beside other programs: the ratings, the comparison, and the programs."""

import numpy as np
import pytest

from examples.benchmarks.crossed.__main__ import PYTHON, differences, line, problem, run
from examples.benchmarks.grouped_models import ratings
from examples.benchmarks.peers.cell import numbers
from examples.benchmarks.peers.run import Run

FEW = {"n_users": 30, "n_items": 10, "n_rows": 3_000}


@pytest.mark.parametrize("kind", ["normal", "binary", "ordinal"])
def test_the_model_is_that_of_the_rows(kind):
    rows = problem(kind, **FEW).rows
    model = ratings(kind, rows)
    assert np.array_equal(model.rvs_to_values[model["y"]].eval(), rows["y"])
    assert (model["users"].type.shape, model["items"].type.shape) == ((30,), (10,))


def test_estimates_are_compared_in_posterior_sds_of_ours():
    rng = np.random.default_rng(1)
    draws = rng.normal(2.0, 0.5, size=(1_000, 3))
    ours = numbers(Run({"users": draws}, 1.0, 2.0, 4.0, 10.0, 50.0), ())
    off = draws.mean(axis=0) + np.array([0.0, 0.0, 1.0])
    estimates = numbers(Run({"users": off[None]}, 0.0, 0.0, 0.0, 7.0, 1.0, approximate=True), ())
    found = differences(estimates, ours)
    assert found["largest"] == pytest.approx(2.0, abs=0.15)
    assert found["rms"] == pytest.approx(found["largest"] / np.sqrt(3.0), abs=0.01)
    about = {"kind": "normal", "sampler": "gpboost", "differences": found}
    assert line(estimates | about).startswith("| normal | GPBoost | estimates | - | - | - | - | 7 ")


@pytest.mark.skipif(not PYTHON.exists(), reason="make bench-crossed makes its environment")
@pytest.mark.parametrize("kind", ["normal", "binary"])
@pytest.mark.parametrize("name", ["crossed_effects", "gpboost"])
def test_other_programs_find_the_effects(kind, name):
    """Least squares of the normal ratings; the sign of what binary ones tell."""
    its = problem(kind, **FEW)
    draws = run(its, name, 20.0, PYTHON).draws
    user, item, y = its.rows.values()
    design = np.hstack([np.ones((len(y), 1)), np.eye(30)[user], np.eye(10)[item]])
    penalty = np.diag(np.r_[0.0, np.full(30, 2.0), np.full(10, 4.0)])
    expected = np.linalg.solve(design.T @ design + penalty, design.T @ y)
    found = np.concatenate([draws["users"].mean(axis=0), draws["items"].mean(axis=0)])
    assert found.shape == (40,)
    assert np.corrcoef(found, expected[1:])[0, 1] > 0.98
