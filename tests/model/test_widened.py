"""Whole numbers and constants in single precision, as models have them."""

import warnings

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_austerity.errors import AusterityWarning, DataError
from pymc_austerity.model import (
    DensityKernel,
    compile_row_derivatives,
    row_free_difference_agrees,
    split_log_density,
    verify,
)
from pymc_austerity.model.rewritten import widened
from tests.model.splitting import at_start

Y = np.linspace(-1.0, 1.0, 30)


def model_with(prior):
    with pm.Model() as model:
        pm.Normal("y", prior() + pm.Normal("b"), 1.0, observed=Y)
    return model


@pytest.mark.parametrize(
    ("prior", "log_density"),
    [
        (lambda: pm.HalfStudentT("s", nu=3, sigma=10), stats.t(3, scale=10).logpdf),
        (lambda: pm.Gamma("s", 12.0, 12.0), stats.gamma(12, scale=1 / 12).logpdf),
        (lambda: pm.Gamma("s", 6, 6), stats.gamma(6, scale=1 / 6).logpdf),
        (lambda: pm.Gamma("s", 20, 7), stats.gamma(20, scale=1 / 7).logpdf),
    ],
)
def test_priors_with_numbers_as_people_write_them(prior, log_density, rng):
    at = at_start(model_with(prior))
    verified = verify(at.likelihood, at.point, rng=rng)
    kernel = DensityKernel.of(at, at.likelihood.row_free)
    assert isinstance(kernel, DensityKernel)
    assert row_free_difference_agrees(kernel, at, verified, rng)
    new, old = np.array([0.7, 0.0]), np.array([-0.4, 0.0])  # in the order of the model
    expected = log_density(np.exp(new)) + new - log_density(np.exp(old)) - old
    assert kernel(new, old) == pytest.approx(expected[0], rel=1e-6)


@pytest.mark.parametrize(
    "prior",
    [
        lambda: pm.Uniform("s", -100, 100),
        lambda: pm.HalfStudentT("s", 4, 12),
        lambda: pm.TruncatedNormal("s", mu=100, sigma=30, lower=-100, upper=127),
        lambda: pm.Beta("s", 100, 50),
    ],
)
def test_whole_numbers_that_overflow_in_pymc_are_an_error_with_a_remedy(prior):
    with pytest.raises(DataError, match=r"'s' is not finite in PyMC.*int8.*as in 100\.0"):
        split_log_density(model_with(prior))


@pytest.mark.few("uint8")
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_differences_of_unsigned_data(dtype, rng):
    before, after = (rng.integers(0, 9, size=30).astype(dtype) for _ in range(2))
    with pm.Model() as model:
        change = pm.Data("after", after) - pm.Data("before", before)
        pm.Normal("y", pm.Normal("effect") * change, 1.0, observed=Y)
    with pytest.warns(AusterityWarning, match="does not fit"):
        split = split_log_density(model)
    found = verify(split, model.initial_point(), rng=rng).rows([np.array(0.3)], np.arange(30))
    expected = stats.norm(0.3 * (after.astype(float) - before), 1.0).logpdf(Y)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def model_of_products(n_rows, dtype):
    rng = np.random.default_rng(3)
    x, z = (rng.integers(0, 120, n_rows).astype(dtype) for _ in range(2))
    products = x.astype(float) * z / 1000
    with pm.Model() as model:
        product = pm.Data("x", x) * pm.Data("z", z)
        observed = 0.1 * products + rng.normal(size=n_rows)
        pm.Normal("y", pm.Normal("b") * product / 1000, 1.0, observed=observed)
    return model, products, observed


@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_derivatives_do_not_overflow_in_products_of_data(dtype, rng):
    model, products, observed = model_of_products(500, dtype)
    at = at_start(model)
    derivatives = compile_row_derivatives(at)
    point = np.array([0.1])
    value, gradient = derivatives.gradient(point, *at.likelihood.arrays)
    assert gradient[0] == pytest.approx(((observed - 0.1 * products) * products).sum())
    hessian = derivatives.hessian(point, *at.likelihood.arrays)
    assert hessian[0, 0] == pytest.approx(-(products**2).sum())


@pytest.mark.parametrize(
    ("change", "does"), [(lambda x, z: x - z, True), (lambda x, z: x * z, False)]
)
def test_whole_numbers_that_overflow_in_what_pymc_compiles_are_named(change, does):
    x, z = np.array([3, 200, 7], dtype="uint8"), np.array([4, 100, 7], dtype="uint8")
    with pm.Model() as model:
        mu = pm.Normal("b") * change(pm.Data("x", x), pm.Data("z", z))
        pm.Normal("y", mu, 100.0, observed=Y[:3])
    log_density = model.compile_logp()
    numbers = change(x.astype(float), z.astype(float))
    expected = stats.norm(0.25 * numbers, 100.0).logpdf(Y[:3]).sum() + stats.norm.logpdf(0.25)
    assert (log_density({"b": 0.25}) != pytest.approx(expected)) == does
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        split_log_density(model)
    sentences = [str(w.message) for w in found if w.category is AusterityWarning]
    assert bool(sentences) == does
    assert all("-1 does not fit" in s and "uint8, and becomes 255" in s for s in sentences)


def test_precision_is_that_of_the_model():
    x = pt.scalar("x", dtype="float32")
    graph = x * pt.constant(3) * pt.constant(100)
    with pytensor.config.change_flags(floatX="float32"):
        (single,) = widened([graph])
    (double,) = widened([graph])
    assert (single.dtype, double.dtype) == ("float32", "float64")
    assert single.eval({x: np.float32(1.0)}) == double.eval({x: np.float32(1.0)}) == 300.0


def test_complements_have_stable_logs():
    x = pt.vector("x", dtype="float64")
    (graph,) = widened([pm.logp(pm.Bernoulli.dist(p=1 - pt.exp(-pt.exp(x))), 0)])
    values = np.array([-5.0, 2.0, 5.0])
    np.testing.assert_allclose(graph.eval({x: values}), -np.exp(values), rtol=1e-12)
