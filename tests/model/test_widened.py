"""Whole numbers and constants in single precision, as models have them."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_austerity.errors import DataError
from pymc_austerity.model import (
    DensityKernel,
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
    split = split_log_density(model)
    found = verify(split, model.initial_point(), rng=rng).rows([np.array(0.3)], np.arange(30))
    expected = stats.norm(0.3 * (after.astype(float) - before), 1.0).logpdf(Y)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


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
