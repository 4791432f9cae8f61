"""Sums of rows at many points, beside those of one point after the other."""

import pickle

import numpy as np
import pymc as pm
import pytest

from pymc_austerity.model import find_predictors, predictor_derivatives, row_totals
from tests.model.predictors.brute_force import of_shape
from tests.model.splitting import at_start

WRITTEN = (
    "logistic",
    "poisson_exposure",
    "negative_binomial",
    "student_t",
    "slopes_by_group",
    "sparse_row",
)
BY_GRAPH = ("censored_gamma",)


@pytest.mark.parametrize("name", [*WRITTEN, *BY_GRAPH])
@pytest.mark.few("logistic", "negative_binomial", "censored_gamma", "sparse_row")
def test_are_those_of_single_points(name, rng):
    found = of_shape(name, rng)
    totals, arrays = row_totals(found.structure, found.model), found.split.arrays
    assert bool(totals.source) == (name in WRITTEN)
    points = np.array([found.near() for _ in range(7)])
    values = predictor_derivatives(found.structure, found.model).values
    expected = [values(point, *arrays).sum() for point in points]
    np.testing.assert_allclose(totals(points, *arrays), expected, rtol=1e-10)
    copy = pickle.loads(pickle.dumps(totals))
    np.testing.assert_array_equal(copy(points[:2], *arrays), totals(points[:2], *arrays))


def test_points_in_single_precision_are_summed_in_double(rng):
    found = of_shape("logistic", rng)
    points = np.array([found.near() for _ in range(3)], dtype=np.float32)
    totals, arrays = row_totals(found.structure, found.model), found.split.arrays
    in_double = totals(points.astype(np.float64), *arrays)
    assert totals(points, *arrays).dtype == np.float64
    np.testing.assert_allclose(totals(points, *arrays), in_double, rtol=1e-12)


def test_what_overflows_is_not_finite():
    with pm.Model() as model:
        b = pm.Normal("b", shape=2)
        pm.Poisson("y", pm.math.exp(np.eye(2) @ b), observed=np.ones(2))
    at, points = at_start(model), np.array([[1e3, 0.0], [0.0, 0.0]])
    found = row_totals(find_predictors(at), model)(points, *at.likelihood.arrays)
    np.testing.assert_array_equal(np.isfinite(found), [False, True])
