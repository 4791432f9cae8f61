"""An external shuffle: uniformly random orders within strata, with little memory."""

import itertools
import os
import pickle
import shutil
import tracemalloc
from collections import Counter, namedtuple

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from pymc_austerity.errors import StorageError
from pymc_austerity.rows import shared, store_by_label, stored


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


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
    assert sorted(os.listdir(folder)) == ["0.npy", "in-use"]
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
            itertools.repeat(block, n_blocks),
            n_rows=2_000 * n_blocks,
            shares=np.ones(1),
            rng=rng,
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

    @pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
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


def test_pages_that_are_dropped_are_read_again(rng, monkeypatch):
    monkeypatch.setattr(shared, "_BYTES_OF_PAGES", 0)
    values = rng.normal(size=(5_000, 3))
    labels = rng.integers(0, 4, size=5_000)
    rows, _ = store_by_label([(labels, (values,))], n_rows=5_000, shares=np.full(4, 0.25), rng=rng)
    first = rows.window(0, 5_000)[0]
    before = first.copy()
    for _ in range(3):
        rows.take(np.arange(10))
        rows.release()
    np.testing.assert_array_equal(first, before)
    np.testing.assert_array_equal(np.sort(first, axis=0), np.sort(values, axis=0))
