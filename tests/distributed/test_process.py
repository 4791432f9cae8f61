"""What a task has of its worker's process while it evaluates rows."""

import pytest
from threadpoolctl import threadpool_info

from pymc_austerity.distributed import process
from pymc_austerity.distributed.process import for_blocks


def blas_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_linear_algebra_has_one_thread_until_the_last_task_ends():
    before = blas_threads()
    one, two = for_blocks(), for_blocks()
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert blas_threads() <= {1}
    two.__exit__(None, None, None)
    assert blas_threads() == before


@pytest.mark.parametrize("by_dask", [None, "65536"])
def test_memory_is_kept_where_dask_would_give_it_back(monkeypatch, by_dask):
    calls = []

    class Library:
        def __init__(self, _):
            self.mallopt = lambda *given: calls.append(given)

    monkeypatch.setattr(process.ctypes, "CDLL", Library)
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    if by_dask:
        monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", by_dask)
    with for_blocks():
        kept = list(calls)
    given_back = calls[len(kept) :]
    assert kept == ([(-1, 2**27), (-3, 2**25)] if by_dask else [])
    assert given_back == ([(-1, 65_536), (-3, 131_072)] if by_dask else [])
