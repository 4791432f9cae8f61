"""One chain, on a worker."""

import os
import pickle
import threading
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.distributed import Event, get_worker
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from pymc_austerity._pymc import (
    RandomGeneratorState,
    iterate_chain,
    random_generator_from_state,
)
from pymc_austerity.distributed.parcels import Parcel, RowsElsewhereError, unpack
from pymc_austerity.errors import StorageError
from pymc_austerity.rows import Block
from pymc_austerity.step_methods.interrupts import errors_are_raised

__all__ = ["PROCESS", "Beat", "ChainTask", "Draws", "run_chain"]

PROCESS = (uuid.uuid4().hex, os.getpid())
"""Identifies this process among those of all machines."""

_SECONDS_BETWEEN_BEATS = 0.5

# Compilation, filters of warnings and limits of threads belong to the process as a whole.
_one_chain = threading.Lock()


@dataclass(frozen=True)
class ChainTask:
    """All that decides the draws of a chain.

    Attributes
    ----------
    run : str
        Name of the run: topic of the beats, and of the event that asks chains to stop.
    process : tuple of str and int
        The one that collects the draws.
    number : int
        Of the chain.
    parcel : Parcel
        The step method.
    rng : RandomGeneratorState
        With the seeds that it was spawned from.
    start : dict of arrays
    draws, tune : int
        Draws in all, and how many of them tune.
    blas_threads : int or None
        None sets no limit.
    """

    run: str
    process: tuple[str, int]
    number: int
    parcel: Parcel
    rng: RandomGeneratorState
    start: dict[str, Any]
    draws: int
    tune: int
    blas_threads: int | None


@dataclass
class Draws:
    """Draws of one chain, recorded as PyMC's loop wants it.

    Attributes
    ----------
    points : dict of arrays, shape (draws, ...)
        Values of all variables, transformed.
    statistics : list of lists of dict
        For each draw those of each step method.
    said : list of pairs of type and str
        Warnings.
    ended_by : str
        Why there are no more draws, after an error that ends all chains.
    """

    points: dict[str, NDArray]
    statistics: list[list[dict[str, Any]]]
    said: list[tuple[type[Warning], str]]
    ended_by: str = ""

    @classmethod
    def none(cls) -> "Draws":
        """Room for no draw."""
        return cls({}, [], [])

    @classmethod
    def room(cls, n_draws: int, start: Mapping[str, Any]) -> "Draws":
        """Room for draws like the starting point."""
        values = {name: np.asarray(value) for name, value in start.items()}
        points = {name: np.empty((n_draws, *v.shape), v.dtype) for name, v in values.items()}
        return cls(points, [], [])

    def record(self, point: dict[str, Any], statistics: Any, *, in_warmup: bool) -> None:
        """Store a draw."""
        for name, values in self.points.items():
            values[len(self.statistics)] = point[name]
        self.statistics.append(statistics)

    def close(self) -> None:
        """Leave out the room that was not used."""
        self.points = {name: v[: len(self.statistics)] for name, v in self.points.items()}


class Beat:
    """Regular messages of a chain: how far it is, and whether it has to stop.

    Parameters
    ----------
    task : ChainTask
    """

    def __init__(self, task: ChainTask) -> None:
        self._task = task
        self._worker = get_worker()
        self._stop = Event(task.run)
        self._last = time.monotonic()

    def asked_to_stop(self) -> bool:
        """Whether the run is to end."""
        return bool(self._stop.is_set())

    def at(self, n_draws: int, statistics: list[dict[str, Any]]) -> bool:
        """Whether to stop after so many draws."""
        now = time.monotonic()
        if now - self._last < _SECONDS_BETWEEN_BEATS and n_draws > 1:
            return False
        self._last = now
        message = {"chain": self._task.number, "n_draws": n_draws}
        self._worker.log_event(self._task.run, message | {"statistics": pickle.dumps(statistics)})
        return self.asked_to_stop()


def run_chain(task: ChainTask, sent: Mapping[str, Block] | None = None) -> Draws | None:
    """Run a chain from its beginning.

    Parameters
    ----------
    task : ChainTask
        The same task gives the same draws, on any worker.
    sent : mapping from folders to blocks of rows, optional
        Rows, for workers on machines that do not have them.

    Returns
    -------
    Draws or None
        None where the rows are needed and were not sent.
    """
    beat = Beat(task)
    while not _one_chain.acquire(timeout=_SECONDS_BETWEEN_BEATS):
        if beat.asked_to_stop():
            return Draws.none()
    try:
        with threadpool_limits(task.blas_threads), _warnings_kept(task) as said:
            draws = _drawn(task, sent or {}, beat)
    except RowsElsewhereError:
        if sent is not None:
            raise
        return None
    finally:
        _one_chain.release()
    draws.said = [(warning.category, str(warning.message)) for warning in said]
    return draws


@contextmanager
def _warnings_kept(task: ChainTask) -> Iterator[list[warnings.WarningMessage]]:
    """Keep the warnings for the process that collects the draws; there they are raised as usual."""
    if task.process == PROCESS:
        yield []
        return
    with warnings.catch_warnings(record=True) as said:
        yield said


def _drawn(task: ChainTask, sent: Mapping[str, Block], beat: Beat) -> Draws:
    if beat.asked_to_stop():
        return Draws.none()
    draws = Draws.room(task.draws, task.start)
    loop = iterate_chain(
        step=unpack(task.parcel, sent),
        draws=task.draws,
        tune=task.tune,
        start=task.start,
        rng=random_generator_from_state(task.rng),
        chain=task.number,
        trace=draws,
    )
    try:
        with closing(loop), errors_are_raised():
            for number, statistics in enumerate(loop, start=1):
                if beat.at(number, statistics):
                    break
    except StorageError as error:
        draws.ended_by = str(error)
        draws.close()
    return draws
