"""Non-centered factors written in their centered form, against brute force."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_austerity.model import ModelAt, centered, find_predictors
from pymc_austerity.model.compiling import NUMPY_MODE
from tests.model.splitting import at_start, by_name, raveled
from tests.references import slopes_of
from tests.zoo.registry import written

N, G = 60, 7
RNG = np.random.default_rng(3)
DESIGN = np.random.default_rng(4).normal(size=(N, G))
GROUP, X, Y = RNG.integers(0, G, size=N), RNG.normal(size=N), RNG.integers(0, 2, size=N)


def observe(eta):
    pm.Bernoulli("y", logit_p=eta, observed=Y)


def scaled_and_shifted():
    mu, tau, z = pm.Normal("mu"), pm.HalfNormal("tau"), pm.Normal("z", shape=G)
    a = pm.Deterministic("a", mu + tau * z)
    observe(a[GROUP] + X * pm.Normal("b"))


def picked_first():
    tau, z = pm.HalfNormal("tau"), pm.StudentT("z", nu=4.0, shape=G)
    observe(pm.Normal("mu") + X * z[GROUP] * tau)


def given_axes():
    """As beside the cut points of ordered categories."""
    tau, z = pm.HalfNormal("tau"), pm.Normal("z", shape=G)
    observe((pm.Normal("mu") + (tau * z[GROUP])[:, None] * [[0.3, 0.7]]).sum(axis=1))


def scales_of_columns():
    tau, z = pm.HalfNormal("tau", shape=2), pm.Normal("z", shape=(G, 2))
    observe((tau * z[GROUP] * np.stack([np.ones(N), X], axis=1)).sum(axis=1))


def several_scales():
    tau, z = pm.HalfNormal("tau", shape=2), pm.Normal("z", shape=(G, 2))
    a = tau * z
    observe(a[GROUP, 0] + a[GROUP, 1] * X)


def scales_of_levels():
    tau, local = pm.HalfNormal("tau"), pm.HalfNormal("local", shape=G)
    observe((tau * pm.Normal("z", shape=G) * local)[GROUP] * X)


def cholesky():
    chol, _, _ = pm.LKJCholeskyCov("c", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
    return chol


def right_product():
    a = pt.dot(pm.Normal("z", shape=(G, 2)), cholesky().T)
    observe(a[GROUP, 0] + a[GROUP, 1] * X)


def left_product():
    a = pm.Deterministic("a", pt.dot(cholesky(), pm.Normal("z", shape=(2, G))).T)
    observe((a[GROUP] * np.stack([np.ones(N), X], axis=1)).sum(axis=1))


def operator():
    a = pm.Normal("z", shape=(G, 2)) @ cholesky().T
    observe(a[GROUP, 0] + a[GROUP, 1] * X)


def columns_of_data():
    tau, local = pm.HalfNormal("tau"), pm.HalfNormal("local", shape=G)
    observe(DESIGN @ (pm.Normal("z", shape=G) * local * tau))


def a_function_as_scale():
    frequency, length = np.arange(1.0, G + 1.0), pm.HalfNormal("length")
    observe(DESIGN @ (pm.Normal("z", shape=G) * pt.sqrt(pt.exp(-((length * frequency) ** 2)))))


def a_number():
    z = pm.Normal("z")
    observe(pm.Normal("mu") + pm.HalfNormal("tau") * z * X)


def an_array_of_one_number():
    observe((DESIGN[:, :1] * (pm.Normal("z", shape=1) * pm.HalfNormal("tau"))).sum(axis=1))


def two_factors():
    other = RNG.integers(0, 4, size=N)
    z, w = pm.Normal("z", shape=G), pm.Normal("w", shape=4)
    observe(pm.HalfNormal("s") * z[GROUP] + pm.HalfNormal("t") * w[other])


FORMS = {
    form.__name__: form
    for form in (
        scaled_and_shifted,
        picked_first,
        given_axes,
        scales_of_columns,
        several_scales,
        scales_of_levels,
        right_product,
        left_product,
        operator,
        columns_of_data,
        a_function_as_scale,
        a_number,
        an_array_of_one_number,
        two_factors,
    )
}


def by_variable(raveled, model):
    return by_name(raveled, model.value_vars, model.initial_point()).values()


def function(inputs, outputs):
    return pytensor.function(inputs, outputs, mode=NUMPY_MODE, on_unused_input="ignore")


@pytest.fixture(scope="module", params=FORMS)
def form(request):
    model = written(FORMS[request.param])
    at = at_start(model)
    size = raveled(at.point, at.variables).size
    return model, at.likelihood, centered(at), 0.4 * RNG.normal(size=size)


@pytest.mark.few("columns_of_data", "several_scales", "a_number", "left_product")
def test_products_and_factors_are_inverse(form):
    _, _, found, point = form
    there = found.products(point)
    assert (there != point).any()
    np.testing.assert_allclose(found.factors(there), point, rtol=1e-10)


@pytest.mark.few("columns_of_data", "several_scales", "a_number", "left_product")
def test_log_density_changes_by_the_jacobian(form):
    model, split, found, point = form
    its, there = found.likelihood, found.products(point)
    jacobian = slopes_of(found.factors, there)
    total = sum(term.sum() for term in its.row_free_terms)
    inside = function(model.value_vars, [its.row_free, total])
    outside = function(model.value_vars, split.row_free)
    exact, by_terms = inside(*by_variable(there, model))
    expected = outside(*by_variable(point, model)) + np.linalg.slogdet(jacobian)[1]
    assert float(exact) == pytest.approx(float(expected), abs=1e-6)
    assert float(by_terms) == pytest.approx(float(exact), abs=1e-9)


@pytest.mark.few("columns_of_data", "several_scales", "a_number", "left_product")
def test_rows_are_the_same(form):
    model, split, found, point = form
    its = found.likelihood
    leaves = [leaf.placeholder for leaf in its.leaves]
    rows, there = np.array([3, 1, 1, 50]), by_variable(found.products(point), model)
    by_row = function([*model.value_vars, *leaves], its.rows)
    full, before = (function(model.value_vars, s.full) for s in (its, split))
    expected = before(*by_variable(point, model))
    np.testing.assert_allclose(full(*there), expected, rtol=1e-9)
    picked = by_row(*there, *(array[rows] for array in its.arrays))
    np.testing.assert_allclose(picked, expected[rows], rtol=1e-9)


def test_rows_are_functions_of_one_predictor(form):
    model, _, found, _ = form
    where = (model.value_vars, {}, model.initial_point())
    assert len(find_predictors(ModelAt(found.likelihood, *where)).predictors) == 1


def nothing_centered(write):
    return centered(at_start(written(write))) is None


def read_alone_too():
    z = pm.Normal("z", shape=G)
    observe(pm.HalfNormal("tau") * z[GROUP] + z[GROUP])


def other_scales_by_row():
    observe(pm.HalfNormal("tau", shape=3)[GROUP % 3] * pm.Normal("z", shape=G)[GROUP])


def a_scale_per_column_of_data():
    z = pm.Normal("z", shape=(G, 2))
    tau = pm.HalfNormal("tau", shape=2)
    observe(tau[0] * z[GROUP, 0] + tau[1] * z[GROUP, 1] * X)


def only_positive():
    observe(pm.HalfNormal("tau") * pm.HalfNormal("z", shape=G)[GROUP])


def centered_already():
    observe(pm.Normal("z", 0.0, pm.HalfNormal("tau"), shape=G)[GROUP])


def columns_with_scales_of_their_own():
    tau = pm.HalfNormal("tau", shape=(G, 2))
    observe((DESIGN @ (pm.Normal("z", shape=G)[:, None] * tau)).sum(axis=1))


def products_of_products():
    z, w = pm.Normal("z", shape=G), pm.Normal("w", shape=G)
    observe((z * w)[GROUP])


def a_number_whose_scale_may_be_zero():
    scale = pm.Normal("s")
    observe(scale * X + scale * pm.Normal("z") * (GROUP % 2))


@pytest.mark.parametrize(
    "write",
    [
        a_number_whose_scale_may_be_zero,
        read_alone_too,
        other_scales_by_row,
        a_scale_per_column_of_data,
        only_positive,
        centered_already,
        columns_with_scales_of_their_own,
        products_of_products,
    ],
)
def test_leaves_everything_else_as_it_is(write):
    assert nothing_centered(write)
