"""Derivatives by way of the predictors against those of the whole graph."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity.model import compile_row_derivatives
from pymc_austerity.model.predictors.derivatives import predictor_derivatives
from tests.model.predictors.brute_force import Structured
from tests.zoo.all_shapes import SHAPES

N_ROWS = 53
DISCRETE = {"switchpoint"}
FEW = {
    "logistic", "student_t", "slopes_by_group", "item_response", "categorical_logits", "hurdle",
    "sparse_beside_groups",
}  # fmt: skip


def shapes():
    return [
        pytest.param(s, id=s.name, marks=[] if s.name in FEW else pytest.mark.exhaustive)
        for s in SHAPES.values()
        if s.expect != "refused" and s.name not in DISCRETE
    ]


@pytest.mark.parametrize("shape", shapes())
@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
@pytest.mark.few("logistic", "slopes_by_group", "sparse_beside_groups")
def test_sums_over_rows_are_those_of_the_whole_graph(shape, rng):
    found = Structured(shape.build(N_ROWS), rng, shape.settings)
    expected = compile_row_derivatives(found.at, compile_kwargs={"mode": "FAST_COMPILE"})
    derivatives = predictor_derivatives(found.structure, found.model)
    theta, block = found.near(0.2), found.block(9)
    value, gradient = derivatives.gradient(theta, *block)
    whole, whole_gradient = expected.gradient(theta, *block)
    np.testing.assert_allclose(value, whole, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gradient, whole_gradient, rtol=1e-8, atol=1e-8)
    hessian = derivatives.hessian(theta, *block)
    np.testing.assert_allclose(hessian, expected.hessian(theta, *block), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(
        derivatives.sparse_hessian(theta, *block).toarray(), hessian, rtol=1e-12, atol=1e-12
    )


def test_averaged_hessian_is_that_of_secants(rng):
    """Of quadratic rows it is the Hessian; of kinked ones, by the share of a move beyond a kink."""
    X, y = rng.standard_normal((20, 2)), rng.laplace(size=20)
    theta, root = np.array([0.5, -0.2]), np.array([[0.8, 0.0], [0.3, 0.5]])
    moves = np.linalg.norm(X @ root, axis=1)
    crossing = abs(y - X @ theta) < moves
    assert 3 < crossing.sum() < 17
    for of, weights in ((pm.Normal, np.ones(20)), (pm.Laplace, crossing / moves)):
        with pm.Model() as model:
            of("y", X @ pm.Normal("b", shape=2), 1.0, observed=y)
        found = Structured(model, rng)
        averaged = predictor_derivatives(found.structure, model).averaged_hessian
        np.testing.assert_allclose(
            averaged(theta, root, *found.split.arrays), -(X.T * weights) @ X, atol=1e-9
        )


def test_anchor_constants_of_a_normal_likelihood(rng):
    X = rng.standard_normal((20, 3))
    with pm.Model() as model:
        b, s = pm.Normal("b", shape=3), pm.Normal("s")
        pm.Normal("y", X @ b, pm.math.exp(s), observed=np.zeros(20))
    found = Structured(model, rng)
    theta = np.array([0.5, -0.2, 0.3, 0.1])
    constants = predictor_derivatives(found.structure, model).anchor_constants(
        theta, *found.split.arrays
    )
    assert constants.shape == (20, 2 + 2 + 3) and constants.flags.c_contiguous
    at = [p.name for p in found.structure.predictors].index("s")
    mu, precision = X @ theta[:3], np.exp(-0.2)
    np.testing.assert_allclose(constants[:, at], 0.1)
    np.testing.assert_allclose(constants[:, 1 - at], mu)
    np.testing.assert_allclose(constants[:, 2 + at], mu**2 * precision - 1.0, atol=1e-12)
    np.testing.assert_allclose(constants[:, 3 - at], -mu * precision, atol=1e-12)
    np.testing.assert_allclose(constants[:, 5], 2.0 * mu * precision, atol=1e-12)
    np.testing.assert_allclose(constants[:, 4 + 2 * at], -2.0 * mu**2 * precision, atol=1e-12)
    np.testing.assert_allclose(constants[:, 6 - 2 * at], -precision, atol=1e-12)
