"""Kinds of the entries of the raveled variables."""

import numpy as np
import pymc as pm

from pymc_austerity.orthonormal import UniformStiefel
from pymc_austerity.setup.problem import layout_of


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
