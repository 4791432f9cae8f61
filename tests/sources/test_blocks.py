import threading

import numpy as np
import pytest

from pymc_austerity import DataError
from pymc_austerity.sources import block_ranges, open_source, read_ahead, refuse_unequal_lengths


class Recorded:
    """A source whose reads are recorded, and may fail."""

    row_shape = ()
    dtype = np.dtype(float)

    def __init__(self, n_rows=20, block_length=None, fails_at=None):
        self.n_rows, self.block_length, self.fails_at = n_rows, block_length, fails_at
        self.reads, self.threads = [], set()

    def read(self, start, stop):
        self.reads.append((start, stop))
        self.threads.add(threading.current_thread())
        if start == self.fails_at:
            raise OSError("no such row")
        return np.arange(start, stop, dtype=float)


def blocks_of_sources(sources, block_rows):
    return read_ahead(sources, list(block_ranges(sources, block_rows)))


def live_threads():
    return [t for t in threading.enumerate() if t.name.startswith("rows-ahead")]


@pytest.mark.parametrize(
    ("lengths", "block_rows", "expected"),
    [
        ([None], 8, [(0, 8), (8, 16), (16, 20)]),
        ([None], 50, [(0, 20)]),
        ([3, None, 3], 8, [(0, 6), (6, 12), (12, 18), (18, 20)]),
        ([8], 8, [(0, 8), (8, 16), (16, 20)]),
        ([9], 8, [(0, 5), (5, 9), (9, 14), (14, 18), (18, 20)]),
        ([3, 4], 8, [(0, 8), (8, 16), (16, 20)]),
        ([100], 7, [(0, 7), (7, 14), (14, 20)]),
        ([20], 1, [(i, i + 1) for i in range(20)]),
    ],
)
def test_ranges_are_whole_blocks_or_equal_parts_of_one(lengths, block_rows, expected):
    sources = {str(i): Recorded(block_length=length) for i, length in enumerate(lengths)}
    assert list(block_ranges(sources, block_rows)) == expected


def test_blocks_have_the_same_rows_of_all_sources(rng):
    x, y = rng.normal(size=(1_003, 3)), rng.integers(0, 5, size=1_003)
    sources = {"x": open_source(x, "x"), "y": open_source(y, "y")}
    found = list(blocks_of_sources(sources, 100))
    assert [start for start, _, _ in found] == list(range(0, 1_003, 100))
    for start, stop, block in found:
        assert list(block) == ["x", "y"]
        np.testing.assert_array_equal(block["x"], x[start:stop])
        np.testing.assert_array_equal(block["y"], y[start:stop])


def test_one_block_is_read_ahead_by_another_thread():
    source = Recorded()
    blocks = blocks_of_sources({"y": source}, 4)
    next(blocks)
    for thread in live_threads():
        assert thread in source.threads
    next(blocks)
    assert len(source.reads) <= 3
    list(blocks)
    assert source.reads == [(a, a + 4) for a in range(0, 20, 4)]
    assert threading.current_thread() not in source.threads
    assert not live_threads()


def test_an_error_is_raised_where_the_blocks_are_used():
    blocks = blocks_of_sources({"y": Recorded(fails_at=8)}, 4)
    assert [next(blocks)[:2], next(blocks)[:2]] == [(0, 4), (4, 8)]
    with pytest.raises(OSError, match="no such row"):
        next(blocks)
    assert not live_threads()


def test_the_thread_ends_where_the_blocks_are_left():
    source = Recorded()
    blocks = blocks_of_sources({"y": source}, 4)
    next(blocks)
    blocks.close()
    assert not live_threads()
    assert len(source.reads) <= 2

    def use():
        for _ in blocks_of_sources({"y": source}, 4):
            raise KeyError

    with pytest.raises(KeyError):
        use()
    assert not live_threads()


def test_numbers_of_rows_must_agree():
    sources = {"x": Recorded(5_000), "y": Recorded(5_000), "z": Recorded(4_999)}
    sentence = (
        r"data\['x'\] has 5,000 rows and data\['z'\] has 4,999: give the same rows for both\."
    )
    with pytest.raises(DataError, match=sentence):
        refuse_unequal_lengths(sources)
    refuse_unequal_lengths({"x": Recorded(5)})
