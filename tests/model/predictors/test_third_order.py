"""Third derivatives by way of the predictors against differences of Hessians."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity.model.predictors.derivatives import predictor_derivatives, third_derivatives
from tests.model.predictors.brute_force import Structured
from tests.zoo.all_shapes import SHAPES

N_ROWS = 53
FEW = ["logistic", "student_t", "slopes_by_group", "item_response", "categorical_logits"]


def tensor(sums):
    """All entries of what is kept by an entry and a pair."""
    size = len(sums)
    first, second = np.triu_indices(size)
    full = np.empty((size, size, size))
    full[:, first, second] = full[:, second, first] = sums
    return full


@pytest.mark.parametrize("name", FEW)
@pytest.mark.few("logistic", "slopes_by_group")
def test_sums_are_the_slopes_of_hessians(name, rng):
    shape = SHAPES[name]
    found = Structured(shape.build(N_ROWS), rng, shape.settings)
    hessian = predictor_derivatives(found.structure, found.model).hessian
    thirds = third_derivatives(found.structure, found.model)
    theta, block = found.raveled(found.point()), found.block(9)
    full = tensor(thirds.sums(theta, *block))
    scale = np.abs(full).max()
    np.testing.assert_allclose(full, full.transpose(1, 0, 2), atol=1e-10 * scale)
    for along in rng.normal(size=(2, theta.size)):
        values = [hessian(theta + h * along, *block) for h in (-2e-3, -1e-3, 1e-3, 2e-3)]
        slope = np.tensordot([1, -8, 8, -1], values, axes=1) / 12e-3
        rounding = 1e-11 * np.abs(values).max()  # of the difference; a linear model has no slope
        np.testing.assert_allclose(full @ along, slope, rtol=1e-6, atol=1e-6 * scale + rounding)


def test_all_pieces_of_a_long_block_count(rng):
    X, y = rng.normal(size=(5_000, 20)), rng.integers(0, 2, 5_000)
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=X @ pm.Normal("b", shape=20), observed=y)
    found, theta = Structured(model, rng), 0.1 * rng.normal(size=20)
    thirds = third_derivatives(found.structure, model)
    p = 1 / (1 + np.exp(-X @ theta))
    of_rows = -p * (1 - p) * (1 - 2 * p)
    assert 5_000 * 210 > 3 * 2**18  # numbers that are in memory at once
    block = found.split.arrays
    np.testing.assert_allclose(thirds.of_rows(theta, *block), of_rows[:, None], rtol=1e-10)
    expected = np.einsum("n,nj,nk,nl->jkl", of_rows, X, X, X)
    np.testing.assert_allclose(tensor(thirds.sums(theta, *block)), expected, atol=1e-9)


def test_rows_in_order_of_their_predictors(rng):
    """y ~ N(m, exp(s)): derivatives by mmm, mms, mss and sss."""
    X = rng.standard_normal((20, 3))
    with pm.Model() as model:
        b, s = pm.Normal("b", shape=3), pm.Normal("s")
        pm.Normal("y", X @ b, pm.math.exp(s), observed=np.zeros(20))
    found = Structured(model, rng)
    theta = np.array([0.5, -0.2, 0.3, 0.1])
    rows = third_derivatives(found.structure, model).of_rows(theta, *found.split.arrays)
    at = [p.name for p in found.structure.predictors].index("s")
    r, precision = -X @ theta[:3], np.exp(-0.2)
    expected = [0.0 * r, 2 * precision + 0.0 * r, 4 * r * precision, 4 * r**2 * precision]
    np.testing.assert_allclose(rows.T[:: 1 if at else -1], expected, rtol=1e-10, atol=1e-12)
