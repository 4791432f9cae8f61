"""Passes on threads: the order of results, what is in memory, and errors."""

import threading
import time

import numpy as np
import pytest

from pymc_austerity.sources import usual_threads
from pymc_austerity.sources.passes import mapped_in_order


def slower_at_first(item):
    time.sleep(0.02 if item % 3 == 0 else 0.0)
    return item, np.geterr()["over"], threading.current_thread()


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(n_threads):
    with np.errstate(over="raise"):
        found = list(mapped_in_order(slower_at_first, range(20), n_threads))
    assert [item for item, _, _ in found] == list(range(20))
    assert {over for _, over, _ in found} == {"raise"}
    is_own = [thread is threading.current_thread() for _, _, thread in found]
    assert all(is_own) if n_threads == 1 else not any(is_own)


def test_items_in_memory_are_few():
    taken = []
    results = mapped_in_order(abs, (taken.append(k) or k for k in range(50)), 3)
    assert next(results) == 0
    assert len(taken) == 4
    results.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("rows_")]


def test_an_error_of_a_thread_is_raised_where_results_are_used():
    results = mapped_in_order(lambda k: 1 // (k - 2), range(9), 2)
    assert [next(results), next(results)] == [-1, -1]
    with pytest.raises(ZeroDivisionError):
        next(results)


@pytest.mark.parametrize(("named", "expected"), [("3", 3), ("2,1", 2), ("500", 8)])
def test_threads_are_as_many_as_other_libraries_may_use(monkeypatch, named, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", named)
    assert usual_threads() == expected


def test_threads_are_as_many_as_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert 1 <= usual_threads() <= 8
