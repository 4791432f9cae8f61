"""Passes over all rows of data= on the workers of a cluster, and what travels to them."""

import ctypes
import io
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any, BinaryIO, TypeVar

import cloudpickle
import numpy as np
from dask.distributed import Client, Future, get_client, get_worker

from pymc_austerity.errors import SettingError, SettingTypeError, StorageError, warn_user
from pymc_austerity.model import AnyThread, OneAtATime
from pymc_austerity.rows import SharedRows, Store
from pymc_austerity.sources import Piece, Source, passes_run_by, read_ahead


class Parcels:
    """Pickles objects that have compiled functions in common.

    Compiled functions are bytes within the bytes: the same at every call, and loaded once by the
    process that they are sent to, which takes seconds.

    Parameters
    ----------
    rows_as_paths : bool
        Whether stores of rows are sent as paths of their files.
    """

    def __init__(self, *, rows_as_paths: bool = True) -> None:
        self._rows_as_paths = rows_as_paths
        self._known: dict[int, tuple[Any, bytes]] = {}

    def pickled(self, obj: Any) -> bytes:
        """The bytes of an object.

        Raises
        ------
        SettingError
            Something in it cannot be pickled.
        """
        file = io.BytesIO()
        try:
            _Pickler(file, self._reduced).dump(obj)
        except (cloudpickle.pickle.PickleError, TypeError, AttributeError) as error:
            raise SettingError(
                f"{type(obj).__name__} cannot be sent to workers ({error}): define its parts in a "
                "module that workers can import."
            ) from error
        return file.getvalue()

    def _reduced(self, obj: Any) -> Any:
        if isinstance(obj, Store) and not self._rows_as_paths:
            return SharedRows, (obj.window(0, obj.n_rows), np.arange(obj.n_rows))
        if not isinstance(obj, AnyThread | OneAtATime):
            return NotImplemented
        if id(obj) not in self._known:
            self._known[id(obj)] = obj, cloudpickle.dumps(obj)
        return _loaded, (self._known[id(obj)][1],)


class _Pickler(cloudpickle.Pickler):
    def __init__(self, file: BinaryIO, reduced: Callable[[Any], Any]) -> None:
        super().__init__(file)
        self._reduced = reduced

    def reducer_override(self, obj: Any) -> Any:
        reduced = self._reduced(obj)
        return super().reducer_override(obj) if reduced is NotImplemented else reduced


@lru_cache(maxsize=64)
def _loaded(content: bytes) -> Any:
    return cloudpickle.loads(content)


Result = TypeVar("Result")
Ranges = Sequence[tuple[int, int]]

_MOST_PIECES = 64
"""Of a task, which is done again if its worker is lost."""

_SHARE = 8
"""Tasks of a pass for each thread at least, so that workers end at about the same time."""

_AHEAD = 3
"""Tasks for each thread that wait, run, or have results that are not used yet."""

_LARGE = 50_000_000
"""Bytes of sources that have rows in them; those that have none are far smaller."""

_TRIM, _MMAP = -1, -3
"""Numbers of glibc's parameters (``malloc.h``)."""

_KEPT = 2**27


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
    Compiled functions are loaded once by each worker. Others evaluate the blocks of a lost worker.

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


def checked_client(client: Any) -> Client:
    """The client that was given, or the one that was made last in this process.

    Raises
    ------
    SettingError
        There is none.
    SettingTypeError
        It is asynchronous or something else.
    """
    if client is None:
        try:
            client = get_client()
        except ValueError as error:
            raise SettingError(
                "there is no client of a Dask cluster in this process: give client=, such as "
                "dask.distributed.Client(threads_per_worker=1)."
            ) from error
    if not isinstance(client, Client):
        raise SettingTypeError(
            f"client={client!r} is not a dask.distributed.Client: make one for the cluster."
        )
    if client.asynchronous:
        raise SettingTypeError(
            "client= is asynchronous, and sampling waits for the workers: make the client without "
            "asynchronous=True."
        )
    if not client.nthreads():
        warn_user("The cluster has no worker: all waits until one is started.")
    return client


class _PassesOnWorkers:
    """Runs passes as tasks. What all of them need is the result of a task, made again where lost.

    Parameters
    ----------
    client : dask.distributed.Client
    """

    def __init__(self, client: Client) -> None:
        self._client, self._parcels = client, Parcels()
        self._sources: dict[int, tuple[Source, Future]] = {}

    def __call__(
        self, function: Callable[[Piece], Result], sources: Mapping[str, Source], ranges: Ranges
    ) -> Iterator[Result]:
        """Results of a function for each range of rows, in order."""
        there = {name: self._sent(source) for name, source in sources.items()}
        sent = self._loaded(self._parcels.pickled(function))
        open_tasks = deque[Future]()
        workers = list(self._client.nthreads())
        n_threads = max(sum(self._client.nthreads().values()), 1)
        size = max(min(len(ranges) // (_SHARE * n_threads), _MOST_PIECES), 1)
        try:
            for number, start in enumerate(range(0, len(ranges), size)):
                # by itself, Dask prefers the few workers that have the function already
                where = workers and workers[number % len(workers)]
                task = self._client.submit(
                    _evaluated, sent, there, ranges[start : start + size], np.geterr(),
                    pure=False, workers=where or None, allow_other_workers=True,
                )  # fmt: skip
                open_tasks.append(task)
                if len(open_tasks) > _AHEAD * n_threads:
                    yield from open_tasks.popleft().result()
            while open_tasks:
                yield from open_tasks.popleft().result()
        finally:
            if open_tasks and self._client.status == "running":
                self._client.cancel(list(open_tasks), force=True)

    def _sent(self, source: Source) -> Future:
        """A source, sent once to each worker that needs it."""
        if id(source) not in self._sources:
            content = self._parcels.pickled(source)
            if len(content) > _LARGE:
                warn_user(
                    f"{len(content) / 1e6:,.0f} MB of data= that are in memory are sent to every "
                    "worker: give paths of files."
                )
            self._sources[id(source)] = source, self._loaded(content)
        return self._sources[id(source)][1]

    def _loaded(self, content: bytes) -> Future:
        return self._client.submit(cloudpickle.loads, content, pure=False)


# ---------------------------------------------------------------------- on a worker


def _evaluated(
    function: Callable[[Piece], Result],
    sources: Mapping[str, Source],
    ranges: Ranges,
    floating: dict[str, Any],
) -> list[Result]:
    """Results of a function for some ranges of rows, which are read here."""
    _keep_freed_memory()
    try:
        with np.errstate(**floating):
            return [function(piece) for piece in read_ahead(sources, ranges)]
    except StorageError as error:
        error.add_note(f"This was on the worker {get_worker().address}, which reads data= itself.")
        raise


@cache
def _keep_freed_memory() -> None:
    """Keep memory that was freed for the next blocks of rows.

    Dask makes workers return it to the system at once. Blocks then get new pages for every
    intermediate array, which takes several times as long as the computations.
    """
    if os.name == "posix" and "MALLOC_TRIM_THRESHOLD_" in os.environ:  # which Dask has set
        mallopt = getattr(ctypes.CDLL(None), "mallopt", lambda name, value: None)
        mallopt(_TRIM, _KEPT)
        mallopt(_MMAP, _KEPT // 4)
