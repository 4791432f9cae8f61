"""What a sampler hands back, and the clock."""

import os
import resource
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


def now() -> float:
    """Seconds of processor time of this process and of compilers that it has started.

    On one core with one thread that is the time on the wall of a machine with nothing else to do;
    other programs do not count. With a graphics processor it is the time on the wall.
    """
    if os.environ.get("JAX_PLATFORMS") == "cuda":
        return time.perf_counter()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def yardstick() -> float:
    """Processor time of some arithmetic that is always the same: the speed of the machine.

    The least of some repetitions, so that other programs on the machine count as little as can be.
    """
    values = np.random.default_rng(1).standard_normal(300_000)
    times = []
    for _ in range(7):
        started = now()
        np.sort(np.exp(values)).cumsum()
        sum(i * i for i in range(200_000))
        times.append(now() - started)
    return min(times)


@dataclass
class Run:
    """One chain of one sampler.

    Attributes
    ----------
    draws : dict of arrays, shape (n_draws, ...)
        Draws after tuning, of every free variable, on its own scale.
    setup_seconds, compile_seconds, tuning_seconds, sampling_seconds : float
        Disjoint parts of the processor time.
    rows_per_evaluation : float
        Rows read for a decision or for a gradient.
    evaluations_per_draw : float
        Decisions or gradients of a draw.
    tuning_share : float
        Share of the tuning steps of the documentation that were made; the seconds are those of all.
    stopped_early : bool
        Whether the time was up before the draws were complete.
    approximate : bool
        Whether the draws are independent ones of an approximation, of which more are no better.
    facts : dict
        Whatever else is worth a note.
    """

    draws: dict[str, NDArray]
    setup_seconds: float
    compile_seconds: float
    tuning_seconds: float
    sampling_seconds: float
    rows_per_evaluation: float
    evaluations_per_draw: float = 1.0
    tuning_share: float = 1.0
    stopped_early: bool = False
    approximate: bool = False
    facts: dict[str, Any] = field(default_factory=dict)


def tuning_share(n_rows: int) -> float:
    """Share of the tuning steps that are made; few where a gradient of all rows takes long."""
    return 1.0 if n_rows < 400_000 else 0.3


class Deadline:
    """Seconds that tuning and sampling may take, from the first look at the clock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.started: float | None = None

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return self.left <= 0.0

    @property
    def left(self) -> float:
        """Seconds left."""
        time_now = now()
        if self.started is None:
            self.started = time_now
        return self.seconds - (time_now - self.started)
