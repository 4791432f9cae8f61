import multiprocessing
import multiprocessing.util
import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pymc_austerity.errors import StorageError
from pymc_austerity.rows import ArrayRows, ReorderedRows, SharedRows, shared
from tests.running import START_METHODS

needs_locks = pytest.mark.skipif(shared.fcntl is None, reason="the system has no shared locks")


@pytest.fixture
def arrays(rng):
    return [rng.normal(size=(1_000, 3)), rng.integers(0, 2, size=1_000), rng.random(1_000) < 0.5]


@pytest.fixture
def order(rng):
    return rng.permutation(1_000)


def test_rows_are_stored_in_the_given_order(arrays, order):
    rows = SharedRows(arrays, order)
    assert rows.n_rows == 1_000
    for block, expected in [
        (rows.window(10, 400), [array[order[10:400]] for array in arrays]),
        (rows.take(np.array([3, 999, 3])), [array[order[[3, 999, 3]]] for array in arrays]),
    ]:
        assert len(block) == 3
        for got, want in zip(block, expected, strict=True):
            np.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype


def test_what_is_made_of_the_rows_can_be_stored_with_them(arrays, order, temporary_folder):
    rows = SharedRows(arrays, order)
    for vector in ([3.0], [1.0, 2.0]):  # the second array takes the place of the first one
        rows.truncate(3)
        rows.extend(lambda block: np.outer(block[1], vector))  # noqa: B023
    expected = [*(array[order] for array in arrays), np.outer(arrays[1][order], [1.0, 2.0])]
    assert rows.n_arrays == 4 and rows.n_bytes == sum(array.nbytes for array in expected)
    for known in (rows, pickle.loads(pickle.dumps(rows))):
        for got, array in zip(known.window(0, 1_000), expected, strict=True):
            np.testing.assert_array_equal(got, array)
    del known
    rows.close()
    assert not list(temporary_folder.iterdir())


def test_rows_of_another_store_can_be_mapped(arrays, order, temporary_folder):
    rows = SharedRows.of(ReorderedRows(ArrayRows(arrays), order))
    for known in (rows, pickle.loads(pickle.dumps(rows))):
        assert known.n_rows == 1_000
        for got, array in zip(known.window(0, 1_000), arrays, strict=True):
            np.testing.assert_array_equal(got, array[order])
    del known
    rows.close()
    assert not list(temporary_folder.iterdir())


def test_transposed_and_strided_arrays(rng, order):
    wide = rng.normal(size=(4, 1_000))
    rows = SharedRows([wide.T, wide[0, ::1], np.repeat(wide[1], 2)[::2]], order)
    matrix, first, second = rows.window(0, 1_000)
    np.testing.assert_array_equal(matrix, wide.T[order])
    np.testing.assert_array_equal(first, wide[0][order])
    np.testing.assert_array_equal(second, wide[1][order])


def test_blocks_have_one_layout(arrays, order):
    """Compiled functions are specialised on it, and would be compiled again."""
    rows = SharedRows(arrays, order)
    copy = pickle.loads(pickle.dumps(rows))
    for block in (rows.window(5, 9), rows.take(np.arange(4)), copy.window(5, 9)):
        for array in block:
            assert type(array) is np.ndarray
            assert array.flags.c_contiguous and array.flags.writeable and array.flags.aligned


def test_windows_are_views_and_pickles_are_paths(arrays, order):
    rows = SharedRows(arrays, order)
    assert np.shares_memory(rows.window(0, 10)[0], rows.window(5, 15)[0])
    assert len(pickle.dumps(rows)) < 1_000


def test_writing_to_a_block_does_not_reach_other_processes(arrays, order):
    rows = SharedRows(arrays, order)
    copy = pickle.loads(pickle.dumps(rows))
    before = copy.window(0, 1)[0].copy()
    rows.window(0, 1)[0][:] = 77.0
    np.testing.assert_array_equal(copy.window(0, 1)[0], before)


@needs_locks
def test_the_last_user_removes_the_files(arrays, order, temporary_folder):
    rows = SharedRows(arrays, order)
    copy = pickle.loads(pickle.dumps(rows))
    (folder,) = temporary_folder.iterdir()
    rows.close()
    assert folder.exists()
    np.testing.assert_array_equal(copy.window(0, 7)[0], arrays[0][order[:7]])
    del copy
    assert not folder.exists()


def test_without_locks_who_made_the_files_removes_them(
    arrays, order, temporary_folder, monkeypatch
):
    monkeypatch.setattr(shared, "fcntl", None)
    rows = SharedRows(arrays, order)
    pickle.loads(pickle.dumps(rows)).close()
    (folder,) = temporary_folder.iterdir()
    assert {path.suffix for path in folder.iterdir()} == {".npy"}  # open files cannot be moved
    rows.close()
    assert not folder.exists()


def _hold(rows, ready, leave):
    rows.window(0, 1)
    ready.set()
    leave.wait()


@pytest.mark.few(f"False-{START_METHODS[0]}", f"True-{START_METHODS[0]}")
@pytest.mark.parametrize("context", START_METHODS)
@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_workers_leave_nothing_behind(context, crash, arrays, order, temporary_folder):
    mp = multiprocessing.get_context(context)
    rows = SharedRows(arrays, order)
    (folder,) = temporary_folder.glob("pymc_austerity-rows-*")
    ready, leave = mp.Event(), mp.Event()
    worker = mp.Process(target=_hold, args=(rows, ready, leave))
    worker.start()
    assert ready.wait(60)
    if crash:
        worker.kill()
    else:
        leave.set()
    worker.join(60)
    assert folder.exists()  # this process still uses them
    rows.close()
    assert not folder.exists()


HOLD = """
import sys
import numpy as np
from pymc_austerity.rows import SharedRows

rows = SharedRows([np.arange(10.0)], np.arange(10))
print("stored", flush=True)
sys.stdin.read()
"""


def kill_while_it_uses_rows():
    command, pipe = [sys.executable, "-c", HOLD], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        process.stdout.readline()
        process.kill()


def folders(temporary_folder):
    return list(temporary_folder.glob("pymc_austerity-*"))


@needs_locks
def test_what_a_killed_process_left_is_removed_by_the_next(arrays, order, temporary_folder):
    kill_while_it_uses_rows()
    (abandoned,) = folders(temporary_folder)
    rows = SharedRows(arrays, order)
    assert not abandoned.exists()
    assert len(folders(temporary_folder)) == 1
    rows.close()
    assert not folders(temporary_folder)


@needs_locks
def test_what_was_begun_and_never_used_is_removed_after_a_minute(arrays, order, temporary_folder):
    unfinished = temporary_folder / "pymc_austerity-new-1"
    unfinished.mkdir()
    SharedRows(arrays, order).close()
    assert unfinished.exists()
    long_ago = time.time() - 3_600
    os.utime(unfinished, (long_ago, long_ago))
    SharedRows(arrays, order).close()
    assert not unfinished.exists()


@needs_locks
def test_folders_of_others_are_left_alone(arrays, order, temporary_folder, monkeypatch):
    kill_while_it_uses_rows()
    (abandoned,) = folders(temporary_folder)
    monkeypatch.setattr(os, "getuid", lambda: 12_345)
    SharedRows(arrays, order).close()
    assert abandoned.exists()


def test_a_folder_in_use_is_never_removed(arrays, order, temporary_folder):
    first = SharedRows(arrays, order)
    (folder,) = folders(temporary_folder)
    long_ago = time.time() - 3_600
    os.utime(folder, (long_ago, long_ago))
    second = SharedRows(arrays, order)
    assert folder.exists()
    first.close()
    second.close()


def test_a_folder_that_does_not_exist(arrays, order, temporary_folder, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(temporary_folder / "missing"))
    with pytest.raises(StorageError, match=r"33,000 bytes, cannot be stored in .*missing.*TMPDIR"):
        SharedRows(arrays, order)


def test_a_folder_without_room(arrays, order, temporary_folder, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pymc_austerity.rows.shared._write_header", full)
    with pytest.raises(StorageError, match="No space left"):
        SharedRows(arrays, order)
    assert not folders(temporary_folder)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_device_without_room(arrays, order, temporary_folder, monkeypatch):
    with open("/dev/full", "wb") as device:
        monkeypatch.setattr(Path, "open", lambda path, mode: device)
        with pytest.raises(StorageError, match="TMPDIR"):
            SharedRows(arrays, order)
    assert not folders(temporary_folder)


@needs_locks  # others refuse to remove open files
def test_files_that_are_gone_when_they_are_to_be_shared(arrays, order, temporary_folder):
    rows = SharedRows(arrays, order)
    pickled = pickle.dumps(rows)
    (folder,) = folders(temporary_folder)
    shutil.rmtree(folder)
    assert rows.window(0, 7)[0].shape == (7, 3)  # what is open stays open
    with pytest.raises(StorageError, match=r"are gone.*construct the step method again"):
        pickle.dumps(rows)
    with pytest.raises(StorageError, match=r"are gone"):
        pickle.loads(pickled)
