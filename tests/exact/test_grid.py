"""Groups on a grid: all rows at once or block by block."""

from dataclasses import replace

import numpy as np
import pytest

from pymc_austerity.exact import Grid, GridTotals, group_rows, nearest_directions

RADII = np.array([2.0, 4.0])


def rows_and_constants(rng, n_rows=5_000):
    whitened = rng.normal(size=(n_rows, 3))
    constants = np.exp(rng.normal(0.0, 3.0, n_rows)) * np.array([[1.0], [1.5]])
    constants[:, :7], constants[:, 7:20] = np.inf, 0.0
    return whitened, constants


def by_direction(rng):
    whitened, constants = rows_and_constants(rng)
    found = nearest_directions(whitened, np.ones(len(whitened)), 8, rng)
    return whitened, constants, found, Grid.of(constants, RADII, found.vectors, by_direction=True)


def totals_of(grid, whitened, constants, block):
    totals = GridTotals(grid)
    for start in range(0, len(whitened), block):
        rows = slice(start, start + block)
        directions = grid.directions(lambda rows=rows: whitened[rows])
        totals.add(grid.rows_of_cells(constants[:, rows], directions))
    return totals


class TestGrid:
    def test_blocks_make_the_groups_of_all_rows_at_once(self, rng):
        whitened, constants, found, grid = by_direction(rng)
        _, whole = group_rows(constants, grid, found)
        parts = totals_of(grid, whitened, constants, 137).groups()
        for name, value in vars(whole).items():
            np.testing.assert_array_equal(value, getattr(parts, name), err_msg=name)

    @pytest.mark.parametrize("top", [None, 1.0])
    def test_groups_bound_their_rows(self, rng, top):
        """Also with a grid that was chosen for other rows."""
        whitened, constants, found, grid = by_direction(rng)
        own, groups = group_rows(constants, replace(grid, top=top or grid.top), found)
        np.testing.assert_array_equal(np.bincount(own), np.diff(groups.starts))
        assert (constants <= groups.largest[:, own]).all()
        unit = whitened / np.linalg.norm(whitened, axis=1, keepdims=True)
        cosines = abs(np.sum(unit * groups.directions[groups.direction[own]], axis=1))
        assert (cosines >= groups.cosines[own] - 1e-12).all()
        infinite = np.isinf(constants[0])
        assert set(own[infinite]).isdisjoint(own[~infinite])
        finite = np.isfinite(groups.largest).all(axis=0) & (groups.largest[0] > 0.0)
        smallest = np.array([constants[1, own == g].min() for g in np.flatnonzero(finite)])
        assert (groups.largest[1, finite] <= 2.0 * smallest * (1.0 + 1e-12)).all()

    def test_any_direction(self, rng):
        _, constants = rows_and_constants(rng)
        _, groups = group_rows(constants, Grid.of(constants, RADII, np.eye(1, 3)))
        assert groups.is_single and groups.n_rows == constants.shape[1]
        np.testing.assert_allclose(groups.cosines, 0.0, atol=1e-15)

    def test_rows_without_a_bound_and_constants_of_zero(self):
        constants = np.array([[0.0, np.inf, 1.0, 1e-30, 3.0]])
        own, groups = group_rows(constants, Grid.of(constants, np.array([1.0])))
        np.testing.assert_array_equal(own, [3, 0, 2, 3, 1])
        np.testing.assert_array_equal(groups.largest, [[np.inf, 3.0, 1.0, 1e-30]])
