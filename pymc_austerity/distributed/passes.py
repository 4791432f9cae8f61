"""Passes over all rows of ``data=``, on the workers of a cluster."""

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np
from dask.distributed import CancelledError, Client, KilledWorker, get_worker

from pymc_austerity.distributed.clients import Waiting, checked_client
from pymc_austerity.distributed.parts import Pickled, Sent, SentOnce
from pymc_austerity.distributed.process import for_blocks
from pymc_austerity.errors import AusterityWarning, StorageError
from pymc_austerity.sources import Piece, Source, passes_run_by, read_ahead

Result = TypeVar("Result")
Ranges = Sequence[tuple[int, int]]

_MOST_PIECES = 64
"""Of a task, which is done again if its worker is lost."""

_AHEAD = 3
"""Tasks for each thread that wait, run, or have results that are not used yet."""

_LARGE = 50_000_000
"""Bytes of functions that have rows in them; those that have none are far smaller."""


@contextmanager
def passes_on(client: Client | None = None) -> Iterator[None]:
    """Set up step methods with ``data=`` on a cluster: workers read and evaluate blocks of rows.

    `pymc_austerity.distributed.sample` does this by itself for step methods that were constructed
    outside the model. The results are identical to those of passes in this process, on any
    number of workers.

    Parameters
    ----------
    client : dask.distributed.Client, optional
        The cluster; by default, the client that was created last in this process.

    Raises
    ------
    SettingError
        There is no client.
    SettingTypeError
        The client is asynchronous or is not a client.

    Notes
    -----
    Workers read the sources themselves, so paths must lead to the same files on all machines.
    Compiled functions are sent to each worker once. Others evaluate the blocks of a lost worker.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pymc as pm
    >>> from dask.distributed import Client
    >>> from pymc_austerity import AusterityMH
    >>> import pymc_austerity.distributed
    >>> path = f"{tempfile.mkdtemp()}/y.npy"
    >>> np.save(path, np.random.default_rng(1).normal(3.0, 2.0, 200_000))
    >>> with pm.Model() as model:
    ...     _ = pm.Normal("y", pm.Normal("mean", 0, 10), 2.0, observed=np.zeros(10))
    >>> with Client(processes=False, n_workers=2, dashboard_address=":0") as client:
    ...     with model, pymc_austerity.distributed.passes_on(client):
    ...         step = AusterityMH(data={"y": path})
    """
    with passes_run_by(_PassesOnWorkers(checked_client(client))):
        yield


class _PassesOnWorkers:
    """Runs passes as tasks.

    Parameters
    ----------
    client : dask.distributed.Client
    """

    def __init__(self, client: Client) -> None:
        self._client, self._objects = client, SentOnce(client)
        self._has_warned = False

    def __call__(
        self, function: Callable[[Piece], Result], sources: Mapping[str, Source], ranges: Ranges
    ) -> Iterator[Result]:
        """Results of a function for each range of rows, in order."""
        sent = self._objects.sent((function, dict(sources)), sources.values())
        self._warn_if_large()
        waiting, open_tasks = Waiting(self._client, "passes over the rows"), deque[_Task]()
        start = 0
        try:
            while start < len(ranges):
                threads = self._client.nthreads()
                n_threads = max(sum(threads.values()), 1)
                own = ranges[start : start + _size_of_task(len(ranges) - start, n_threads)]
                open_tasks.append(self._submitted(sent, own, _least_busy(threads, open_tasks)))
                start += len(own)
                if len(open_tasks) > _AHEAD * n_threads:
                    yield from _result(open_tasks, waiting)
            while open_tasks:
                yield from _result(open_tasks, waiting)
        finally:
            if open_tasks and self._client.status == "running":
                self._client.cancel([task.future for task in open_tasks], force=True)

    def _submitted(self, sent: Sent, ranges: Ranges, worker: str | None) -> "_Task":
        """Hand out a task to a worker, or to another one if that is lost.

        The cluster's own choice is among the workers that have a part of the functions, which few
        of them do when a pass begins, and by how long tasks take that were of other sizes.
        """
        of_worker = {"workers": [worker], "allow_other_workers": True} if worker else {}
        arguments = (_evaluated, *sent, ranges, np.geterr())
        future = self._client.submit(*arguments, pure=False, **of_worker)
        return _Task(future, len(ranges), worker)

    def _warn_if_large(self) -> None:
        if self._has_warned or self._objects.n_bytes < _LARGE:
            return
        self._has_warned = True
        warnings.warn(
            f"{self._objects.n_bytes / 1e6:,.0f} MB of data= that are in memory are sent to every "
            "worker: give paths of files.",
            AusterityWarning,
            stacklevel=2,
        )


class _Task(NamedTuple):
    """Pieces that a worker evaluates.

    Attributes
    ----------
    future : dask.distributed.Future
    n_pieces : int
    worker : str or None
        Its address; None if there was no worker.
    """

    future: Any
    n_pieces: int
    worker: str | None


def _size_of_task(n_left: int, n_threads: int) -> int:
    """Pieces of the next task: fewer towards the end, so that workers end at about the same time.

    This is guided self-scheduling (Polychronopoulos and Kuck, 1987).
    """
    return max(min(n_left // (2 * n_threads), _MOST_PIECES), 1)


def _least_busy(threads: Mapping[str, int], open_tasks: Iterable[_Task]) -> str | None:
    """The worker that has the fewest pieces left for each of its threads."""
    left = dict.fromkeys(threads, 0.0)
    for task in open_tasks:
        if task.worker in left and not task.future.done():
            left[task.worker] += task.n_pieces / threads[task.worker]
    return min(left, key=left.__getitem__, default=None)


def _result(open_tasks: deque[_Task], waiting: Waiting) -> list[Any]:
    """What the first task returns; its data stay on the workers no longer."""
    try:
        found: list[Any] = waiting.result(open_tasks[0].future)
    except KilledWorker as error:
        raise RuntimeError(
            "every worker that evaluated certain rows was lost, as when memory runs out: look at "
            "the logs of the workers."
        ) from error
    except CancelledError as error:
        raise RuntimeError(
            "a pass over the rows was canceled, because the cluster is gone or was restarted: "
            "construct the step method again."
        ) from error
    del open_tasks[0]
    return found


# ---------------------------------------------------------------------- on a worker


def _evaluated(
    pickled: Pickled, parts: Mapping[str, Pickled], ranges: Ranges, floating: dict[str, Any]
) -> list[Any]:
    """Results of a function for some ranges of rows, which are read here."""
    function, sources = pickled.unpickled(parts)
    try:
        with np.errstate(**floating), for_blocks():
            return [function(piece) for piece in read_ahead(sources, ranges)]
    except StorageError as error:
        error.add_note(f"This was on the worker {get_worker().address}, which reads data= itself.")
        raise
