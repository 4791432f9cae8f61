"""Passes over blocks on several threads, with the results of one."""

import contextvars
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["mapped_in_order", "usual_threads"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_THREADS = 8


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
    """What a function makes of each item, in their order, whichever is ready first.

    One item more than there are threads is in memory, or its result. What goes wrong in a thread is
    raised here, and the threads end with the iterator.

    Parameters
    ----------
    function : callable
        Several threads call it at a time.
    items : iterable
        Gone through by the caller's thread.
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
