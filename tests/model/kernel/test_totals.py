"""Sums of rows at many points, beside those of one point after the other."""

import pickle

import numpy as np
import pymc as pm
import pytest

from pymc_austerity.model import ModelAt, find_predictors, predictor_derivatives, row_totals
from pymc_austerity.model import split_log_density as split_of
from tests.zoo.all_shapes import SHAPES

WRITTEN = (
    "logistic",
    "poisson_exposure",
    "negative_binomial",
    "student_t",
    "slopes_by_group",
    "sparse_row",
)
BY_GRAPH = ("hurdle",)


def case(name):
    model = SHAPES[name].build(53)
    split = split_of(model, **SHAPES[name].settings)
    structure = find_predictors(ModelAt(split, model.value_vars, {}, model.initial_point()))
    start = np.concatenate([np.ravel(v) for v in model.initial_point().values()])
    return model, split, structure, start


@pytest.mark.parametrize("name", [*WRITTEN, *BY_GRAPH])
@pytest.mark.few("logistic", "negative_binomial", "hurdle", "sparse_row")
def test_are_those_of_single_points(name, rng):
    model, split, structure, start = case(name)
    totals = row_totals(structure, model)
    assert bool(totals.source) == (name in WRITTEN)
    points = start + 0.3 * rng.normal(size=(7, start.size))
    values = predictor_derivatives(structure, model).values
    expected = [values(point, *split.arrays).sum() for point in points]
    np.testing.assert_allclose(totals(points, *split.arrays), expected, rtol=1e-10)
    copy = pickle.loads(pickle.dumps(totals))
    np.testing.assert_array_equal(
        copy(points[:2], *split.arrays), totals(points[:2], *split.arrays)
    )


def test_points_in_single_precision_are_summed_in_double(rng):
    model, split, structure, start = case("logistic")
    points = (start + 0.3 * rng.normal(size=(3, start.size))).astype(np.float32)
    totals = row_totals(structure, model)
    found = totals(points, *split.arrays)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, totals(points.astype(np.float64), *split.arrays), rtol=1e-12)


def test_what_overflows_is_not_finite():
    with pm.Model() as model:
        b = pm.Normal("b", shape=2)
        pm.Poisson("y", pm.math.exp(np.eye(2) @ b), observed=np.ones(2))
    split = split_of(model)
    structure = find_predictors(ModelAt(split, model.value_vars, {}, model.initial_point()))
    found = row_totals(structure, model)(np.array([[1e3, 0.0], [0.0, 0.0]]), *split.arrays)
    np.testing.assert_array_equal(np.isfinite(found), [False, True])
