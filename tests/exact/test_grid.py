"""Groups on a fixed grid: all rows at once or block by block, and rows picked out of them."""

import numpy as np

from pymc_austerity.exact import Grid, GridTotals, WantedRows, any_direction, nearest_directions

RADII = np.array([2.0, 4.0])


def rows_and_constants(rng, n_rows=5_000):
    whitened = rng.normal(size=(n_rows, 3))
    constants = np.exp(rng.normal(0.0, 3.0, n_rows)) * np.array([[1.0], [1.5]])
    constants[:, :7], constants[:, 7:20] = np.inf, 0.0
    return whitened, constants


def totals_of(grid, whitened, constants, block):
    totals = GridTotals(grid)
    for start in range(0, len(whitened), block):
        rows = slice(start, start + block)
        totals.add(grid.rows_of_cells(constants[:, rows], whitened[rows]))
    return totals


class TestGrid:
    def test_blocks_make_the_groups_of_all_rows_at_once(self, rng):
        whitened, constants = rows_and_constants(rng)
        vectors = nearest_directions(whitened, np.ones(len(whitened)), 8, rng).vectors
        grid = Grid(RADII, 1.0, vectors, by_direction=True)
        whole = totals_of(grid, whitened, constants, len(whitened)).groups()
        parts = totals_of(grid, whitened, constants, 137).groups()
        for name, value in vars(whole).items():
            np.testing.assert_array_equal(value, getattr(parts, name), err_msg=name)

    def test_groups_bound_their_rows(self, rng):
        whitened, constants = rows_and_constants(rng)
        vectors = nearest_directions(whitened, np.ones(len(whitened)), 8, rng).vectors
        grid = Grid(RADII, 1.0, vectors, by_direction=True)
        totals = totals_of(grid, whitened, constants, 1_000)
        groups, own = (
            totals.groups(),
            totals.number[grid.cells_of(constants[grid.usual], whitened)[0]],
        )
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
        grid = Grid(RADII, 1.0, any_direction(1, 3).vectors, by_direction=False)
        totals = GridTotals(grid)
        totals.add(grid.rows_of_cells(constants, None))
        groups = totals.groups()
        assert groups.is_single and groups.n_rows == constants.shape[1]
        np.testing.assert_allclose(groups.cosines, 0.0, atol=1e-15)


class TestWantedRows:
    def test_ranks_in_groups_whatever_the_blocks(self, rng):
        groups = rng.integers(0, 6, 10_000)
        groups[:3_000] = 2  # in no random order
        sizes = np.bincount(groups)
        members = [np.flatnonzero(groups == g) for g in range(6)]
        wanted_groups = rng.integers(0, 6, 4_000)
        ranks = (rng.random(4_000) * sizes[wanted_groups]).astype(int)
        expected = [members[g][r] for g, r in zip(wanted_groups, ranks, strict=True)]
        for block in (10_000, 777, 1):
            wanted, found = WantedRows(sizes, wanted_groups, ranks), np.full(4_000, -1)
            seen = np.zeros(6, dtype=np.int64)
            for start in range(0, groups.size, block):
                picked = wanted.pick(groups[start : start + block], seen)
                found[picked.wishes], seen = start + picked.rows, picked.seen
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(seen, sizes)
