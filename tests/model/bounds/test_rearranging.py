"""Moving entries about keeps what is known of each of them."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_austerity.model.bounds import NoBoundError, scalar_function, third_derivative_constants
from pymc_austerity.model.bounds.constants import groups_of_like_rows
from pymc_austerity.model.bounds.enclosure import about_groups, about_rows, enclose

ETA, Y, K = pt.dvector("eta"), pt.dvector("y"), pt.lvector("k")


def table(*columns):
    return pt.stack(columns, axis=1)


def value_at(graph, data, center, width=0.0):
    function = scalar_function(graph, [ETA], [v for v, _ in data])
    constants = function.constants_of([values for _, values in data])
    center = np.asarray(center, dtype=float)[:, None]
    return enclose(function, about_rows(center, np.full(center.shape, width), constants), 2).box


def test_set_entries_have_no_derivative():
    whole = pt.set_subtensor(pt.exp(table(ETA, 2 * ETA, 3 * ETA))[:, 1], pt.ones(1, dtype="int8"))
    found = value_at(whole.sum(axis=1), [], [0.0, 0.5])
    np.testing.assert_allclose(found[0,].lower, np.exp([0.0, 0.5]) + 1 + np.exp([0.0, 1.5]))
    np.testing.assert_allclose(found[1,].lower, np.exp([0.0, 0.5]) + 3 * np.exp([0.0, 1.5]))


def test_cumulative_sums():
    graph = (pt.cumsum(table(ETA, ETA**2, ETA), axis=1) ** 2).sum(axis=1)
    x = np.array([0.3, -0.8])
    found = value_at(graph, [], x)
    np.testing.assert_allclose(found[0,].lower, x**2 + (x + x**2) ** 2 + (2 * x + x**2) ** 2)


def test_cumulative_products_have_no_rule():
    function = scalar_function(pt.cumprod(table(ETA, ETA), axis=1)[:, 1], [ETA], [])
    with pytest.raises(NoBoundError, match="bounds of CumOp are unknown"):
        third_derivative_constants(function, [], np.ones((1, 1)), np.ones((1, 1, 1)), [1.0])


@pytest.mark.parametrize("n_rows", [3, 5_000])
def test_categories_are_those_of_the_rows(n_rows, rng):
    """Rows are bounded in parts: positions of rows are those in the part."""
    graph = pt.exp(table(ETA, 2 * ETA, 3 * ETA))[pt.arange(K.shape[0]), K]
    k, center = rng.integers(3, size=n_rows), rng.normal(size=n_rows)
    function = scalar_function(graph, [ETA], [K])
    gram = np.full((n_rows, 1, 1), 1e-12)
    found = third_derivative_constants(function, [k], center[:, None], gram, [1.0])[0] / 1e-18
    exact = (k + 1) ** 3 * np.exp((k + 1) * center)
    assert (found >= exact * (1.0 - 1e-4)).all()
    assert (found <= 1.5 * exact).all()


def test_groups_know_the_data_of_all_their_rows(rng):
    y, center = rng.normal(size=20), np.zeros((20, 1))
    function = scalar_function(pt.exp(table(ETA, Y).sum(axis=1)), [ETA], [Y])
    cells = about_groups([np.arange(20)], center, np.full((20, 1), 0.1), function.constants_of([y]))
    found = enclose(function, cells, 2).box[0,]
    assert found.lower[0] <= np.exp(y.min() - 0.1)
    assert found.upper[0] >= np.exp(y.max() + 0.1)


def test_rows_of_a_group_have_the_same_indices(rng):
    x, k = rng.normal(size=200), rng.integers(3, size=200)
    groups = groups_of_like_rows([x], [k.astype(float)], size=8)
    assert all(np.unique(k[rows]).size == 1 and rows.size <= 8 for rows in groups)
    np.testing.assert_array_equal(np.sort(np.concatenate(groups)), np.arange(200))


@pytest.mark.parametrize("moved", [
    lambda *columns: pt.stack(columns, axis=1).sum(axis=1),
    lambda *columns: pt.concatenate([c[:, None] for c in columns], axis=1)[:, 1:].sum(axis=1),
])  # fmt: skip
def test_coefficients_keep_double_precision(moved):
    """Whatever the model computes in."""
    eta = pt.fvector("eta")
    function = scalar_function(moved(pt.exp(eta), pt.exp(-eta), pt.cos(eta)), [eta], [])
    x = np.array([[0.3], [-0.8]])
    found = enclose(function, about_rows(x, 0.0 * x, function.constants_of([])), 2).center[0,].lower
    everything = np.hstack([np.exp(x), np.exp(-x), np.cos(x)])
    sums = everything.sum(axis=1), everything[:, 1:].sum(axis=1)
    assert min(abs(found - total).max() for total in sums) < 1e-14
