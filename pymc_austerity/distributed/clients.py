"""Clients of a cluster: which one to use, and waiting for its workers."""

import contextlib
import logging
import time
from collections.abc import Iterable, Iterator
from typing import Any

from dask.distributed import CancelledError, Client, Future, get_client, wait

from pymc_austerity.errors import SettingError, SettingTypeError

_log = logging.getLogger("pymc.austerity")

_SECONDS_BETWEEN_WORDS = 30.0
_SECONDS_BETWEEN_LOOKS = 1.0


class Waiting:
    """Logs regularly that there is no worker.

    Parameters
    ----------
    client : dask.distributed.Client
    what : str
        What waits, in the plural.
    """

    def __init__(self, client: Client, what: str) -> None:
        self._client, self._what = client, what
        self._said_at = time.monotonic()

    def result(self, future: Future) -> Any:
        """What a task returns."""
        return next(self.ended([future])).result()

    def ended(self, futures: Iterable[Future]) -> Iterator[Future]:
        """Futures, each as soon as its task has ended in some way."""
        left = set(futures)
        while left:
            with contextlib.suppress(TimeoutError, CancelledError):
                wait(left, timeout=_SECONDS_BETWEEN_LOOKS, return_when="FIRST_COMPLETED")
            done = {future for future in left if future.done()}
            yield from done
            left -= done
            self._look()

    def _look(self) -> None:
        if time.monotonic() - self._said_at < _SECONDS_BETWEEN_WORDS:
            return
        self._said_at = time.monotonic()
        if not self._client.nthreads():
            _log.warning(f"The cluster has no worker: {self._what} wait until one is started.")


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
    return client
