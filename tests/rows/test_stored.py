"""An external shuffle: uniformly random orders within strata, with little memory."""

import itertools
import mmap
import os
import pickle
import shutil
import subprocess
import sys
import tracemalloc
from collections import Counter, namedtuple
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from pymc_austerity.errors import StorageError
from pymc_austerity.rows import store_by_label, stored

STATM = Path("/proc/self/statm")


def in_blocks(labels, arrays, length=500):
    for start in range(0, labels.size, length):
        rows = slice(start, start + length)
        yield labels[rows], tuple(array[rows] for array in arrays)


def put(labels, arrays, rng, **settings):
    shares = np.bincount(labels) / labels.size
    blocks = in_blocks(labels, arrays, **settings)
    return store_by_label(blocks, n_rows=labels.size, shares=shares, rng=rng)


def test_every_row_is_stored_once_and_whole_in_its_stratum(rng, monkeypatch):
    monkeypatch.setattr(stored, "_BYTES_OF_BUCKET", 4_000)
    monkeypatch.setattr(stored, "_ROWS_AT_ONCE", 1_200)
    number = np.arange(7_001)
    labels = (number * number) % 3
    arrays = number, rng.normal(size=(7_001, 2)).astype(np.float32), number % 2 == 0
    rows, sizes = put(labels, arrays, rng)
    np.testing.assert_array_equal(sizes, np.bincount(labels))
    found = rows.window(0, 7_001)
    np.testing.assert_array_equal(labels[found[0]], np.repeat(np.arange(sizes.size), sizes))
    np.testing.assert_array_equal(np.sort(found[0]), number)
    for got, array in zip(found, arrays, strict=True):
        assert got.dtype == array.dtype
        np.testing.assert_array_equal(got, array[found[0]])


@pytest.mark.parametrize("n_bytes", [1_000, 20_000, 10**7])
def test_labels_of_few_rows_share_buckets(n_bytes, rng, monkeypatch):
    """Also where they have other shares of the rows than was expected."""
    monkeypatch.setattr(stored, "_BYTES_OF_BUCKET", n_bytes)
    labels = (rng.random(9_000) ** 3 * 300).astype(np.int64)
    labels[labels == 7] = 8
    number, opened = np.arange(9_000), set()
    with_open = stored.Path.open

    def recorded(path, *given):
        opened.add(path.name)
        return with_open(path, *given)

    monkeypatch.setattr(stored.Path, "open", recorded)
    shares = np.full(300, 1 / 300)
    rows, sizes = store_by_label(in_blocks(labels, [number]), n_rows=9_000, shares=shares, rng=rng)
    np.testing.assert_array_equal(sizes, np.bincount(labels, minlength=300))
    (found,) = rows.window(0, 9_000)
    np.testing.assert_array_equal(np.sort(found), number)
    np.testing.assert_array_equal(labels[found], np.repeat(np.arange(300), sizes))
    n_buckets = sum(name.startswith("bucket") for name in opened)
    assert n_buckets <= 2 * 9_000 * 12 / n_bytes + 1
    own = found[: sizes[0]]
    assert abs(np.corrcoef(own[1:], own[:-1])[0, 1]) < 4.0 / np.sqrt(own.size)


@pytest.mark.parametrize("n_bytes", [8, 10**6])
def test_all_orders_are_equally_likely(n_bytes, rng, monkeypatch):
    """Of three rows, with three buckets and with one."""
    monkeypatch.setattr(stored, "_BYTES_OF_BUCKET", n_bytes)
    labels, arrays = np.zeros(3, dtype=np.int64), [np.arange(3)]
    counts = Counter()
    for _ in range(240):
        rows, _ = put(labels, arrays, rng)
        counts[tuple(rows.window(0, 3)[0])] += 1
        rows.close()
    orders = [counts[order] for order in itertools.permutations(range(3))]
    assert chisquare(orders).pvalue > 1e-3


def test_no_trace_is_left_of_the_order_that_rows_came_in(rng, monkeypatch):
    """As a bounded shuffle would leave it."""
    monkeypatch.setattr(stored, "_BYTES_OF_BUCKET", 50_000)
    n_rows = 40_000
    rows, _ = put(np.zeros(n_rows, dtype=np.int64), [np.arange(n_rows)], rng)
    (number,) = rows.window(0, n_rows)
    for part in np.split(number, 8):
        assert kstest(part / n_rows, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(number[1:], number[:-1])[0, 1]) < 4.0 / np.sqrt(n_rows)


def test_a_file_is_shared_by_path_and_removed_at_the_end(rng, temporary_folder):
    rows, _ = put(np.zeros(9, dtype=np.int64), [np.arange(9.0)], rng)
    (folder,) = temporary_folder.iterdir()
    assert sorted(os.listdir(folder)) == ["0.rows", "in-use"]
    other = pickle.loads(pickle.dumps(rows))
    np.testing.assert_array_equal(other.window(0, 9)[0], rows.window(0, 9)[0])
    rows.close()
    other.close()
    assert not list(temporary_folder.iterdir())


def test_memory_does_not_grow_with_the_rows(rng, monkeypatch):
    monkeypatch.setattr(stored, "_BYTES_OF_BUCKET", 2**19)
    monkeypatch.setattr(stored, "_ROWS_AT_ONCE", 2_000)
    peaks = []
    for n_blocks in (60, 180):
        block = np.zeros(2_000, dtype=np.int64), (np.zeros((2_000, 5)),)
        tracemalloc.start()
        store_by_label(
            itertools.repeat(block, n_blocks), n_rows=2_000 * n_blocks, shares=np.ones(1), rng=rng
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


class TestRefused:
    def test_without_room_nothing_is_written(self, rng, monkeypatch, temporary_folder):
        usage = namedtuple("usage", "free")
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(119))
        with pytest.raises(StorageError, match=r"120 bytes, cannot be stored.*No space.*TMPDIR"):
            put(np.zeros(10, dtype=np.int64), [np.zeros(10)], rng)
        assert not list(temporary_folder.iterdir())

    @pytest.mark.parametrize("stage", ["write", "join"])
    def test_a_disk_that_fills_up_is_emptied(self, stage, rng, monkeypatch, temporary_folder):
        def fail(self, *args):
            (self.folder / "partial").write_text("rows")
            raise OSError("100 requested and 7 written")

        monkeypatch.setattr(stored._Buckets, stage, fail)
        with pytest.raises(StorageError, match=r"cannot be stored in .*it is full.*TMPDIR"):
            put(np.zeros(10, dtype=np.int64), [np.zeros(10)], rng)
        assert not list(temporary_folder.iterdir())

    @pytest.mark.skipif(
        getattr(os, "geteuid", int)() == 0, reason="the superuser may write everywhere"
    )
    def test_a_folder_that_is_write_protected(self, rng, temporary_folder):
        temporary_folder.chmod(0o500)
        try:
            with pytest.raises(StorageError, match=r"Permission denied.*TMPDIR"):
                put(np.zeros(10, dtype=np.int64), [np.zeros(10)], rng)
        finally:
            temporary_folder.chmod(0o700)

    @pytest.mark.parametrize("error", [KeyboardInterrupt, StorageError])
    def test_what_reading_raises_is_raised(self, error, rng, temporary_folder):
        def blocks():
            yield np.zeros(5, dtype=np.int64), (np.zeros(5),)
            raise error("while reading")

        with pytest.raises(error, match=r"^while reading$"):
            store_by_label(blocks(), n_rows=10, shares=np.ones(1), rng=rng)
        assert not list(temporary_folder.iterdir())


REAL, WHOLE = np.dtype("float64"), np.dtype("int64")


class TestTypes:
    """Rows are stored in the types in which their values were, and read in those of the model."""

    @pytest.mark.parametrize("dtype", [REAL, WHOLE])
    @pytest.mark.parametrize("given", ["bool", "int8", "uint8", "int16", "int32", "float32"])
    def test_every_value_is_read_as_it_was(self, given, dtype, rng):
        if given == "float32":
            values = np.float32([0.1, -np.inf, np.nan, 3.4e38, 1e-45, -0.0, 7.0, 2.5])
        else:
            ends = (0, 1) if given == "bool" else (np.iinfo(given).min, np.iinfo(given).max)
            values = np.array([*ends, 0, 1, *ends, 1, 1], dtype=given)
        wide = values.reshape(4, 2).astype(dtype if given != "float32" else REAL)
        block = np.arange(4), wide, wide[:, 0].astype(np.float32)
        rows, _ = store_by_label(
            [(np.zeros(4, dtype=np.int64), block)],
            n_rows=4,
            shares=np.ones(1),
            rng=rng,
            types=[None, values.dtype],
        )
        assert rows.n_bytes < 4 * (8 + 16 + 4) or given == "float32"
        number, found, first = rows.window(0, 4)
        assert (found.dtype, first.dtype) == (wide.dtype, np.float32)
        assert found.tobytes() == wide[number].tobytes()
        np.testing.assert_array_equal(first, block[2][number])

    def test_a_type_that_holds_other_values_is_not_used(self, rng):
        values, labels = rng.normal(size=7), np.zeros(7, dtype=np.int64)
        types = [np.dtype("uint32"), np.dtype("float16"), None]
        rows, _ = store_by_label(
            [(labels, (values, values, np.arange(7)))],
            n_rows=7,
            shares=np.ones(1),
            rng=rng,
            types=types,
        )
        first, second, number = rows.window(0, 7)
        np.testing.assert_array_equal(first, values[number])
        np.testing.assert_array_equal(second, values[number])


@pytest.fixture
def rows(rng, monkeypatch):
    """More of them than are read at once."""
    monkeypatch.setattr(stored, "_SCRATCH", 1_000)
    number = np.arange(900)
    return put(number % 5, [number, number % 7 == 0, np.outer(number, [1.0, 2.0])], rng)[0]


def test_rows_are_read_in_any_order_and_again(rows, rng):
    everything = rows.window(0, 900)
    for chosen in (rng.integers(0, 900, size=300), np.array([3, 4, 5, 5, 4]), np.array([], int)):
        for got, expected in zip(rows.take(chosen), everything, strict=True):
            assert got.flags.c_contiguous and got.flags.writeable and got.flags.aligned
            np.testing.assert_array_equal(got, expected[chosen])
    np.testing.assert_array_equal(rows.window(890, 950)[0], everything[0][890:])
    with pytest.raises(IndexError, match="rows 3 to 900 are not among 900"):
        rows.take(np.array([3, 900]))


def test_arrays_can_be_added_and_parted(rows):
    number, is_seventh, pair = rows.window(0, 900)
    for shift in (0.7, 0.5):  # the second array takes the place of the first one
        rows.truncate(3)
        rows.extend(lambda block: block[2] + shift)  # noqa: B023
    others = rows.split(1)
    assert (rows.n_arrays, others.n_arrays) == (1, 3)
    expected = [(rows, [number]), (others, [is_seventh, pair, pair + 0.5])]
    for known in [*expected, *((pickle.loads(pickle.dumps(own)), want) for own, want in expected)]:
        for got, want in zip(known[0].window(0, 900), known[1], strict=True):
            np.testing.assert_array_equal(got, want)
    folder = rows.folder
    rows.close()
    np.testing.assert_array_equal(others.window(0, 900)[0], is_seventh)
    others.close()
    del known
    assert not folder.exists()


@pytest.mark.skipif(not hasattr(os, "pread"), reason="mapped files cannot be cut off")
def test_a_file_that_was_cut_off(rows):
    os.truncate(rows.folder / "0.rows", 100)
    with pytest.raises(StorageError, match=r"are gone or cannot be read"):
        rows.window(0, 900)


@pytest.mark.skipif(not STATM.exists(), reason="the system does not say how much memory is used")
def test_what_was_read_takes_no_memory(rng):
    """Beside the arrays that are returned."""
    values = rng.normal(size=(200_000, 10))
    rows, _ = put(np.zeros(200_000, dtype=np.int64), [values], rng)
    rows.take(np.arange(10))
    before = resident_bytes()
    for _ in range(200):
        rows.take(rng.integers(0, 200_000, size=1_000))
    assert resident_bytes() - before < 4e6


def resident_bytes():
    return int(STATM.read_text().split()[1]) * mmap.PAGESIZE


WITHOUT_PREAD = """
import os
del os.pread
import numpy as np
from pymc_austerity.rows import store_by_label

labels, values = np.arange(900) % 3, np.arange(1_800.0).reshape(900, 2)
blocks, rng = [(labels, (values,))], np.random.default_rng(1)
rows, _ = store_by_label(blocks, n_rows=900, shares=np.ones(3) / 3, rng=rng)
print(rows.window(0, 900)[0].sum() - values.sum(), rows.take(np.array([5, 3]))[0][:, 0] % 6)
rows.close()
"""


@pytest.mark.exhaustive
def test_files_are_mapped_where_they_cannot_be_read_at_a_place(tmp_path):
    command = [sys.executable, "-c", WITHOUT_PREAD]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    made = subprocess.run(command, env=environment, text=True, capture_output=True, check=True)
    assert made.stdout == "0.0 [0. 0.]\n"
