"""Passes over all rows: on several threads or elsewhere, with the results of one thread."""

import contextvars
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from pymc_austerity.errors import DataError

Item = TypeVar("Item")
Result = TypeVar("Result")

Piece: TypeAlias = tuple[int, int, dict[str, NDArray]]
"""Rows that are read together: the first one, the end, and the rows of every source."""

_MOST_THREADS = 8
_CLOSE, _TAKEN_AT_ONCE = 64, 65_536
"""Rows that single reads of `take` skip at most, and span at most."""

_run_by: ContextVar[Callable[..., Iterator[Any]] | None] = ContextVar("_run_by", default=None)


class Source(Protocol):
    """One named piece of data, with rows on axis 0, that is read where it is stored.

    Any number of threads may call ``read``. A pickled source contains rows only if
    they are in memory: the process that unpickles it opens the store again.

    A source may have an ``identity``, a text that changes whenever the rows do and is the same in
    every process. ``setup_folder=`` needs one.
    """

    @property
    def n_rows(self) -> int:
        """Number of rows, at least 1."""

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of one row: ``()`` for a vector of data, ``(k,)`` for a matrix."""

    @property
    def dtype(self) -> np.dtype:
        """Type of the values: bool, integer or floating, in native byte order."""

    @property
    def block_length(self) -> int | None:
        """Number of rows that the store reads together (a chunk, a row group); None for any."""

    def read(self, start: int, stop: int) -> NDArray:
        """Rows ``start`` to ``stop`` in order, a C-contiguous writable copy."""

    def refuse_if_changed(self) -> None:
        """Raise StorageError if the store was changed or removed since it was opened."""


def take(source: Source, indices: NDArray[np.intp]) -> NDArray:
    """Rows at the given positions, in the order given; those close to each other are read at once.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.sources import open_source, take
    >>> take(open_source(np.arange(6.0).reshape(3, 2), "x"), np.array([2, 0]))
    array([[4., 5.],
           [0., 1.]])
    """
    indices = np.asarray(indices, np.intp)
    out = np.empty((indices.size, *source.row_shape), source.dtype)
    order = np.argsort(indices)
    in_order = indices[order]
    cuts = (np.diff(in_order) > _CLOSE) | (np.diff(in_order // _TAKEN_AT_ONCE) > 0)
    for places in np.split(order, np.flatnonzero(cuts) + 1) if indices.size else ():
        first, last = indices[places[[0, -1]]].tolist()
        out[places] = source.read(first, last + 1)[indices[places] - first]
    return out


def refuse_unequal_lengths(sources: Mapping[str, Source]) -> None:
    """Reject sources of a model with different numbers of rows.

    Raises
    ------
    DataError
        Two sources differ.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.sources import open_source
    >>> x, y = open_source(np.zeros((5, 2)), "x"), open_source(np.zeros(4), "y")
    >>> refuse_unequal_lengths({"x": x, "y": y})
    Traceback (most recent call last):
        ...
    pymc_austerity.errors.DataError: data['x'] has 5 rows and data['y'] has 4: give the same rows
    for both.
    """
    (first, expected), *others = [(name, source.n_rows) for name, source in sources.items()]
    for name, n_rows in others:
        if n_rows != expected:
            raise DataError(
                f"data[{first!r}] has {expected:,} rows and data[{name!r}] has {n_rows:,}: give "
                "the same rows for both."
            )


def block_ranges(sources: Mapping[str, Source], block_rows: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows, of limited length, that cover all rows in order.

    If all sources that have their own blocks have blocks of the same length, the ranges are whole
    blocks, or equal parts of one.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.sources import open_source
    >>> list(block_ranges({"y": open_source(np.zeros(10), "y")}, 4))
    [(0, 4), (4, 8), (8, 10)]
    """
    n_rows = next(iter(sources.values())).n_rows
    lengths = {source.block_length for source in sources.values()} - {None}
    length = lengths.pop() if len(lengths) == 1 else None
    if length is None:
        length = block_rows
    elif length <= block_rows:
        length = block_rows - block_rows % length
    step = -(-length // -(-length // block_rows))
    for begin in range(0, n_rows, length):
        end = min(begin + length, n_rows)
        for start in range(begin, end, step):
            yield start, min(start + step, end)


def read_ahead(sources: Mapping[str, Source], ranges: Sequence[tuple[int, int]]) -> Iterator[Piece]:
    """Read some ranges of rows, one after the other.

    A thread reads the next range while the caller works on the current one, so that at most two
    are in memory besides what the sources keep. The thread ends with the iterator, even if it is
    closed early. Errors in the thread are raised here.

    Parameters
    ----------
    sources : mapping from str to Source
    ranges : sequence of (start, stop)
        At least one.

    Yields
    ------
    start, stop : int
    block : dict from str to array, shape (stop - start, ...)
    """

    def read(rows: tuple[int, int]) -> Piece:
        return *rows, {name: source.read(*rows) for name, source in sources.items()}

    with ThreadPoolExecutor(1, thread_name_prefix="rows-ahead") as ahead:
        yield from _in_order(lambda rows: ahead.submit(read, rows), ranges, 1)


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
    with ThreadPoolExecutor(n_threads, thread_name_prefix="rows") as threads:
        # settings such as numpy.errstate are those of the caller
        yield from _in_order(
            lambda item: threads.submit(contextvars.copy_context().run, function, item),
            items,
            n_threads,
        )


def _in_order(
    submit: Callable[[Item], Future[Result]], items: Iterable[Item], n_ahead: int
) -> Iterator[Result]:
    """Results of tasks, of which so many are ahead of the one that is used."""
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(submit(item))
            if len(waiting) > n_ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
