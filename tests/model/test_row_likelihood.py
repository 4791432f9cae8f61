"""Which likelihoods have a support that depends on parameters, as the graph shows it."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity.model import split_log_density, variables_that_move_the_support
from pymc_austerity.model.row_likelihood import fingerprint
from tests.zoo.registry import written

Y = np.random.default_rng(1).uniform(2.0, 3.0, size=30)
X = np.random.default_rng(2).normal(size=30)
GROUP = np.arange(30) % 3


def pareto():
    pm.Pareto("y", alpha=pm.HalfNormal("alpha"), m=pm.HalfNormal("bound"), observed=Y)


def uniform_by_group():
    pm.Uniform("y", 0.0, pm.HalfNormal("bound", 9.0, shape=3)[GROUP], observed=Y)


def truncated():
    rows = pm.Normal.dist(pm.Normal("mu"), 1.0)
    pm.Truncated("y", rows, upper=pm.Normal("bound", 9.0), observed=Y)


def censored():
    rows = pm.Normal.dist(pm.Normal("mu"), 1.0)
    pm.Censored("y", rows, lower=None, upper=pm.Normal("bound", 9.0), observed=Y)


def half_normal():
    pm.HalfNormal("y", pm.HalfNormal("sigma"), observed=Y)


def poisson():
    pm.Poisson("y", pm.math.exp(pm.Normal("a") + pm.Normal("b") * X), observed=GROUP)


def truncated_at_data():
    rows = pm.Normal.dist(pm.Normal("mu"), 1.0)
    pm.Truncated("y", rows, lower=Y - 1.0, upper=4.0, observed=Y)


def change_point():
    rate = pm.math.switch(pm.Normal("when") > X, pm.HalfNormal("early"), pm.HalfNormal("late"))
    pm.Exponential("y", rate, observed=Y)


def zero_inflated():
    pm.ZeroInflatedPoisson("y", pm.Beta("psi", 1, 1), pm.HalfNormal("mu"), observed=GROUP)


@pytest.mark.parametrize("write", [pareto, uniform_by_group, truncated, censored])
def test_bounds_that_are_unknown(write):
    model = written(write)
    (variable,) = variables_that_move_the_support(split_log_density(model))
    assert model.values_to_rvs[variable].name == "bound"


@pytest.mark.parametrize(
    "write", [half_normal, poisson, truncated_at_data, change_point, zero_inflated]
)
def test_supports_that_are_fixed(write):
    assert variables_that_move_the_support(split_log_density(written(write))) == []


@pytest.mark.parametrize("size", [10, 2_000_000])
def test_copies_and_other_layouts_are_the_same(rng, size):
    array = rng.normal(size=(size // 2, 2))
    assert fingerprint([array]) == fingerprint([array.copy()])
    assert fingerprint([array]) == fingerprint([np.asfortranarray(array)])


def test_one_entry_of_small_data_counts(rng):
    array = rng.normal(size=100_000)
    before = fingerprint([array])
    for position in rng.integers(array.size, size=20):
        array[position] += 1e-9
        assert fingerprint([array]) != before
        before = fingerprint([array])


def test_one_entry_in_ten_thousand_of_large_data_counts(rng):
    array = rng.normal(size=2_000_000)
    before = fingerprint([array])
    array[rng.integers(array.size, size=array.size // 10_000)] += 1e-9
    assert fingerprint([array]) != before


def test_shapes_and_types_count():
    zeros = [np.zeros((2, 3)), np.zeros((3, 2)), np.zeros(6), np.zeros(6, dtype=np.float32)]
    assert len({fingerprint([array]) for array in zeros}) == 4


def test_nothing_of_no_data():
    assert fingerprint([np.zeros((0, 3))]) == fingerprint([np.zeros((0, 3))])
