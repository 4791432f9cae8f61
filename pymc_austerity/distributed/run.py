"""The chains of one run, where ``pm.sample`` was called."""

import logging
import queue
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

from dask.distributed import Event, KilledWorker

from pymc_austerity._pymc import MCMCProgressBarManager, get_state_from_generator, log_warning_stats
from pymc_austerity.distributed.chain import PROCESS, ChainTask, Draws, run_chain
from pymc_austerity.distributed.clients import Waiting
from pymc_austerity.distributed.parcels import Parcel, pack, rows_of
from pymc_austerity.distributed.progress import ChainProgress
from pymc_austerity.errors import AusterityWarning, SettingError

__all__ = ["ChainsOnWorkers"]

_log = logging.getLogger("pymc.austerity")

_SECONDS_BETWEEN_LOOKS = 0.05
_LARGE = 50_000_000
"""Bytes of a step method that has rows in it; one that has none is far smaller."""

_MOST_LOSSES = 3
"""How often the task of a chain may be canceled; Dask itself runs one again if its worker dies."""


class ChainsOnWorkers:
    """Runs the chains of ``pm.sample`` as tasks, and records what they return.

    Parameters
    ----------
    client : dask.distributed.Client
    blas_threads : int or None
        Of linear algebra, in each worker.
    """

    def __init__(self, client: Any, blas_threads: int | None) -> None:
        self._client = client
        self._blas_threads = blas_threads
        self._name = f"pymc_austerity-{uuid.uuid4().hex}"
        self._beats: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._open: dict[int, Any] = {}
        self._losses: Counter[int] = Counter()
        self._lost: dict[int, str] = {}
        self._sent: Any = None
        self._stopping = False
        self._waiting = Waiting(client, "chains")

    def __call__(
        self, *, step: Any, traces: Sequence[Any], tune: int, draws: int, **of_run: Any
    ) -> None:
        """Replace PyMC's own functions that run chains."""
        _refuse_population(of_run)
        parcel, self._rows = pack(step)
        _warn_if_large(parcel)
        self._traces, self._tune = traces, tune
        each = zip(of_run["rngs"], of_run["start"], strict=True)
        self._tasks = [
            ChainTask(
                run=self._name,
                process=PROCESS,
                number=number,
                parcel=parcel,
                rng=get_state_from_generator(rng),
                start=start,
                draws=draws,
                tune=tune,
                blas_threads=self._blas_threads,
            )
            for number, (rng, start) in enumerate(each)
        ]
        bar = MCMCProgressBarManager(
            step_method=step,
            chains=len(self._tasks),
            draws=draws - tune,
            tune=tune,
            progressbar=of_run.get("progressbar", True),
            progressbar_theme=of_run.get("progressbar_theme"),
        )
        self._stop = Event(self._name, client=self._client)
        self._client.subscribe_topic(self._name, self._hear)
        try:
            with bar:
                self._run(ChainProgress(bar, tune, len(self._tasks)))
        finally:
            self._leave()
        self._say_what_was_lost()

    def _run(self, progress: ChainProgress) -> None:
        for task in self._tasks:
            self._submit(task)
        while self._open:
            try:
                while not self._beats.empty():
                    progress.heard(self._beats.get())
                for number in [n for n, future in self._open.items() if future.done()]:
                    self._collect(number, progress)
                self._waiting.look()
                time.sleep(_SECONDS_BETWEEN_LOOKS)
            except KeyboardInterrupt:
                if self._stopping:
                    return
                self._end_chains()
                _log.info(
                    "Interrupted: chains return the draws that they have; interrupt again to keep "
                    "only those of chains that have returned."
                )

    def _end_chains(self) -> None:
        """Ask chains to return the draws that they have."""
        self._stopping = True
        self._stop.set()

    async def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        self._beats.put(event[1])

    def _submit(self, task: ChainTask) -> None:
        given = [task] if self._sent is None else [task, self._sent]
        key = f"{self._name}-chain-{task.number}-{uuid.uuid4().hex[:8]}"
        self._open[task.number] = self._client.submit(run_chain, *given, key=key, pure=False)

    def _collect(self, number: int, progress: ChainProgress) -> None:
        """Record a chain that has ended, or run it again; an interrupt in between loses nothing."""
        future = self._open[number]
        if future.status in ("cancelled", "lost"):
            self._again(number)
            return
        if future.status == "error":
            self._failed(number, future.exception())
            return
        draws = future.result()
        if draws is None:
            self._send_rows()
            self._submit(self._tasks[number])
            return
        if draws.ended_by and not self._stopping:
            _log.error(f"Sampling ends with the draws so far, because {draws.ended_by}")
            self._end_chains()
        self._record(number, draws)
        progress.ended(number, draws)
        del self._open[number]

    def _again(self, number: int) -> None:
        """Run a task again whose rows are gone, unless the cluster is gone, too."""
        self._losses[number] += 1
        if self._client.status != "running" or self._losses[number] > _MOST_LOSSES:
            self._lost[number] = "its task was canceled, or the cluster is gone"
            del self._open[number]
            return
        self._sent = None
        self._submit(self._tasks[number])

    def _failed(self, number: int, error: BaseException) -> None:
        if not isinstance(error, KilledWorker):
            error.add_note(f"This was chain {number}, on a worker; the other chains were ended.")
            raise error
        self._lost[number] = "every worker that ran it was lost, as when memory runs out"
        del self._open[number]

    def _send_rows(self) -> None:
        """Copy the rows to all workers, so that those that remain have them if one is lost."""
        if self._sent is not None:
            return
        _log.info(
            "Some workers cannot read the rows, which are on this machine: %.1f MB are sent to "
            "each.",
            sum(rows.n_bytes for rows in self._rows) / 1e6,
        )
        (self._sent,) = self._client.scatter([rows_of(self._rows)], broadcast=True, hash=False)

    def _record(self, number: int, draws: Draws) -> None:
        trace = self._traces[number]
        for k in range(len(trace), len(draws.statistics)):
            point = {name: values[k, ...] for name, values in draws.points.items()}
            trace.record(point, draws.statistics[k], in_warmup=k < self._tune)
            log_warning_stats(draws.statistics[k])
        for category, sentence in dict.fromkeys(draws.said):
            warnings.warn(sentence, category, stacklevel=2)

    def _leave(self) -> None:
        for trace in self._traces:
            trace.close()
        if self._client.status == "running":
            self._client.cancel(list(self._open.values()), force=True)
            self._client.unsubscribe_topic(self._name)
            self._stop.clear()

    def _say_what_was_lost(self) -> None:
        if not self._lost:
            return
        chains = "; ".join(f"chain {number}: {why}" for number, why in sorted(self._lost.items()))
        if len(self._lost) == len(self._tasks):
            raise RuntimeError(f"no chain has ended ({chains}): look at the logs of the workers.")
        warnings.warn(
            f"Some chains were lost ({chains}): the draws are those of the others. Look at the "
            "logs of the workers.",
            AusterityWarning,
            stacklevel=2,
        )


def _refuse_population(of_run: dict[str, Any]) -> None:
    if "parallelize" in of_run:
        raise SettingError(
            "a step method whose chains learn from each other, such as DEMetropolis, cannot run "
            "each chain by itself: choose another one, or call pm.sample."
        )


def _warn_if_large(parcel: Parcel) -> None:
    if len(parcel.step) > _LARGE:
        warnings.warn(
            f"The step method is {len(parcel.step) / 1e6:,.0f} MB, which are sent with every "
            "chain: data= that is in memory goes with it, and so do the data of a step method of "
            "PyMC. Give paths of files as data=.",
            AusterityWarning,
            stacklevel=2,
        )
