"""Chains as tasks of a Dask cluster: the draws of pm.sample, whatever happens on the way."""

import os
import signal
import threading
import time
from types import SimpleNamespace

import dask
import numpy as np
import pymc as pm
import pytest
from dask.distributed import Client, KilledWorker, LocalCluster

from pymc_austerity import AusterityMH, AusterityWarning, GroupedMH
from pymc_austerity.distributed import sample as sample_on
from pymc_austerity.distributed import sampling
from pymc_austerity.errors import SettingError, StorageError
from pymc_austerity.rows import SharedRows
from tests import running
from tests.running import QUIET, assert_same_draws, sample
from tests.setup.sources import logistic, rows_of_regression
from tests.sources.stores import npy
from tests.step_methods.models import many_levels, normal_mean

RUN = {"draws": 60, "tune": 60, "chains": 3, "random_seed": 3} | QUIET


def in_memory(_):
    return normal_mean(), lambda: AusterityMH()


def in_files(folder):
    data = rows_of_regression(20_000)
    paths = npy(folder, data)
    return logistic(data), lambda: AusterityMH(data=paths)


def beside_others(_):
    model = normal_mean()
    with model:
        count = pm.Binomial("count", 3, 0.5)
        pm.Potential("both", -0.1 * count * model["mu"])
    return model, lambda: [AusterityMH(["mu"]), pm.Metropolis([count])]


def grouped(_):
    return many_levels(), lambda: GroupedMH()


def built(case, folder=None):
    model, make = case(folder)
    return model, running.built(model, make)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A model whose rows stay in files."""
    return built(in_files, tmp_path_factory.mktemp("rows"))


@pytest.fixture(scope="module")
def simple():
    model, step = built(in_memory)
    return model, step, sample(step, model, **RUN)


def when_chains_run(client, act, *, after=3.0):
    """Do something, in a thread, some seconds after a worker has been given a chain."""

    def watch():
        while not any("_chain" in key for keys in client.processing().values() for key in keys):
            time.sleep(0.02)
        time.sleep(after)
        act()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("case", [in_memory, in_files, beside_others, grouped])
@pytest.mark.few("in_files")
def test_draws_are_those_of_sampling_here(threads, elsewhere, case):
    model, step = elsewhere if case is in_files else built(case)
    settings = RUN | {"discard_tuned_samples": False}
    there = sample_on(model, client=threads, step=step, **settings)
    here = sample(step, model, **settings)
    assert_same_draws(there, here)
    for group in ("sample_stats", "warmup_sample_stats"):
        assert set(there[group].data_vars) == set(here[group].data_vars)
        assert there[group].attrs.keys() == here[group].attrs.keys()
        for name, values in here[group].data_vars.items():
            np.testing.assert_array_equal(there[group][name], values)


def test_the_model_of_the_context_and_the_default_step_method(threads):
    with normal_mean():
        idata = sample_on(client=threads, **(RUN | {"chains": 1}))
    assert idata.sample_stats.attrs["sampler"] == "AusterityMH"
    assert idata.posterior["mu"].shape == (1, 60)


def test_workers_on_other_machines_are_sent_the_rows(threads, elsewhere, monkeypatch):
    model, step = elsewhere
    here = sample(step, model, **RUN)

    def not_here(rows, state):
        raise StorageError("gone")

    monkeypatch.setattr(sampling, "_read_files", lambda client: False)
    monkeypatch.setattr(SharedRows, "__setstate__", not_here)
    assert_same_draws(sample_on(model, client=threads, step=step, **RUN), here)


def test_ctrl_c_returns_the_draws_so_far(threads, simple):
    model, step, _ = simple
    settings = RUN | {"draws": 1_000_000, "tune": 10, "chains": 2}
    when_chains_run(threads, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.warns(AusterityWarning, match="lost .chain .: Not enough samples"):  # it waits
        there = sample_on(model, client=threads, step=step, **settings)
    n_draws = there.posterior.sizes["draw"]
    assert 0 < n_draws < 1_000_000
    here = sample(step, model, **(settings | {"draws": n_draws}))
    (chain,) = there.posterior["chain"].values
    np.testing.assert_array_equal(there.posterior["mu"][0], here.posterior["mu"][chain])


@pytest.mark.exhaustive
def test_a_worker_that_is_killed_is_replaced(simple):
    model, step, _ = simple
    settings = RUN | {"draws": 4_000, "chains": 2}
    options = {"processes": True, "n_workers": 1, "threads_per_worker": 1}
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "120 s"}),  # to start again
        LocalCluster(**options, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        (first,) = client.run(os.getpid).values()
        # a new worker imports PyMC first, which takes longer
        watch = when_chains_run(client, lambda: os.kill(first, signal.SIGKILL), after=0.5)
        idata = sample_on(model, client=client, step=step, **settings)
        watch.join()
        (second,) = client.run(os.getpid).values()
    assert second != first
    assert_same_draws(idata, sample(step, model, **settings))


def test_no_worker_is_said(simple):
    model, step, here = simple
    options = {"processes": False, "n_workers": 0, "threads_per_worker": 1}
    with LocalCluster(**options, dashboard_address=":0") as cluster, Client(cluster) as client:
        threading.Timer(3.0, cluster.scale, [1]).start()
        with pytest.warns(AusterityWarning, match="no worker"):
            there = sample_on(model, client=client, step=step, **RUN)
    assert_same_draws(there, here)


CHAIN, LOST = sampling._chain, set[int]()


def chain_unless_lost(number, *given, **settings):
    """What a task runs, with workers that are in this process."""
    if number in LOST:
        raise KilledWorker("chain", SimpleNamespace(address="gone"), 3)
    return CHAIN(number, *given, **settings)


class TestLostChains:
    @pytest.fixture
    def losing(self, monkeypatch):
        monkeypatch.setattr(sampling, "_chain", chain_unless_lost)
        yield lambda *numbers: LOST.update(numbers)
        LOST.clear()

    def test_leave_those_of_others(self, threads, simple, losing):
        model, step, here = simple
        losing(1)
        with pytest.warns(AusterityWarning, match="lost .chain 1: Attempted to run task"):
            there = sample_on(model, client=threads, step=step, **RUN)
        np.testing.assert_array_equal(there.posterior["mu"], here.posterior["mu"][[0, 2]])

    def test_all_of_them_are_an_error(self, threads, simple, losing):
        model, step, _ = simple
        losing(0, 1, 2)
        with pytest.raises(RuntimeError, match="no chain has ended"):
            sample_on(model, client=threads, step=step, **RUN)


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "sentence"),
        [
            ({"callback": print}, "callback=.* has no meaning on a cluster"),
            ({"cores": 2}, "cores=2 has no meaning on a cluster"),
            ({"nuts_sampler": "nutpie"}, "nuts_sampler='nutpie' has no meaning"),
            ({"return_inferencedata": False}, "return_inferencedata=False has no meaning"),
        ],
    )
    def test_settings_without_a_meaning(self, threads, simple, settings, sentence):
        model, step, _ = simple
        with pytest.raises(SettingError, match=sentence):
            sample_on(model, client=threads, step=step, **settings)

    def test_chains_that_learn_from_each_other(self, threads):
        model = normal_mean()
        step = running.built(model, pm.DEMetropolis)
        with pytest.raises(SettingError, match="chains learn from each other"):
            sample_on(model, client=threads, step=step, **(RUN | {"chains": 4}))
