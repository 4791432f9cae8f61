"""Derivatives of rows by their predictors, written for the model, beside those of PyTensor."""

import pickle

import numpy as np
import pymc as pm
import pytest
from scipy import special

from pymc_austerity.model import (
    RowSlopes,
    find_predictors,
    kernel_of,
    predictor_derivatives,
    row_loops_of,
    row_slopes_of,
)
from pymc_austerity.model.kernel.generated import digamma, trigamma
from pymc_austerity.model.kernel.row_loops import RowLoops
from pymc_austerity.model.predictors.derivatives import _predictor_functions
from pymc_austerity.model.predictors.structure import design_function
from tests.model.predictors.brute_force import Structured, of_shape
from tests.model.splitting import at_start
from tests.zoo.registry import ordered

WRITTEN = (
    "logistic",
    "poisson_exposure",
    "slopes_by_group",
    "multivariate_normal",
    "multivariate_regression",
    "standardized_in_the_model",
    "mixture_of_regressions",
    "censored",
    "negative_binomial",
    "student_t",
    "monotone_effect",
)


def etas_near(found):
    designs = design_function(found.structure, found.model)(found.split.arrays)
    point = found.near()
    return np.stack([design.eta(point) for design in designs])


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.few("logistic", "poisson_exposure", "slopes_by_group", "monotone_effect")
def test_agree_with_pytensor(name, rng):
    shape = of_shape(name, rng)
    inputs = [*etas_near(shape), *shape.split.arrays]
    loops = row_loops_of(shape.structure)
    assert isinstance(loops, RowLoops), loops
    by_graph = _predictor_functions(shape.structure, shape.model, None)
    for ours, theirs in zip((loops.first, loops.second), by_graph, strict=True):
        np.testing.assert_allclose([*ours(*inputs)], [*theirs(*inputs)], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["slopes_by_group", "mixture_of_regressions"])
def test_slopes_are_the_same_by_address(name, rng):
    found = of_shape(name, rng)
    slopes, n_rows = row_slopes_of(found.structure), found.split.n_rows
    assert isinstance(slopes, RowSlopes), slopes
    etas = np.ascontiguousarray(etas_near(found))
    block = [np.ascontiguousarray(array) for array in found.split.arrays]
    shapes = [number for array in block for number in (array.ctypes.data, *array.shape)]
    out = np.empty((1 + len(etas), n_rows))
    slopes.on_arrays(etas, out, np.array([n_rows, *shapes], dtype=np.int64))
    np.testing.assert_allclose(out, slopes(etas, *block), rtol=1e-13)


def test_are_pickled(rng):
    found = of_shape("logistic", rng)
    written, etas, arrays = row_slopes_of(found.structure), etas_near(found), found.split.arrays
    copy = pickle.loads(pickle.dumps(written))
    np.testing.assert_array_equal(copy(etas, *arrays), written(etas, *arrays))


def test_say_what_has_no_rule(rng):
    assert "GammaInc" in row_slopes_of(of_shape("censored_gamma", rng).structure)


def test_derivatives_of_log_gamma_are_those_of_scipy():
    x = np.r_[np.logspace(-8.0, 8.0, 200), np.linspace(0.1, 30.0, 200)]
    first, second = ([f(each) for each in x] for f in (digamma, trigamma))
    np.testing.assert_allclose(first, special.digamma(x), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(second, special.polygamma(1, x), rtol=1e-13)
    assert np.isnan([f(bad) for f in (digamma, trigamma) for bad in (-0.5, 0.0, np.nan)]).all()


def ordered_categories(rng):
    """Nine cut points and a slope: ten predictors, nine of which all rows share."""
    x = rng.standard_normal(60)
    with pm.Model() as model:
        cuts = ordered("cuts", np.linspace(-2.0, 2.0, 9))
        eta = x * pm.Normal("slope")
        pm.OrderedLogistic("y", eta=eta, cutpoints=cuts, observed=rng.integers(10, size=60))
    return model


def scaled_counts(rng):
    x = rng.normal(size=60)
    with pm.Model() as model:
        mu = pm.math.exp(x * pm.Normal("slope"))
        pm.NegativeBinomial("y", mu=mu, alpha=pm.Exponential("a", 1.0), observed=rng.poisson(3, 60))
    return model


def powers_of_zero(rng):
    x = rng.normal(size=60)
    with pm.Model() as model:
        q = pm.math.sigmoid(x * pm.Normal("slope"))
        pm.DiscreteWeibull("y", q=q, beta=pm.HalfNormal("b"), observed=rng.integers(0, 4, 60))
    return model


@pytest.mark.parametrize(
    ("made", "n"), [(ordered_categories, 10), (scaled_counts, 2), (powers_of_zero, 2)]
)
def test_rows_are_expanded_when_they_are_read(made, n, rng):
    """Their residuals add up to what differences, gradient and Hessian of all rows leave.

    Derivatives call functions that the formula does not, such as that of the gamma function.
    """
    found = Structured(made(rng), rng)
    structure, arrays = found.structure, found.split.arrays
    assert len(structure.etas) == n
    loops = row_loops_of(structure)
    rows = predictor_derivatives(structure, found.model, loops=(loops.first, loops.second))
    by_graph = predictor_derivatives(structure, found.model)
    new, old, anchor = (found.near(0.2) for _ in range(3))
    step, middle = new - old, 0.5 * (new + old) - anchor
    gradient, hessian = rows.gradient(anchor, *arrays)[1], rows.hessian(anchor, *arrays)
    np.testing.assert_allclose(gradient, by_graph.gradient(anchor, *arrays)[1], rtol=1e-8)
    np.testing.assert_allclose(hessian, by_graph.hessian(anchor, *arrays), rtol=1e-7, atol=1e-9)
    left = rows.differences(new, old, *arrays).sum() - step @ (gradient + hessian @ middle)
    residuals = kernel_of(structure, 2, by_row=True).at(anchor)(new, old, *arrays)
    np.testing.assert_allclose(residuals.sum(), left, rtol=1e-9, atol=1e-10)


def test_derivatives_far_from_where_a_formula_holds(rng):
    """Those of the formula that is not taken there are infinite."""
    y = np.array([-60.0, -10.0, 0.0, 100.0, 1000.0])
    with pm.Model() as model:
        rates = {"sigma": pm.HalfNormal("sigma", 20.0), "nu": pm.HalfNormal("nu", 20.0)}
        pm.ExGaussian("y", mu=pm.Normal("mu"), **rates, observed=y)
    at = at_start(model)
    split, loops = at.likelihood, row_loops_of(find_predictors(at))
    etas = np.array([[0.0], [3.0], [3.0]]) + np.zeros(y.size)
    for k, step in enumerate(1e-5 * np.eye(3)):
        above, below = (
            np.stack(loops.first(*(etas + sign * step[:, None]), *split.arrays)[1:])
            for sign in (1, -1)
        )
        found = loops.curvatures(etas, np.eye(3)[k], *split.arrays)
        np.testing.assert_allclose(found, (above - below) / 2e-5, rtol=1e-5, atol=1e-6)
