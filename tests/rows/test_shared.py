import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from pymc_austerity.rows import SharedRows


@pytest.fixture
def arrays(rng):
    return [rng.normal(size=(1_000, 3)), rng.integers(0, 2, size=1_000), rng.random(1_000) < 0.5]


@pytest.fixture
def order(rng):
    return rng.permutation(1_000)


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


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


def test_the_last_user_removes_the_files(arrays, order, temporary_folder):
    rows = SharedRows(arrays, order)
    copy = pickle.loads(pickle.dumps(rows))
    (folder,) = temporary_folder.iterdir()
    rows.close()
    assert folder.exists()
    np.testing.assert_array_equal(copy.window(0, 7)[0], arrays[0][order[:7]])
    del copy
    assert not folder.exists()


def _hold(rows, ready, leave):
    rows.window(0, 1)
    ready.set()
    leave.wait()


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
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
        os.kill(worker.pid, signal.SIGKILL)
    else:
        leave.set()
    worker.join(60)
    assert folder.exists()  # this process still uses them
    rows.close()
    assert not folder.exists()


def test_what_a_killed_process_left_is_removed_by_the_next(arrays, order, temporary_folder):
    script = textwrap.dedent(
        """
        import os, signal
        import numpy as np
        from pymc_austerity.rows import SharedRows
        rows = SharedRows([np.arange(10.0)], np.arange(10))
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    (abandoned,) = temporary_folder.glob("pymc_austerity-rows-*")
    long_ago = time.time() - 3_600
    os.utime(abandoned, (long_ago, long_ago))
    rows = SharedRows(arrays, order)
    assert not abandoned.exists()
    assert len(list(temporary_folder.glob("pymc_austerity-rows-*"))) == 1
    rows.close()


def test_a_folder_in_use_is_never_removed(arrays, order, temporary_folder):
    first = SharedRows(arrays, order)
    (folder,) = temporary_folder.glob("pymc_austerity-rows-*")
    long_ago = time.time() - 3_600
    os.utime(folder, (long_ago, long_ago))
    second = SharedRows(arrays, order)
    assert folder.exists()
    first.close()
    second.close()
