"""Gradients of the exact part, written for the model, beside those of PyTensor."""

import pickle

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_austerity.model import compile_exact_gradient, density_gradient_of, split_log_density

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


def split(function):
    with pm.Model() as model:
        x = pm.Normal("x", shape=3)
        pm.Potential("term", function(x))
        pm.Normal("y", x[0], 1.0, observed=np.arange(10.0))
    return split_log_density(model), model.value_vars, {}, model.initial_point()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_pytensor(name, rng):
    likelihood, *about = split(FUNCTIONS[name])
    written = density_gradient_of(likelihood.exact, *about)
    by_pytensor = compile_exact_gradient(
        likelihood, *about, compile_kwargs={"mode": "FAST_COMPILE"}
    )
    assert by_pytensor.address is None  # only numba makes one
    points = rng.normal(size=(4, 3))
    values, gradients = zip(*map(written, points), strict=True)
    expected = [by_pytensor(point) for point in points]
    np.testing.assert_allclose(gradients, [slope for _, slope in expected], rtol=1e-9, atol=1e-12)
    differences = np.diff([value for value, _ in expected])
    np.testing.assert_allclose(np.diff(values), differences, rtol=1e-9, atol=1e-12)


def test_is_pickled(rng):
    likelihood, *about = split(FUNCTIONS["angles"])
    written, point = density_gradient_of(likelihood.exact, *about), rng.normal(size=3)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(written))(point)[1], written(point)[1])


def test_an_operation_without_a_rule_is_named():
    likelihood, *about = split(lambda x: pt.gammaln(pt.exp(x[0])))
    reason = density_gradient_of(likelihood.exact, *about)
    assert reason == "the derivative of GammaLn has no rule"


def test_numba_knows_what_it_compiled_by_an_address(rng):
    likelihood, *about = split(lambda x: pt.gammaln(pt.exp(x[0])))
    compiled = compile_exact_gradient(likelihood, *about)
    assert compiled.address
    assert pickle.loads(pickle.dumps(compiled)).size == 3
