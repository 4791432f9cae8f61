"""Bounds from a table of cells, against those of single rows and by brute force."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.special import expit

from examples.benchmarks.bounds import by_row
from pymc_austerity.model.bounds import (
    CellBounds,
    NoBoundError,
    scalar_function,
    third_derivative_constants,
)
from pymc_austerity.model.bounds.cell_bounds import kinds_of_rows, tabulated_constants

N_ROWS = 1_500
RADII = (1.0, 4.0, 20.0)


def rows(n_kinds, seed=0):
    """Predictors far and near, and lengths small and large."""
    rng = np.random.default_rng(seed)
    center = np.concatenate([rng.normal(size=N_ROWS - 100), 30.0 * rng.normal(size=100)])
    lengths = np.exp(rng.normal(-3.0, 1.0, size=N_ROWS))
    lengths[:3] = 0.0
    return rng.integers(n_kinds, size=N_ROWS), center, lengths


def graphs():
    eta, y = pt.dvector("eta"), pt.lvector("y")
    return {
        "logistic": (by_row(pm.logp(pm.Bernoulli.dist(logit_p=eta), y)), eta, y, 2),
        "poisson": (by_row(pm.logp(pm.Poisson.dist(pt.exp(eta)), y)), eta, y, 9),
        "binomial": (by_row(pm.logp(pm.Binomial.dist(5, logit_p=eta), y)), eta, y, 6),
    }


@pytest.mark.parametrize("name", ["logistic", "poisson", "binomial"])
def test_bounds_hold_and_are_close_to_those_of_single_rows(name):
    graph, eta, y, n_kinds = graphs()[name]
    data, center, lengths = rows(n_kinds)
    function = scalar_function(graph, [eta], [y])
    by_table = third_derivative_constants(
        function, [data], center[:, None], (lengths**2)[:, None, None], RADII
    )
    every = np.arange(0, N_ROWS, 3)  # few enough for no table
    single = third_derivative_constants(
        function, [data[every]], center[every, None], (lengths[every] ** 2)[:, None, None], RADII
    )
    near = abs(center[every]) < 3.0
    assert (by_table[:2, every[near]].sum(axis=1) < 1.1 * single[:2, near].sum(axis=1)).all()
    assert np.quantile(by_table[:2, every[near]] / (single[:2, near] + 1e-300), 0.9) < 1.3

    third = {
        "logistic": lambda e: expit(e) * expit(-e) * np.tanh(e / 2),
        "poisson": lambda e: -np.exp(e),
        "binomial": lambda e: 5.0 * expit(e) * expit(-e) * np.tanh(e / 2),
    }[name]
    rng = np.random.default_rng(1)
    for radius, constants in zip(RADII, by_table, strict=True):
        for _ in range(20):
            moved = center + lengths * radius * rng.uniform(-1.0, 1.0, size=N_ROWS)
            with np.errstate(over="ignore"):
                found = abs(third(moved))
            rounding = 1e-14  # of a softplus that is linear beyond 37
            assert (found * lengths**3 <= constants + (1e-9 * found + rounding) * lengths**3).all()


def test_rows_of_a_kind_have_the_same_data():
    rng = np.random.default_rng(0)
    one, two = rng.integers(3, size=500), rng.integers(4, size=(500, 1))
    first, kind = kinds_of_rows({"a": one, "b": two, "c": np.ones(1)}, 500)
    assert first.size == 12
    np.testing.assert_array_equal(one[first][kind], one)
    np.testing.assert_array_equal(two[first][kind], two)


def test_data_of_many_kinds_have_no_table():
    assert kinds_of_rows({"a": np.random.default_rng(0).normal(size=500)}, 500) is None
    assert kinds_of_rows({"a": np.arange(500) % 20, "b": np.arange(500) % 21}, 500) is None


def test_the_operation_without_a_bound_is_named():
    eta, y = pt.dvector("eta"), pt.lvector("y")
    data, center, lengths = rows(2)
    function = scalar_function(-abs(eta - y), [eta], [y])
    with pytest.raises(NoBoundError, match="abs has no finite enclosure"):
        third_derivative_constants(
            function, [data], 0.01 * center[:, None], (1 + lengths**2)[:, None, None], [30.0]
        )


def test_cells_beyond_the_support_have_no_bound():
    eta, y = pt.dvector("eta"), pt.lvector("y")
    function = scalar_function(by_row(pm.logp(pm.Poisson.dist(eta), y)), [eta], [y])
    center, lengths = np.array([1.0, 5.0]), np.array([1.0, 1.0])
    data = function.constants_of([np.array([2, 2])])
    kinds = kinds_of_rows(data, 2)
    near, far = tabulated_constants(
        CellBounds(function, 3.0), data, kinds, center, lengths, [0.5, 2.0]
    )
    assert np.isfinite(near).all()
    assert list(np.isfinite(far)) == [False, True]


def test_bounds_of_a_row_do_not_depend_on_other_rows_and_radii():
    graph, eta, y, n_kinds = graphs()["poisson"]
    function = scalar_function(graph, [eta], [y])
    data, center, lengths = rows(n_kinds)

    def bounds(chosen, radii, cells):
        gram = (lengths[chosen] ** 2)[:, None, None]
        known = (function, [data[chosen]], center[chosen, None], gram, radii)
        return third_derivative_constants(*known, cells=cells)

    everything = bounds(slice(None), RADII, CellBounds(function, 0.3))
    cells = CellBounds(function, 0.3)
    for part in (slice(300, None), slice(0, 1_100)):
        assert np.array_equal(bounds(part, RADII[::2], cells), everything[::2, part])


def test_a_row_without_a_predictor_has_no_bound():
    graph, eta, y, n_kinds = graphs()["logistic"]
    function = scalar_function(graph, [eta], [y])
    data, center, lengths = rows(n_kinds)
    center[7] = np.nan
    gram = (lengths**2)[:, None, None]
    found = third_derivative_constants(function, [data], center[:, None], gram, RADII)
    assert np.flatnonzero(~np.isfinite(found).all(axis=0)).tolist() == [7]
