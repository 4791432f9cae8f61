"""Passes over the rows of sources on the workers of a cluster: the results of threads."""

import os
import pickle
import signal
import threading
import time

import dask
import dask.array
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster, get_worker

from pymc_austerity import AusterityMH, AusterityWarning
from pymc_austerity.distributed import passes, passes_on
from pymc_austerity.distributed import sample as sample_on
from pymc_austerity.distributed.passes import Parcels
from pymc_austerity.errors import DataError, SettingError, StorageError
from pymc_austerity.model import OneAtATime
from pymc_austerity.setup import source_rows
from pymc_austerity.sources import open_source, pass_over
from tests.running import QUIET, assert_same_draws, built
from tests.setup.sources import logistic, rows_of_regression
from tests.sources.stores import npy

N_ROWS = 50_000
RUN = {"draws": 60, "tune": 60, "chains": 2, "random_seed": 3} | QUIET
RANGES = [(start, start + 1_000) for start in range(0, 20_000, 1_000)]


@pytest.fixture(scope="module")
def data():
    return rows_of_regression(N_ROWS)


@pytest.fixture(scope="module")
def paths(data, tmp_path_factory):
    return npy(tmp_path_factory.mktemp("rows"), data)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Passes of several tasks over few rows."""
    monkeypatch.setattr(source_rows, "_AT_ONCE", source_rows.LARGEST_BLOCK)


@pytest.fixture
def y(tmp_path):
    np.save(tmp_path / "y.npy", np.random.default_rng(1).normal(size=20_000))
    return {"y": open_source(tmp_path / "y.npy", "y")}


RAN_ON, BEGUN = [], []  # of this module, so that they are not pickled with functions

evaluated = passes._evaluated


def recorded(*arguments):
    RAN_ON.append(get_worker().address)
    return evaluated(*arguments)


def begin(piece):
    BEGUN.append(piece[0])


@pytest.fixture
def ran_on(monkeypatch):
    """Addresses of the workers that run tasks of passes, one after the other."""
    monkeypatch.setattr(passes, "_evaluated", recorded)
    RAN_ON.clear()
    return RAN_ON


def everything_about(step):
    """What set-up found, as bytes; and the rows of the store in their order."""
    anchor, sampling = step.target.anchor, step.target.sampling
    arrays = [anchor.point, anchor.gradient, anchor.hessian, anchor.root]
    stored = step.target.source
    if hasattr(sampling, "groups"):
        groups = sampling.groups
        arrays += [groups.starts, groups.largest, groups.cosines]
    else:
        arrays += [sampling.strata.sizes, sampling.deviations]
    return [array.tobytes() for array in (*arrays, *stored.window(0, stored.n_rows))]


@pytest.mark.parametrize("settings", [{}, {"epsilon": 0.05}])
@pytest.mark.exhaustive
def test_set_up_finds_what_threads_find(threads, data, paths, settings, ran_on):
    model, settings = logistic(data), {"data": paths, "rng": 1} | settings
    here = built(model, **settings)
    assert not ran_on
    with passes_on(threads):
        there = built(model, **settings)
    assert len(set(ran_on)) == 2
    assert everything_about(there) == everything_about(here)


@pytest.mark.exhaustive
def test_dask_collections_and_arrays_in_memory(threads, data):
    def given():
        return data | {"x": dask.array.from_array(data["x"], chunks=(9_000, 2))}

    here = built(logistic(data), data=given(), rng=1)
    with passes_on(threads):
        there = built(logistic(data), data=given(), rng=1)
    assert everything_about(there) == everything_about(here)


def test_sample_sets_up_on_the_cluster(threads, data, paths, ran_on):
    outside = AusterityMH(data=paths, rng=1)
    there = sample_on(logistic(data), client=threads, step=outside, **RUN)
    assert len(ran_on) > 10
    ran_on.clear()
    model = logistic(data)
    step = built(model, data=paths, rng=1)
    assert_same_draws(there, sample_on(model, client=threads, step=step, **RUN))
    assert not ran_on


class TestOnePass:
    def test_results_come_in_order(self, threads, y):
        def late_at_first(piece):
            time.sleep(0.03 if piece[0] < 2_000 else 0.0)
            return piece[0], piece[2]["y"].sum(), np.geterr()["over"]

        with np.errstate(over="raise"):
            here = list(pass_over(late_at_first, y, RANGES))
            with passes_on(threads):
                there = list(pass_over(late_at_first, y, RANGES))
        assert here == there
        assert [start for start, *_ in there] == [start for start, _ in RANGES]
        assert {over for *_, over in there} == {"raise"}

    def test_few_tasks_are_under_way(self, threads, y):
        BEGUN.clear()
        with passes_on(threads):
            results = pass_over(begin, y, RANGES)
            next(results)
            time.sleep(0.2)
            results.close()
        assert 1 <= len(BEGUN) <= 5 + 3 + 3 + 2 + 1 + 1 + 1 < len(RANGES)  # seven tasks

    def test_one_piece_and_blocks_stay_here(self, threads, y):
        process = threading.current_thread
        with passes_on(threads):
            (name,) = pass_over(lambda _: process().name, y, [(0, 9)])
            names = set(pass_over(lambda _: process().name, y, RANGES, here=True))
        assert not any("Dask" in each for each in {name, *names})

    def test_errors_are_those_of_the_first_rows(self, threads, y):
        def fails(piece):
            raise DataError(f"row {piece[0]}")

        with passes_on(threads), pytest.raises(DataError, match="row 0"):
            list(pass_over(fails, y, RANGES))

    def test_a_file_that_workers_have_not_got(self, threads, y, tmp_path):
        (tmp_path / "y.npy").unlink()
        with passes_on(threads), pytest.raises(StorageError, match="cannot be read") as raised:
            list(pass_over(len, y, RANGES))
        assert any("This was on the worker inproc" in note for note in raised.value.__notes__)

    def test_what_cannot_be_pickled(self, threads, y):
        lock = threading.Lock()
        with passes_on(threads), pytest.raises(SettingError, match="cannot be sent to workers"):
            list(pass_over(lambda piece: lock, y, RANGES))

    def test_large_data_in_memory_are_said(self, threads, monkeypatch):
        monkeypatch.setattr(passes, "_LARGE", 1_000)
        source = {"y": open_source(np.zeros(20_000), "y")}
        with passes_on(threads), pytest.warns(AusterityWarning, match="give paths of files"):
            assert list(pass_over(lambda piece: piece[0], source, RANGES[:2])) == [0, 1_000]


def test_compiled_functions_are_loaded_once():
    compiled, parcels = OneAtATime(Counting()), Parcels()
    for factor in (1.0, 2.0):
        function = pickle.loads(parcels.pickled(lambda x, by=factor: by * compiled(x)))
        assert function(3.0) == 3.0 * factor
    assert Counting.n_unpickled == 1


class Counting:
    n_unpickled = 0

    def __call__(self, x):
        return x

    def __setstate__(self, state):
        type(self).n_unpickled += 1

    def __getstate__(self):
        return {"something": 1}


@pytest.mark.exhaustive
def test_blocks_of_a_worker_that_is_killed_are_done_again(y):
    options = {"processes": True, "n_workers": 2, "threads_per_worker": 1}

    def slow(piece):
        time.sleep(0.1)
        return os.getpid(), float(piece[2]["y"].sum())

    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "120 s"}),
        LocalCluster(**options, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        passes_on(client),
    ):
        found = []
        for result in pass_over(slow, y, RANGES):
            if not found:
                os.kill(result[0], signal.SIGKILL)
            found.append(result)
    here = [float(y["y"].read(*rows).sum()) for rows in RANGES]
    assert [total for _, total in found] == here


@pytest.mark.parametrize(
    ("given", "sentence"),
    [(8786, "client=8786 is not a"), (None, "there is no client of a Dask cluster")],
)
def test_no_client(given, sentence, monkeypatch):
    def none():
        raise ValueError("no client")

    monkeypatch.setattr(passes, "get_client", none)
    with pytest.raises(SettingError, match=sentence), passes_on(given):
        pass
