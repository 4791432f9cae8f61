"""Which likelihoods have a support that depends on parameters, as the graph shows it."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity.model import split_log_density, variables_that_move_the_support

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
    with pm.Model() as model:
        write()
    (variable,) = variables_that_move_the_support(split_log_density(model))
    assert model.values_to_rvs[variable].name == "bound"


@pytest.mark.parametrize(
    "write", [half_normal, poisson, truncated_at_data, change_point, zero_inflated]
)
def test_supports_that_are_fixed(write):
    with pm.Model() as model:
        write()
    assert variables_that_move_the_support(split_log_density(model)) == []
