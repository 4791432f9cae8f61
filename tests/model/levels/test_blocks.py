"""Which rows read which parameters, against the rows themselves."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH
from pymc_austerity.model import compile_row_free_derivatives, find_blocks
from tests.model.predictors.brute_force import Structured, of_shape
from tests.zoo.registry import N_CATEGORIES, N_GROUPS, N_TIMES

N_ROWS = 53

FACTORS = {
    "intercepts_and_slopes": {"[a, b]": (N_GROUPS, 2)},
    "two_indices": {"table": (N_GROUPS * N_CATEGORIES, 1)},
    "slopes_by_group": {"B": (N_GROUPS, 3)},
    "correlated_effects": {"z": (N_GROUPS, 2)},
    "binomial_by_group_and_time": {"a": (N_GROUPS, 1), "t": (N_TIMES, 1)},
    "item_response": {"[slope_log__, difficulty]": (N_CATEGORIES, 2), "ability": (N_GROUPS, 1)},
    "random_effects_by_row": {"effect": (N_ROWS, 1)},
    "latent_random_walk": {},
    "zero_sum_effects": {},
    "logistic": {},
}
"""Of shapes of the zoo: variables of the levels, number of levels and of entries for each."""


def blocks_of(found):
    exact = compile_row_free_derivatives(found.at)
    return find_blocks(found.structure, found.at, lambda point: exact.gradient(point)[1])


@pytest.mark.few("item_response", "slopes_by_group", "random_effects_by_row", "two_indices")
@pytest.mark.parametrize("name", FACTORS)
def test_entries_are_read_by_the_rows_of_their_block(name, rng):
    found = of_shape(name, rng)
    blocks = blocks_of(found)
    assert {f.names: f.entries.shape for f in blocks.factors} == FACTORS[name]
    every = [blocks.common, blocks.untouched, *(f.entries.ravel() for f in blocks.factors)]
    np.testing.assert_array_equal(np.sort(np.concatenate(every)), np.arange(found.structure.size))
    block = [leaf.array for leaf in found.split.leaves]
    theta = found.near()
    before = found.etas(theta, block)

    def readers(entry):
        there = theta.copy()
        there[entry] += 0.5
        moved = [eta != eta_0 for eta, eta_0 in zip(found.etas(there, block), before, strict=True)]
        return np.any(moved, axis=0)

    assert not any(readers(entry).any() for entry in blocks.untouched)
    assert all(readers(entry).any() for entry in blocks.common)
    for factor in blocks.factors:
        of_level = [np.any([readers(e) for e in entries], axis=0) for entries in factor.entries]
        assert (np.sum(of_level, axis=0) <= 1).all()  # no row reads two levels
        np.testing.assert_array_equal(np.sum(of_level, axis=1), factor.n_rows)


@pytest.mark.few("6-4")
@pytest.mark.parametrize(("i", "j"), [(0, 1), (2, 5), (6, 4), (3, 6)])
def test_two_levels_that_a_prior_couples_are_found(i, j, rng):
    group = np.arange(N_ROWS) % N_GROUPS
    with pm.Model() as model:
        a = pm.Normal("a", shape=N_GROUPS)
        pm.Potential("coupled", -((a[i] - a[j]) ** 2))
        pm.Normal("y", a[group], 1.0, observed=rng.normal(size=N_ROWS))
    blocks = blocks_of(Structured(model, rng))
    assert blocks.factors == () and blocks.common.size == N_GROUPS


def test_levels_without_rows_and_nested_factors(rng):
    school = rng.integers(0, 9, N_ROWS)
    school[school == 4] = 5
    district = np.arange(9) // 3
    with pm.Model() as model:
        a, b = pm.Normal("a", shape=9), pm.Normal("b", shape=3)
        pm.Normal("y", a[school] + b[district[school]], 1.0, observed=rng.normal(size=N_ROWS))
    schools, districts = blocks_of(Structured(model, rng)).factors
    np.testing.assert_array_equal(schools.n_rows, np.bincount(school, minlength=9))
    np.testing.assert_array_equal(districts.n_rows, np.bincount(district[school], minlength=3))
    assert str(schools).startswith("9 levels of a, 0 to ")


@pytest.mark.parametrize("data", [pm.Data, lambda name, values: values], ids=["data", "array"])
def test_schools_that_rows_read_by_their_class(data, rng):
    """Some schools have a single class."""
    school, in_class = np.array([0, 0, 0, 1, 2, 2, 3]), np.arange(N_ROWS) % 7
    with pm.Model() as model:
        a, b = pm.Normal("a", shape=7), pm.Normal("b", shape=4)
        of_class = a + b[data("school", school)]
        y = rng.normal(size=N_ROWS)
        pm.Normal("y", of_class[data("class", in_class)], 1.0, observed=y)
    classes, schools = blocks_of(Structured(model, rng)).factors
    np.testing.assert_array_equal(classes.n_rows, np.bincount(in_class))
    np.testing.assert_array_equal(schools.n_rows, np.bincount(school[in_class]))


def test_levels_that_rows_read_in_another_order_are_in_that_of_their_prior(rng):
    """Such as districts with one school each."""
    order, school = np.array([3, 0, 4, 1, 2]), np.arange(N_ROWS) ** 2 % 5
    with pm.Model() as model:
        a, b = pm.Normal("a", shape=5), pm.Normal("b", shape=5)
        pm.Normal("y", a[school] + b[order][school], 1.0, observed=rng.normal(size=N_ROWS))
    schools, districts = blocks_of(Structured(model, rng)).factors
    for factor, levels in ((schools, school), (districts, order[school])):
        assert (np.diff(factor.entries[:, 0]) > 0).all()
        np.testing.assert_array_equal(factor.n_rows, np.bincount(levels, minlength=5))


def test_explain_shows_the_groups(rng):
    group = np.repeat(np.arange(4), 50)
    with pm.Model():
        mu = pm.Normal("mu")
        a = pm.Normal("a", mu, 1.0, shape=4)
        pm.Normal("y", a[group], 1.0, observed=rng.normal(size=200))
        text = AusterityMH(compile_kwargs={"mode": "FAST_COMPILE"}).explain()
    assert "Read by no row: mu." in text
    assert "Groups: 4 levels of a, 50 rows each, independent given the other variables." in text


def test_a_vector_that_rows_read_through_two_indices_is_no_factor(rng):
    one, other = rng.integers(0, N_GROUPS, (2, N_ROWS))
    with pm.Model() as model:
        s = pm.Normal("s", shape=N_GROUPS)
        pm.Normal("y", s[one] - s[other], 1.0, observed=rng.normal(size=N_ROWS))
    blocks = blocks_of(Structured(model, rng))
    assert blocks.factors == () and blocks.common.size == N_GROUPS
