"""The worst entries of a posterior are found, and nothing is said where nothing is known."""

import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import xarray as xr

from pymc_austerity._pymc import PYMC_GENERATION
from pymc_austerity.diagnostics import convergence
from pymc_austerity.diagnostics.convergence import Convergence, convergence_of
from tests.diagnostics.runs import forms_of, synthetic


def of(**variables):
    return convergence_of(forms_of(synthetic(), **variables)["tree"])


@pytest.mark.parametrize("form", ["tree", "idata"])
def test_the_worst_entry_of_all_is_named(form, rng):
    a, b = rng.normal(size=(4, 500)), rng.normal(size=(4, 500, 30, 2))
    b[2, :, 17, 1] += 1.0
    found = convergence_of(forms_of(synthetic(4, 500), a=a, b=b)[form])
    assert (found.name, found.ess_name) == ("b[17, 1]", "b[17, 1]")
    assert found.r_hat > 1.1
    assert found.ess < 50
    assert found.ess_within > 300
    assert found.chains_disagree
    assert found.has_several_places
    assert (found.n_chains, found.n_draws) == (4, 2_000)


def test_entries_have_the_labels_of_their_coordinates(rng):
    b = rng.normal(size=(4, 500, 3, 2))
    b[2, :, 1, 1] += 1.0
    dims, states = ("chain", "draw", "state", "k"), ["Ohio", "Texas", "Utah"]
    posterior = xr.Dataset({"b": (dims, b)}, coords={"state": states})
    found = convergence_of(xr.DataTree.from_dict({"posterior": posterior}))
    assert found.name == "b[Texas, 1]"


def test_a_slow_scale_beside_many_levels_is_found(rng):
    """Its chains agree better than those of some levels."""
    halves = np.repeat(rng.normal(size=(4, 125)), 4, axis=1)
    tau = (halves - halves.mean(axis=1, keepdims=True)).reshape(2, 1_000)
    found = of(level=rng.normal(size=(2, 1_000, 500)), tau=tau)
    assert found.ess_name == "tau"
    assert found.ess < 700


def test_an_entry_whose_chains_differ_in_spread_is_found(rng):
    """Its means agree, as those of many others do."""
    draws = rng.normal(size=(4, 500, 2_000))
    draws[0, :, 1_234] *= 2.0
    found = of(b=draws)
    assert found.name == "b[1234]"
    assert found.r_hat > 1.05


def test_independent_draws_are_fine(rng):
    found = of(a=rng.normal(size=(2, 100, 50)), k=rng.integers(0, 3, size=(2, 100)))
    assert not found.chains_disagree
    assert not found.is_too_short


def test_deterministics_are_left_out_where_free_variables_are_known(rng):
    """As in PyMC: one of the many entries of a row's mean may differ by chance."""
    run = synthetic(attrs={"free_variables": "a\nother"})
    far = rng.normal([[0.0], [3.0]], size=(2, 200))
    found = convergence_of(forms_of(run, a=rng.normal(size=(2, 200)), mu=far)["tree"])
    assert found.name == found.ess_name == "a"
    assert convergence_of(forms_of(run, mu=far)["tree"]).name == "mu"


def test_parts_of_the_other_arviz_are_left_alone(rng, monkeypatch):
    """pymc-extras brings a part of ArviZ 1, which lacks most functions, also beside ArviZ 0."""
    other = "arviz" if PYMC_GENERATION >= 6 else "arviz_stats"
    monkeypatch.setitem(sys.modules, other, ModuleType(other))
    assert of(a=rng.normal(size=(2, 200))).r_hat < 1.05


def test_a_slow_chain_is_not_one_of_several_modes(rng):
    found = of(a=np.cumsum(rng.normal(size=(4, 500)), axis=1))
    assert found.chains_disagree
    assert not found.has_several_places


def test_many_draws_worth_few(rng):
    """An autoregression with 400 draws to each effective one; r_hat alone would not say so."""
    noise = rng.normal(size=(2, 20_000))
    draws = np.empty_like(noise)
    draws[:, 0] = noise[:, 0]
    for i in range(1, 20_000):
        draws[:, i] = 0.995 * draws[:, i - 1] + np.sqrt(1 - 0.995**2) * noise[:, i]
    found = of(a=draws)
    assert 50 < found.ess < 200
    assert not of(a=draws[:, :400]).is_too_short


@pytest.mark.parametrize("scale", [1e-200, 1e300])
def test_chains_that_do_not_move_disagree_at_any_scale(scale, rng):
    stuck = np.array([1.0, 2.0])[:, None] * np.ones(200)
    found = of(a=scale * stuck, b=rng.normal(size=(2, 200)))
    assert found.name == "a"
    assert found.r_hat == np.inf or found.r_hat > 1e3
    assert found.chains_disagree


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"a": np.zeros((1, 500))},
        {"a": np.random.default_rng(1).normal(size=(4, convergence.MIN_DRAWS - 1))},
        {"a": np.ones((2, 200))},
        {"a": np.full((2, 200), np.nan)},
        {"a": np.full((2, 200), "text")},
        {"a": np.ones((2, 200, 0))},
    ],
    ids=["no draws", "one chain", "short", "constant", "NaN", "text", "no entries"],
)
def test_silence_where_there_is_nothing_to_compare(variables):
    assert of(**variables) is None


def test_statistics_alone_have_no_draws():
    statistics = synthetic()
    assert convergence_of(statistics) is None
    assert convergence_of(xr.DataTree.from_dict({"sample_stats": statistics})) is None


def test_chains_that_move_slowly_are_not_said_to_have_several_places():
    """Their means differ as chance explains, although r_hat is above 1.05."""
    found = Convergence(4, 4_000, "b", 1.15, 40.0, "b", ess_within=27.0)
    assert found.is_apart and not found.has_several_places
    assert replace(found, r_hat=2.0).has_several_places
