"""Levels whose prior joins them are no factor, also where that cannot be seen at the start."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_austerity.model import NotByLevelError, level_terms
from tests.setup.targets import posed
from tests.zoo.registry import written

N, G = 400, 40
RNG = np.random.default_rng(6)
GROUP, X = RNG.permutation(np.arange(N) % G), RNG.normal(size=N)
W = RNG.normal(size=(G, G))


def observe(eta):
    """Counts, which say nothing of the levels."""
    n_rows = eta.type.shape[0]
    pm.Poisson("y", pm.math.exp(eta), observed=np.arange(n_rows) % 3)


def mean_of_the_other_effect():
    gamma, a = pm.Normal("gamma"), pm.Normal("a", 0.0, 0.5, shape=G)
    b = pm.Normal("b", gamma * (a - a.mean()), 0.5, shape=G)
    observe(a[GROUP] + b[GROUP] * X)


def neighbors():
    gamma, a = pm.Normal("gamma"), pm.Normal("a", 0.0, 0.5, shape=G)
    b = pm.Normal("b", gamma * pt.dot(W, a), 0.5, shape=G)
    observe(a[GROUP] + b[GROUP] * X)


def outcome_in_another_order():
    gamma, a = pm.Normal("gamma"), pm.Normal("a", 0.0, 0.5, shape=G)
    pm.Bernoulli("event", logit_p=gamma * a[::-1], observed=np.arange(G) % 2)
    observe(a[GROUP])


def autoregression():
    rho, a = pm.Uniform("rho", -1.0, 1.0), pm.Normal("a", 0.0, 0.5, shape=G)
    before = pt.concatenate([[0.0], a[:-1]])
    pm.Potential("smooth", pm.logp(pm.Normal.dist(rho * before, 1.0), a))
    observe(a[GROUP])


def first_of_all():
    gamma, a = pm.Normal("gamma"), pm.Normal("a", 0.0, 0.5, shape=G)
    pm.Potential("to_the_first", -((a - gamma * a[0]) ** 2))
    observe(a[GROUP])


def read_otherwise():
    a = pm.Normal("a", 0.0, 1.0, shape=G)
    observe(a[GROUP] - a[G - 1])


@pytest.mark.few("first_of_all", "neighbors", "read_otherwise")
@pytest.mark.parametrize(
    "write",
    [
        mean_of_the_other_effect,
        neighbors,
        outcome_in_another_order,
        autoregression,
        first_of_all,
        read_otherwise,
    ],
)
def test_are_no_factor(write):
    problem = posed(written(write))
    for factor in problem.blocks.factors:
        with pytest.raises(NotByLevelError):
            level_terms(problem.parts, factor.entries)


@pytest.mark.few("1.0")
@pytest.mark.parametrize("unit", [1.0, 1e5])
def test_heavy_tails_are_not_quadratic_in_any_unit(unit):
    with pm.Model() as model:
        a = pm.StudentT("a", nu=4.0, mu=pm.Normal("mu"), sigma=pm.HalfNormal("s", unit), shape=G)
        pm.Normal("y", a[GROUP], unit, observed=unit * RNG.normal(size=N))
    problem = posed(model)
    (factor,) = problem.blocks.factors
    terms = level_terms(problem.parts, factor.entries)
    assert not terms.is_quadratic


def test_pairs_with_a_matrix_as_prior_are_levels():
    with pm.Model() as model:
        a = pm.Normal("a", 0.0, pm.HalfNormal("s"), shape=(5, G // 5))
        observe(a[GROUP % 5, GROUP // 5])
    problem = posed(model)
    (factor,) = problem.blocks.factors
    terms = level_terms(problem.parts, factor.entries)
    expected = pm.logp(pm.Normal.dist(), values := RNG.normal(size=G)).eval()
    np.testing.assert_allclose(terms.terms(np.append(0.0, values)), expected, rtol=1e-10)


def test_a_level_that_divides_by_zero_leaves_the_others_as_they_are():
    with pm.Model() as model:
        a, mu = pm.Normal("a", shape=G), pm.Normal("mu")
        pm.Potential("near", -pt.sqrt(a**2 + (mu - 1.0) ** 2))
        observe(a[GROUP])
    problem = posed(model)
    (factor,) = problem.blocks.factors
    values = np.where(np.arange(G) == 2, 0.0, 1.5)  # the slope of a root is 0 / 0 at zero
    terms = level_terms(problem.parts, factor.entries).terms(np.append(values, 1.0))
    expected = pm.logp(pm.Normal.dist(), values).eval() - values
    np.testing.assert_allclose(terms, expected, rtol=1e-10)
