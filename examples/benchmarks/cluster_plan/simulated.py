"""Passes on a cluster as discrete events: tasks, readers of one storage, losses, stragglers."""

import heapq
import math
from collections import Counter, deque
from dataclasses import dataclass

import numpy as np

from pymc_austerity.distributed import passes

__all__ = ["Cluster", "Outcome", "Work", "simulated"]


@dataclass(frozen=True)
class Cluster:
    """What is assumed of a cluster.

    Attributes
    ----------
    n_workers : int
        Of one thread each.
    storage, reader, network : float
        Bytes per second: of the storage as a whole, of one worker that reads from it, and of the
        connection of the process that sets up.
    scheduling : float
        Seconds that the scheduler takes for a task, one after the other.
    slow_share, slowdown : float
        Share of tasks that are stragglers, and how many times as long these compute.
    spread : float
        Standard deviation of the log of the workers' speeds.
    hours_between_losses : float
        Of one worker.
    seconds_away : float
        Until a worker that was lost is replaced.
    """

    n_workers: int = 100
    storage: float = 10e9
    reader: float = 1e9
    network: float = 1e9
    scheduling: float = 1e-3
    slow_share: float = 0.005
    slowdown: float = 5.0
    spread: float = 0.1
    hours_between_losses: float = 200.0
    seconds_away: float = 60.0


@dataclass(frozen=True)
class Work:
    """One pass.

    Attributes
    ----------
    n_pieces : int
    read_bytes, evaluation, result_bytes, folding : float
        Of a piece: bytes that are read, seconds of evaluation on a worker, bytes of the result, and
        seconds of taking it in.
    sent_bytes : float
        Of the functions, to each worker.
    """

    n_pieces: int
    read_bytes: float
    evaluation: float
    result_bytes: float
    folding: float
    sent_bytes: float


@dataclass(frozen=True)
class Outcome:
    """What became of a pass.

    Attributes
    ----------
    seconds : float
    n_lost : int
        Tasks that were lost with their workers.
    most_losses : int
        Of one task; Dask gives up after three.
    busy : float
        Share of the workers' time in which they had a task.
    """

    seconds: float
    n_lost: int
    most_losses: int
    busy: float


def simulated(work: Work, cluster: Cluster, rng: np.random.Generator) -> Outcome:
    """Run a pass as `pymc_austerity.distributed.passes` divides it into tasks."""
    n_threads = cluster.n_workers
    sizes, n_left = [], work.n_pieces
    while n_left:
        sizes.append(passes._size_of_task(n_left, n_threads))
        n_left -= sizes[-1]
    return _Pass(work, cluster, sizes, passes._AHEAD * n_threads, rng).run()


class _Pass:
    """The state of a pass; times are seconds from its beginning."""

    def __init__(
        self,
        work: Work,
        cluster: Cluster,
        sizes: list[int],
        most_open: int,
        rng: np.random.Generator,
    ) -> None:
        self.work, self.cluster, self.sizes, self.rng = work, cluster, sizes, rng
        self.most_open = most_open
        # workers hand functions on to each other: the number of those that have them doubles
        rounds = math.ceil(math.log2(cluster.n_workers + 1))
        self.now = work.sent_bytes / cluster.network * rounds
        self.speeds = np.exp(cluster.spread * rng.standard_normal(cluster.n_workers))
        self.idle = deque(range(cluster.n_workers))
        self.again: deque[int] = deque()
        self.n_submitted = self.n_taken = self.n_busy = 0
        self.ready: set[int] = set()
        self.scheduler_free = self.now
        self.is_taking = False
        self.losses: Counter[int] = Counter()
        self.worked = 0.0
        self.events: list[tuple[float, int, str, int, int]] = []
        self.n_events = 0

    def run(self) -> Outcome:
        """Until the last result is taken in."""
        while self.n_taken < len(self.sizes):
            self._hand_out()
            self.now, _, kind, worker, task = heapq.heappop(self.events)
            if kind == "taken":
                self.is_taking = False
                self.n_taken += 1
            elif kind == "back":
                self.idle.append(worker)
            else:
                self.n_busy -= 1
                self._end_of_task(kind, worker, task)
            self._take_in()
        total = self.now * self.cluster.n_workers
        losses = sum(self.losses.values())
        return Outcome(self.now, losses, max(self.losses.values(), default=0), self.worked / total)

    def _end_of_task(self, kind: str, worker: int, task: int) -> None:
        if kind == "done":
            self.ready.add(task)
            self.idle.append(worker)
        else:
            self.losses[task] += 1
            self.again.append(task)
            self._at(self.now + self.cluster.seconds_away, "back", worker)

    def _hand_out(self) -> None:
        while self.idle and (self.again or self._may_submit()):
            if self.again:
                task = self.again.popleft()
            else:
                task, self.n_submitted = self.n_submitted, self.n_submitted + 1
            worker = self.idle.popleft()
            start = max(self.now, self.scheduler_free) + self.cluster.scheduling
            self.scheduler_free = start
            self.n_busy += 1
            seconds = self._seconds_of(task, worker)
            lives = self.rng.exponential(3_600.0 * self.cluster.hours_between_losses)
            self.worked += min(seconds, lives)
            kind = "done" if seconds < lives else "lost"
            self._at(start + min(seconds, lives), kind, worker, task)

    def _may_submit(self) -> bool:
        is_open = self.n_submitted - self.n_taken <= self.most_open
        return is_open and self.n_submitted < len(self.sizes)

    def _seconds_of(self, task: int, worker: int) -> float:
        """The first piece is read, then the next one while the one before is evaluated."""
        cluster, n_pieces = self.cluster, self.sizes[task]
        n_readers = self.n_busy + (len(self.idle) if self._may_submit() else 0)  # in a moment
        rate = min(cluster.reader, cluster.storage / n_readers)
        reading = self.work.read_bytes / rate
        slow = cluster.slowdown if self.rng.random() < cluster.slow_share else 1.0
        evaluation = self.work.evaluation * slow / self.speeds[worker]
        return float(reading + (n_pieces - 1) * max(reading, evaluation) + evaluation)

    def _take_in(self) -> None:
        """Results are taken in one after the other, in the order of the rows."""
        if self.is_taking or self.n_taken not in self.ready:
            return
        self.is_taking = True
        each = self.work.folding + self.work.result_bytes / self.cluster.network
        self._at(self.now + each * self.sizes[self.n_taken], "taken")

    def _at(self, when: float, kind: str, worker: int = -1, task: int = -1) -> None:
        self.n_events += 1
        heapq.heappush(self.events, (when, self.n_events, kind, worker, task))
