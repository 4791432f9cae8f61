"""The row-free part as a compiled function: numbers, by address, and why there may be none."""

import ctypes
import pickle

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.raise_op import Assert
from scipy.special import log_ndtr

from pymc_austerity.model import (
    DensityGradient,
    DensityKernel,
    compile_row_free_difference,
    compile_row_free_gradient,
    row_free_difference_agrees,
    verify,
)
from tests.model.kernel.structures import points_near
from tests.model.splitting import at_start
from tests.zoo.registry import written

NUMPY = {"mode": "FAST_COMPILE"}
FUNCTIONS = {
    "sums and products": lambda x: (x[0] - 2.0 * x[1] * x[2]) / (1.0 + x[1] ** 2),
    "powers": lambda x: pt.exp(x[0]) ** 1.5 + pt.exp(x[1]) ** x[2] + pt.sqrt(pt.exp(x[0])),
    "logarithms": lambda x: pt.log(pt.exp(x[0]) + 1.0) + pt.log1p(x[1] ** 2) + pt.expm1(x[2]),
    "sigmoids": lambda x: pt.sigmoid(x[0]) * pt.softplus(x[1]) + pt.log1mexp(-pt.exp(x[2])),
    "choices": lambda x: pt.switch(x[0] > x[1], x[2] ** 2, x[1]) + pt.maximum(x[0], x[2]),
    "kinks": lambda x: abs(x[0] - x[1]) + pt.minimum(x[1], 2.0 * x[2]),
    "errors": lambda x: pt.erf(x[0]) + pt.log(pt.erfc(x[1])) + pt.tanh(x[2]),
    "scaled errors": lambda x: pt.erfcx(x[0]) * x[1] - pt.erfcx(x[1] * x[2]),
    "angles": lambda x: pt.sin(x[0]) * pt.cos(x[1]) + pt.arctan(x[2]),
}


def transformed(y):
    sigma = pm.HalfNormal("sigma", 2.0)
    p = pm.Beta("p", 2.0, [1.0, 3.0])
    share = pm.Dirichlet("share", np.ones(3))
    pm.Normal("y", p[0] + share[1], sigma, observed=y)


def hierarchical(y):
    tau = pm.Exponential("tau", 1.0)
    effect = pm.StudentT("effect", nu=4.0, mu=0.0, sigma=tau, shape=(2, 3))
    bounded = pm.Uniform("bounded", -1.0, 2.0)
    pm.Potential("penalty", -(pt.sum(effect) ** 2))
    pm.Normal("y", effect.sum() + bounded, 1.0, observed=y)


def random_walk(y):
    path = pm.Normal("path", 0.0, 1.0, shape=5)
    pm.Potential("smooth", -50.0 * pt.sum((path[1:] - path[:-1]) ** 2))
    order = pm.Normal("order", 0.0, 1.0, shape=3, initval=[-1, 0, 1])
    pm.Potential("sorted", pm.math.switch(pt.all(order[1:] > order[:-1]), 0.0, -np.inf))
    pm.Normal("y", path[-1] + order[0], 1.0, observed=y)


def of_length_one(y):
    pm.modelcontext(None).add_coord("unit", ["one"])
    scale = pm.HalfNormal("scale", dims="unit")
    pm.Normal("y", 0.0, scale, observed=y[:, None])


def built(write):
    model = written(write, np.linspace(-1.0, 1.0, 30))
    return model, at_start(model)


def kernel_for(at):
    return DensityKernel.of(at, at.likelihood.row_free)


@pytest.mark.few("random_walk", "of_length_one")
@pytest.mark.parametrize("write", [transformed, hierarchical, random_walk, of_length_one])
def test_differences_are_those_of_the_graph(write, rng):
    model, at = built(write)
    kernel = kernel_for(at)
    assert isinstance(kernel, DensityKernel), kernel
    expected = compile_row_free_difference(at, compile_kwargs=NUMPY)
    points = points_near(model, rng, 4)
    for new, old in zip(points[1:], points[:-1], strict=True):
        assert kernel(new, old) == pytest.approx(float(expected(new, old)), rel=1e-9, abs=1e-10)
    again = pickle.loads(pickle.dumps(kernel))
    assert again(points[0], points[1]) == kernel(points[0], points[1])


def test_compiled_code_calls_it_by_its_address(rng):
    model, at = built(transformed)
    kernel = kernel_for(at)
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(kernel.address)
    new, old = points_near(model, rng, 2)
    assert function(new.ctypes.data) - function(old.ctypes.data) == kernel(new, old)


def test_checks_are_left_out_if_the_model_says_so():
    model, at = built(hierarchical)
    with_checks = kernel_for(at).source
    model.check_bounds = False
    assert kernel_for(at).source.count(" > 0") < with_checks.count(" > 0")


def large(y):
    beta = pm.Normal("beta", 0.0, np.linspace(1.0, 2.0, 900), shape=900)
    pm.Normal("y", beta[0], 1.0, observed=y)


def incomplete_gamma(y):
    shape = pm.HalfNormal("shape")
    pm.Potential("tail", pt.log(pt.gammaincc(shape, 2.0)))
    pm.Normal("y", shape, 1.0, observed=y)


@pytest.mark.parametrize(
    ("write", "why"),
    [(large, "operations on numbers"), (incomplete_gamma, "GammaIncC has no rule")],
)
def test_a_reason_where_there_is_none(write, why):
    assert why in kernel_for(built(write)[1])


def test_wrong_numbers_are_noticed(rng):
    _, at = built(hierarchical)
    arguments = at, verify(at.likelihood, at.point, rng=rng), rng
    kernel = kernel_for(at)
    assert row_free_difference_agrees(kernel, *arguments)
    assert not row_free_difference_agrees(lambda a, b: kernel(a, b) + 1e-3, *arguments)


def test_rewriting_what_has_an_unknown_length_ends():
    model, at = built(of_length_one)
    why = DensityKernel.of(at, model.logp(vars=model.free_RVs))
    assert isinstance(why, str) and "unit" in why


def split(function):
    with pm.Model() as model:
        x = pm.Normal("x", shape=3)
        pm.Potential("term", function(x))
        pm.Normal("y", x[0], 1.0, observed=np.arange(10.0))
    return at_start(model)


@pytest.mark.few("errors", "choices", "powers", "sums and products")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_pytensor(name, rng):
    at = split(FUNCTIONS[name])
    written = DensityGradient.of(at, at.likelihood.row_free)
    by_pytensor = compile_row_free_gradient(at, compile_kwargs={"mode": "FAST_COMPILE"})
    assert by_pytensor.address is None  # only numba makes one
    points = rng.normal(size=(4, 3))
    values, gradients = zip(*map(written, points), strict=True)
    expected = [by_pytensor(point) for point in points]
    np.testing.assert_allclose(gradients, [slope for _, slope in expected], rtol=1e-9, atol=1e-12)
    differences = np.diff([value for value, _ in expected])
    np.testing.assert_allclose(np.diff(values), differences, rtol=1e-9, atol=1e-12)


def test_is_pickled(rng):
    at = split(FUNCTIONS["angles"])
    written, point = DensityGradient.of(at, at.likelihood.row_free), rng.normal(size=3)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(written))(point)[1], written(point)[1])


def test_an_operation_without_a_rule_is_named():
    at = split(lambda x: pt.exp(x[0]) % 2.0)
    reason = DensityGradient.of(at, at.likelihood.row_free)
    assert reason == "the derivative of Mod has no rule"


def test_numba_knows_what_it_compiled_by_an_address(rng):
    at = split(lambda x: pt.gammaln(pt.exp(x[0])))
    compiled = compile_row_free_gradient(at)
    assert compiled.address
    assert pickle.loads(pickle.dumps(compiled)).size == 3


def test_an_error_in_compiled_code_is_not_a_number():
    positive = Assert("The entry is negative.")
    at = split(lambda x: pt.gammaln(positive(x[0], x[0] > 0.0)))
    compiled, gradient = compile_row_free_gradient(at), np.zeros(3)
    assert compiled.address
    call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, ctypes.c_int64)(compiled.address)
    for first in (4.0, -4.5):
        point = np.array([first, 1.0, 1.0])
        value = call(point.ctypes.data, gradient.ctypes.data)
        assert np.isfinite([value, *gradient]).all() == (first > 0.0)


def test_the_normal_distribution_function_is_finite_in_its_tails():
    at = split(lambda x: pt.log(1.0 - pt.erf(x[0])) + pt.log(1.0 + pt.erf(x[1])))
    written = DensityGradient.of(at, at.likelihood.row_free)
    points = np.array([[0.0, 0.0, 0.0], [8.0, 0.3, 0.0], [0.1, -7.0, 0.0], [30.0, -40.0, 0.0]])
    values, gradients = zip(*map(written, points), strict=True)
    expected = log_ndtr(-np.sqrt(2.0) * points[:, 0]) + log_ndtr(np.sqrt(2.0) * points[:, 1])
    expected -= 0.5 * (points**2).sum(axis=1)
    np.testing.assert_allclose(np.diff(values), np.diff(expected), rtol=1e-9)
    assert np.isfinite(gradients).all()
