"""Two guards, neither of which suffices alone: the structural one and the numerical one."""

import numpy as np
import pytest

import pymc_austerity.model.cut.rules_elementwise as elementwise
import pymc_austerity.model.split as split_module
from pymc_austerity.errors import NotRowwiseError
from pymc_austerity.model import split_log_density, verify
from tests.zoo.all_shapes import SHAPES

MIXES_ROWS = ["softmax_over_rows", "cumulated_innovations", "ranks"]
PASSES_OVER_ALL_ROWS = ["centered_predictor", "mean_of_other_rows"]


@pytest.fixture
def no_structural_guard(monkeypatch):
    """Let softmax, cumulative sum and sort run along the rows, and keep anything."""
    monkeypatch.setattr(elementwise, "refuse_if_along_rows", lambda *_: None)
    monkeypatch.setattr(split_module, "refuse_work_on_all_rows", lambda _: None)


def split_and_point(name: str):
    model = SHAPES[name].build(53)
    point = model.initial_point()
    return split_log_density(model, point=point), point


@pytest.mark.usefixtures("no_structural_guard")
@pytest.mark.parametrize("name", MIXES_ROWS)
def test_numbers_catch_what_the_structural_guard_lets_through(name, rng):
    split, point = split_and_point(name)
    with pytest.raises(NotRowwiseError, match="rows depend on each other"):
        verify(split, point, rng=rng)


@pytest.mark.usefixtures("no_structural_guard")
def test_one_point_is_not_enough(rng):
    split, point = split_and_point("cumulated_innovations")
    verify(split, point, rng=rng, n_points=1)


@pytest.mark.usefixtures("no_structural_guard")
@pytest.mark.parametrize("name", PASSES_OVER_ALL_ROWS)
def test_numbers_cannot_catch_a_pass_over_all_rows(name, rng):
    split, point = split_and_point(name)
    verify(split, point, rng=rng)


@pytest.mark.parametrize("name", PASSES_OVER_ALL_ROWS)
def test_structure_catches_a_pass_over_all_rows(name):
    with pytest.raises(NotRowwiseError, match="all 53 rows"):
        split_and_point(name)


@pytest.mark.usefixtures("no_structural_guard")
def test_windows_catch_what_mixes_rows_among_many(rng):
    model = SHAPES["softmax_over_rows"].build(5_000)
    point = {"b": np.array([0.3, -0.2, 0.1])}
    split = split_log_density(model, point=point)
    with pytest.raises(NotRowwiseError, match="rows depend on each other"):
        verify(split, point, rng=rng, max_rows=200)
