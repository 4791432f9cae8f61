import numpy as np
import pytest

from pymc_austerity.rows import ArrayRows, blocks_of, sum_over_rows
from pymc_austerity.rows.passes import LARGEST_BLOCK


@pytest.fixture
def arrays(rng):
    """Leaves of several kinds, none of them laid out as compiled functions want it."""
    n_rows = 2 * LARGEST_BLOCK + 17
    return [
        rng.normal(size=(3, n_rows)).T,
        rng.integers(0, 100, size=2 * n_rows).astype("int8")[::2],
        np.broadcast_to(np.float32(1.5), (n_rows, 2)),
    ]


def assert_like_any_block(block, arrays):
    for piece, array in zip(block, arrays, strict=True):
        assert piece.dtype == array.dtype
        assert piece.flags.c_contiguous
        assert piece.flags.writeable
        assert not np.shares_memory(piece, array)


def test_windows_and_taken_rows_are_the_rows(arrays, rng):
    source = ArrayRows(arrays)
    assert source.n_rows == 2 * LARGEST_BLOCK + 17
    indices = rng.choice(source.n_rows, 50, replace=False)
    for block, rows in (
        (source.window(5, 1_000), slice(5, 1_000)),
        (source.take(indices), indices),
    ):
        assert_like_any_block(block, arrays)
        for piece, array in zip(block, arrays, strict=True):
            np.testing.assert_array_equal(piece, array[rows])


def test_blocks_are_all_rows_once_in_order(arrays):
    blocks = list(blocks_of(ArrayRows(arrays)))
    assert [block[0].shape[0] for block in blocks] == [LARGEST_BLOCK, LARGEST_BLOCK, 17]
    for number, array in enumerate(arrays):
        np.testing.assert_array_equal(np.concatenate([block[number] for block in blocks]), array)


@pytest.mark.parametrize("n_rows", [1, LARGEST_BLOCK, LARGEST_BLOCK + 1])
def test_blocks_at_the_edges(n_rows):
    blocks = list(blocks_of(ArrayRows([np.arange(n_rows)])))
    assert sum(block[0].size for block in blocks) == n_rows
    assert min(block[0].size for block in blocks) > 0


def test_sums_of_vectors_and_matrices(arrays):
    source = ArrayRows(arrays)
    x = arrays[0]
    np.testing.assert_allclose(
        sum_over_rows(lambda block: block[0].sum(axis=0), source), x.sum(axis=0), rtol=1e-10
    )
    np.testing.assert_allclose(
        sum_over_rows(lambda block: block[0].T @ block[0], source), x.T @ x, rtol=1e-10, atol=1e-8
    )
