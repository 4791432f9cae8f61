"""Effects that sum to zero, written as levels with a mean of their own, against brute force."""

import numpy as np
import pymc as pm
import pytest
from scipy.stats import norm

from pymc_austerity.model import find_predictors, free_levels
from pymc_austerity.model.levels import zero_sum
from tests.model.levels.test_products import by_variable, function
from tests.model.splitting import at_start, by_name, raveled
from tests.zoo.registry import written

N, G = 60, 7
RNG = np.random.default_rng(3)
GROUP, X, Y = RNG.integers(0, G, size=N), RNG.normal(size=N), RNG.integers(0, 2, size=N)
DESIGN = np.stack([X, np.ones(N), X**2], axis=1)
SIGMA = 1.3


def observe(eta):
    pm.Bernoulli("y", logit_p=eta, observed=Y)


def intercept():
    a = pm.ZeroSumNormal("a", sigma=SIGMA, shape=G)
    observe(pm.StudentT("mu", nu=4.0) + X * pm.Normal("b") + a[GROUP])


def column_of_ones():
    beta = pm.Normal("beta", [0.1, 0.2, 0.3], 1.5, shape=3)
    observe(pm.math.dot(DESIGN, beta) + pm.ZeroSumNormal("a", sigma=SIGMA, shape=G)[GROUP])


def slope():
    effects = pm.Normal("b", 0.5) + pm.ZeroSumNormal("a", sigma=SIGMA, shape=G)
    observe(pm.Normal("mu") + X * effects[GROUP])


def not_centered():
    tau = pm.HalfNormal("tau")
    observe(pm.Normal("mu", 1.0) + tau * pm.ZeroSumNormal("a", sigma=SIGMA, shape=G)[GROUP])


def with_dims():
    pm.modelcontext(None).add_coord("group", range(G))
    a = pm.ZeroSumNormal("a", sigma=SIGMA * pm.math.exp(pm.Normal("t")), dims="group")
    observe(pm.Deterministic("eta", pm.Normal("mu") + a[GROUP]))


FORMS = {f.__name__: f for f in (intercept, column_of_ones, slope, not_centered, with_dims)}


@pytest.fixture(scope="module", params=FORMS)
def form(request):
    model = written(FORMS[request.param])
    at = at_start(model)
    found = free_levels(at)
    size = raveled(found.at.point, found.at.variables).size
    return model, at.likelihood, found, 0.4 * RNG.normal(size=(2, size))


def values_at(found, point):
    return by_name(point, found.at.variables, found.at.point)


def levels_in(found, point):
    return values_at(found, point)["a"]


def sigma_at(found, point):
    return SIGMA * float(np.exp(values_at(found, point).get("t", 0.0)))


@pytest.mark.few("intercept", "with_dims")
def test_the_user_gets_effects_that_sum_to_zero(form):
    model, _, found, (point, _) = form
    user = found.effects(point)
    again = found.levels(user)
    assert again.size == user.size + 1 == point.size
    assert levels_in(found, again).sum() == pytest.approx(0.0, abs=1e-12)
    levels = levels_in(found, point)
    np.testing.assert_allclose(levels_in(found, again), levels - levels.mean(), atol=1e-12)
    np.testing.assert_allclose(found.effects(again), user, atol=1e-12)
    (effects,) = function(model.value_vars, model.replace_rvs_by_values([model["a"]]))(
        *by_variable(user, model)
    )
    np.testing.assert_allclose(effects, levels - levels.mean(), atol=1e-12)


@pytest.mark.few("intercept", "with_dims")
def test_rows_are_the_same_and_functions_of_one_predictor(form):
    model, split, found, points = form
    its = found.at.likelihood
    leaves = [leaf.placeholder for leaf in its.leaves]
    by_row = function([*found.at.variables, *leaves], its.rows)
    full = function(list(found.at.variables), its.full)
    before = function(model.value_vars, split.full)
    for point in points:
        there = values_at(found, point).values()
        expected = before(*by_variable(found.effects(point), model))
        np.testing.assert_allclose(full(*there), expected, rtol=1e-9)
        np.testing.assert_allclose(by_row(*there, *its.arrays), expected, rtol=1e-9)
    if "tau" not in model.named_vars:
        assert len(find_predictors(found.at).predictors) == 1


@pytest.mark.few("intercept", "with_dims")
def test_the_exact_part_has_the_density_of_the_mean_and_nothing_else(form):
    model, split, found, points = form
    its = found.at.likelihood
    joint = dict(its.joint_terms)
    by_level = [term for k, term in enumerate(its.row_free_terms) if k not in joint]
    total = sum(t.sum() for t in its.row_free_terms)
    inside = function(list(found.at.variables), [its.row_free, total])
    rest = function(list(found.at.variables), sum(t.sum() for t in by_level))
    outside = function(model.value_vars, split.row_free)
    differences = []
    for point in points:
        there = values_at(found, point).values()
        here = by_variable(found.effects(point), model)
        exact, by_terms = inside(*there)
        assert float(by_terms) == pytest.approx(float(exact), abs=1e-10)
        mean = levels_in(found, point).mean()
        spread = sigma_at(found, point) / np.sqrt(G)
        differences.append(exact - outside(*here) - norm.logpdf(mean, 0.0, spread))
        summed = function(model.value_vars, list(joint.values()))(*here)  # knows no levels
        assert float(exact - rest(*there)) == pytest.approx(sum(float(s.sum()) for s in summed))
    assert differences[0] == pytest.approx(differences[1], abs=1e-10)  # but for a constant


def found_in(write):
    return free_levels(at_start(written(write)))


def nothing_beside_them():
    observe(X * pm.Normal("b") + pm.ZeroSumNormal("a", shape=G)[GROUP])


def two_axes():
    a = pm.ZeroSumNormal("a", shape=(3, G), n_zerosum_axes=2)
    observe(pm.Normal("mu") + a[GROUP % 3, GROUP])


def several_vectors():
    observe(pm.Normal("mu") + pm.ZeroSumNormal("a", shape=(3, G))[GROUP % 3, GROUP])


def a_scale_for_each_level():
    a = pm.HalfNormal("tau", shape=G) * pm.ZeroSumNormal("a", shape=G)
    observe(pm.Normal("mu") + a[GROUP])


def read_by_another_prior():
    a = pm.ZeroSumNormal("a", shape=G)
    pm.Potential("largest", -(a.max() ** 2))
    observe(pm.Normal("mu") + a[GROUP])


def a_scale_that_depends_on_what_is_beside_them():
    mu = pm.Normal("mu")
    observe(mu + pm.ZeroSumNormal("a", sigma=pm.math.exp(mu), shape=G)[GROUP])


def positive_beside_them():
    observe(pm.HalfNormal("mu") + pm.ZeroSumNormal("a", shape=G)[GROUP])


@pytest.mark.few("two_axes", "positive_beside_them", "a_scale_for_each_level")
@pytest.mark.parametrize(
    "write",
    [
        nothing_beside_them,
        two_axes,
        several_vectors,
        a_scale_for_each_level,
        read_by_another_prior,
        a_scale_that_depends_on_what_is_beside_them,
        positive_beside_them,
    ],
)
def test_other_effects_stay_as_they_are(write):
    assert found_in(write) is None


@pytest.mark.parametrize("ones", [True, False])
def test_every_row_has_to_read_what_is_beside_them(ones, monkeypatch):
    monkeypatch.setattr(zero_sum, "_FEW_ROWS", 1)
    monkeypatch.setattr(zero_sum, "_BLOCK", 7)
    column = np.ones(N)
    column[np.random.default_rng(0).permutation(N)[-1]] = 1.0 if ones else 1.01

    def write():
        a = pm.ZeroSumNormal("a", shape=G)
        observe(pm.math.dot(column[:, None], pm.Normal("beta", shape=1)) + a[GROUP])

    assert (found_in(write) is not None) is ones


def test_effects_of_two_factors_are_freed_one_after_the_other():
    other = RNG.integers(0, 4, size=N)
    with pm.Model() as model:
        a, c = pm.ZeroSumNormal("a", shape=G), pm.ZeroSumNormal("c", sigma=0.5, shape=4)
        observe(pm.Normal("mu") + a[GROUP] + c[other])
    first = free_levels(at_start(model))
    second = free_levels(first.at)
    assert (first.name, second.name) == ("a", "c")
    assert free_levels(second.at) is None
    point = RNG.normal(size=raveled(second.at.point, second.at.variables).size)
    inner, user = values_at(second, point), first.effects(second.effects(point))
    outer = by_name(user, model.value_vars, model.initial_point())
    expected = inner["mu"] + inner["a"].mean() + inner["c"].mean()
    assert float(outer["mu"]) == pytest.approx(float(expected))
    ((number, of_sum),) = second.at.likelihood.joint_terms
    prior = function(model.value_vars, of_sum)(*outer.values())
    term = second.at.likelihood.row_free_terms[number]
    inside = function(list(second.at.variables), term)(*inner.values())
    assert float(inside) == pytest.approx(float(prior))
