"""Passes over all rows: on several threads or elsewhere, with the results of one thread."""

import contextvars
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from pymc_austerity.sources.blocks import Piece, read_ahead
from pymc_austerity.sources.protocols import Source

__all__ = ["mapped_in_order", "pass_over", "passes_run_by", "usual_threads"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_THREADS = 8

_run_by: ContextVar[Callable[..., Iterator[Any]] | None] = ContextVar("_run_by", default=None)


def pass_over(
    function: Callable[[Piece], Result],
    sources: Mapping[str, Source],
    ranges: Sequence[tuple[int, int]],
    *,
    here: bool = False,
) -> Iterator[Result]:
    """Results of a function for each piece of the rows, in order: one pass.

    Results are the same wherever the function is called, and for any number of threads: pieces are
    the same, linear algebra has one thread, and results come in the order of the rows.

    Parameters
    ----------
    function : callable
        Called by several threads or processes at a time; it must not change anything.
    sources : mapping from str to Source
        All with the same number of rows.
    ranges : sequence of (start, stop)
        The pieces; see `block_ranges`.
    here : bool
        Whether to stay in this process within `passes_run_by`, as where results are large.

    Raises
    ------
    StorageError
        A store was changed or removed, or cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.sources import open_source
    >>> sources = {"y": open_source(np.arange(5.0), "y")}
    >>> [float(y.sum()) for y in pass_over(lambda piece: piece[2]["y"], sources, [(0, 3), (3, 5)])]
    [3.0, 7.0]
    """
    run = None if here or len(ranges) == 1 else _run_by.get()
    yield from (run or _on_threads)(function, sources, ranges)


@contextmanager
def passes_run_by(run: Callable[..., Iterator[Any]]) -> Iterator[None]:
    """Let something else run the passes of this context, unless there is one piece only.

    Parameters
    ----------
    run : callable
        From the function, the sources and the ranges of pieces to an iterator of the results of
        the function for each of them, in order.
    """
    token = _run_by.set(run)
    try:
        yield
    finally:
        _run_by.reset(token)


def _on_threads(
    function: Callable[[Piece], Result],
    sources: Mapping[str, Source],
    ranges: Sequence[tuple[int, int]],
) -> Iterator[Result]:
    """One thread reads, others evaluate."""
    with threadpool_limits(1, user_api="blas"):
        yield from mapped_in_order(function, read_ahead(sources, ranges), usual_threads())


def usual_threads() -> int:
    """Threads of a pass: one for each core, or ``OMP_NUM_THREADS``; one beside other chains."""
    if multiprocessing.parent_process() is not None:
        return 1
    named = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if named.isdecimal() and int(named):
        return min(int(named), _MOST_THREADS)
    return min(_cores(), _MOST_THREADS)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def mapped_in_order(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int
) -> Iterator[Result]:
    """Results of a function for each item, in their order, whichever is ready first.

    One item more than there are threads is in memory, or its result. Errors in a thread are
    raised here, and the threads end with the iterator.

    Parameters
    ----------
    function : callable
        Called by several threads at a time.
    items : iterable
        Consumed by the caller's thread.
    n_threads : int
        With 1 no thread is started.

    Examples
    --------
    >>> list(mapped_in_order(abs, [-1, 2, -3], n_threads=2))
    [1, 2, 3]
    """
    if n_threads == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(n_threads, thread_name_prefix="rows") as threads:
        try:
            for item in items:
                # settings such as numpy.errstate are those of the caller
                waiting.append(threads.submit(contextvars.copy_context().run, function, item))
                if len(waiting) > n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
