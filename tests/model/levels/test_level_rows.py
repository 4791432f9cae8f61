"""Terms of levels as functions of a few predictors, against the terms themselves."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity.model import level_terms
from pymc_austerity.model.levels.prior_terms import LevelsAsRows
from tests.model.levels.test_independent_levels import observe
from tests.model.splitting import by_name
from tests.setup.targets import posed
from tests.zoo.registry import written

N, G = 120, 9
RNG = np.random.default_rng(4)
GROUP, X = np.arange(N) % G, RNG.normal(size=N)


def normal():
    observe(pm.Normal("a", pm.Normal("mu"), pm.HalfNormal("tau"), shape=G)[GROUP])


def heavy_tails():
    a = pm.StudentT("a", nu=4.0, mu=pm.Normal("mu"), sigma=pm.HalfNormal("tau"), shape=G)
    observe(a[GROUP])


def regression_of_levels():
    mean = pm.math.dot(RNG.normal(size=(G, 2)), pm.Normal("gamma", shape=2))
    observe(pm.Normal("a", mean, pm.HalfNormal("tau"), shape=G)[GROUP])


def nested():
    region = pm.Normal("region", 0.0, pm.HalfNormal("spread"), shape=3)
    observe(pm.Normal("a", region[np.arange(G) % 3], pm.HalfNormal("tau"), shape=G)[GROUP])


def covariance():
    chol, _, _ = pm.LKJCholeskyCov("c", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
    a = pm.MvNormal("a", pm.Normal("mu", shape=2), chol=chol, shape=(G, 2))
    observe(a[GROUP, 0] + a[GROUP, 1] * X)


def two_variables():
    a = pm.Normal("a", 0.0, pm.HalfNormal("tau"), shape=G)
    b = pm.Normal("b", 0.5 * a, pm.HalfNormal("sigma"), shape=G)
    observe(a[GROUP] + b[GROUP] * X)


def positive():
    observe(pm.math.log(pm.Gamma("a", pm.HalfNormal("shape"), 2.0, shape=G)[GROUP]))


def named_dimensions():
    model = pm.modelcontext(None)
    model.add_coords({"level": range(G), "effect": ["intercept", "slope"]})
    chol, _, _ = pm.LKJCholeskyCov("c", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
    mu = pm.Normal("mu", dims="effect")
    a = pm.MvNormal("a", mu, chol=chol, dims=("level", "effect"))
    observe(a[GROUP, 0] + a[GROUP, 1] * X)


MODELS = [
    normal,
    heavy_tails,
    regression_of_levels,
    nested,
    covariance,
    two_variables,
    positive,
    named_dimensions,
]


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: model.__name__)
def case(request):
    problem = posed(written(request.param))
    factor = max(problem.blocks.factors, key=lambda f: len(f.entries))
    terms = level_terms(problem.parts, factor.entries)
    return problem, factor, terms


def near(problem):
    return problem.start + 0.3 * RNG.normal(size=problem.start.size)


@pytest.mark.few("normal", "nested")
def test_are_functions_of_a_few_predictors(case):
    _, _, terms = case
    assert isinstance(terms.as_rows, LevelsAsRows)
    assert not isinstance(terms.as_rows.kernel, str)


@pytest.mark.few(
    "normal", "regression_of_levels", "nested", "covariance", "positive", "named_dimensions"
)
def test_add_up_to_the_exact_part_but_for_the_rest(case):
    problem, factor, terms = case

    def exact(theta):
        values = by_name(theta, problem.likelihood.value_vars, problem.prepared.point)
        return float(problem.prepared.verified.exact(*values.values()))

    here = near(problem)
    there = here.copy()
    there[factor.entries] += 0.4 * RNG.normal(size=factor.entries.shape)
    expected = exact(there) - exact(here)
    assert terms.as_rows.difference(there, here) == pytest.approx(expected)
    assert terms.terms(there).sum() - terms.terms(here).sum() == pytest.approx(expected)


def test_derivatives_are_those_of_differences(case):
    problem, factor, terms = case
    here, step = near(problem), 1e-5
    gradients, hessians = terms.derivatives(here)
    for k in range(factor.entries.shape[1]):
        move = np.zeros_like(here)
        move[factor.entries[:, k]] = step
        slope = (terms.terms(here + move) - terms.terms(here - move)) / (2 * step)
        np.testing.assert_allclose(gradients[:, k], slope, rtol=1e-5, atol=1e-6)
        rise = terms.derivatives(here + move)[0] - terms.derivatives(here - move)[0]
        np.testing.assert_allclose(hessians[:, :, k], rise / (2 * step), rtol=1e-5, atol=1e-5)


def test_know_what_else_they_depend_on(case):
    problem, factor, terms = case
    here = near(problem)
    others = np.setdiff1d(np.arange(here.size), factor.entries)
    assert set(terms.given) <= set(others)
    for entry in others:
        there = here.copy()
        there[entry] += 0.3
        if entry not in terms.given:
            np.testing.assert_array_equal(terms.terms(there), terms.terms(here))


def test_know_whether_they_are_quadratic(case):
    problem, _, terms = case
    priors = {type(rv.owner.op).__name__ for rv in problem.model.free_RVs if rv.name == "a"}
    assert terms.is_quadratic == (priors <= {"NormalRV", "MvNormalRV"})


def test_data_that_may_be_replaced_stay_data():
    with pm.Model() as model:
        height = pm.Data("height", np.linspace(-1.0, 1.0, G))
        observe(pm.Normal("a", pm.Normal("slope") * height, 1.0, shape=G)[GROUP])
    problem = posed(model)
    (factor,) = problem.blocks.factors
    terms = level_terms(problem.parts, factor.entries)
    assert terms.as_rows is None
    assert terms.is_quadratic
