"""Kinds of the entries of the raveled variables."""

import numpy as np
import pymc as pm

from pymc_austerity.paper import UniformStiefel
from pymc_austerity.setup import problem as module
from pymc_austerity.setup.problem import layout_of
from tests.setup.targets import posed


def test_every_kind_of_variable_has_its_layout():
    with pm.Model() as model:
        pm.Normal("real", shape=(2, 3))
        pm.Poisson("count", 3.0)
        pm.Bernoulli("coin", 0.5, shape=2)
        pm.Categorical("kind", np.full(4, 0.25))
        UniformStiefel("turn", n=2)
    layout = layout_of(model.value_vars, model, model.initial_point())
    assert {block.name: block.shape for block in layout.blocks} == {
        "real": (2, 3), "count": (), "coin": (2,), "kind": (), "turn": (2, 2)
    }  # fmt: skip
    kinds = {block.name: set(layout.n_categories[block.entries]) for block in layout.blocks}
    assert kinds == {"real": {0}, "count": {1}, "coin": {2}, "kind": {4}, "turn": {0}}
    assert [block.name for block in layout.blocks if block.orthonormal] == ["turn"]


def test_an_error_in_the_search_for_groups_means_none(monkeypatch, caplog):
    with pm.Model() as model:
        level = pm.Normal("level", shape=3)
        pm.Normal("y", level[np.arange(30) % 3], 1.0, observed=np.zeros(30))

    def fails(*_):
        raise IndexError("of levels")

    monkeypatch.setattr(module, "find_blocks", fails)
    assert posed(model).blocks is None
    assert "search for groups" in caplog.text and "of levels" in caplog.text
