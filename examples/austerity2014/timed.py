"""Chains that run for some seconds, with the time and the rows that every draw took.

Seconds are processor time of this process: what else the machine does is not counted.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

__all__ = ["Stopwatch", "TimedRun", "sample_for"]

Floats = NDArray[np.float64]


class Stopwatch:
    """A callback of ``pm.sample`` that notes when draws were done."""

    def __init__(self) -> None:
        self._tuning: dict[int, list[float]] = defaultdict(list)
        self._draws: dict[int, list[float]] = defaultdict(list)

    def __call__(self, trace: Any, draw: Any) -> None:
        """Note the time of a draw."""
        notes = self._tuning if draw.tuning else self._draws
        notes[draw.chain].append(time.process_time())

    @property
    def seconds(self) -> Floats:
        """Seconds from the end of tuning to every draw, shape (chains, draws).

        The first draw is taken to have lasted as long as the others did on average.
        """
        done = np.array([self._draws[chain] for chain in sorted(self._draws)])
        since_first = done - done[:, :1]
        return since_first + since_first[:, -1:] / max(done.shape[1] - 1, 1)

    @property
    def tuning_seconds(self) -> float:
        """Mean over the chains; 0 without tuning."""
        spent = [done[-1] - done[0] for done in self._tuning.values()]
        return float(np.mean(spent)) if spent else 0.0


@dataclass(frozen=True)
class TimedRun:
    """What ``pm.sample`` returned, and what it took.

    Attributes
    ----------
    idata : InferenceData or DataTree
        Draws and statistics.
    seconds : float array, shape (chains, draws)
        From the end of tuning to every draw.
    before : float
        Seconds of set-up and tuning of a chain, before that.
    """

    idata: Any
    seconds: Floats
    before: float = 0.0

    @property
    def rows(self) -> Floats:
        """Rows read up to every draw, shape (chains, draws)."""
        used = self.idata.sample_stats["n_rows_used"].to_numpy()
        return np.cumsum(used, axis=1, dtype=np.float64)

    def draws(self, name: str) -> Floats:
        """Draws of a variable, shape (chains, draws, ...)."""
        values: Floats = self.idata.posterior[name].to_numpy()
        return values

    def joined(self, names: Sequence[str]) -> Floats:
        """Draws of scalars and vectors side by side, shape (chains, draws, entries)."""
        each = [self.draws(name) for name in names]
        return np.concatenate([x.reshape(*x.shape[:2], -1) for x in each], axis=2)


def sample_for(
    seconds: float,
    step: Any,
    starts: Sequence[dict[str, NDArray]],
    *,
    tune: int = 0,
    pilot: int = 200,
    seed: int,
) -> TimedRun:
    """Sample one chain from every start, for about so many seconds each, one after the other.

    Parameters
    ----------
    seconds : float
        Length of every chain, without tuning.
    step : step method
        Of the model on the context stack. It gives ``setup_seconds`` and ``n_rows_used``.
    starts : sequence of dict
        Values of the free variables at the start of every chain.
    tune, pilot : int
        Tuning steps, and draws of the run that finds out how long a draw takes.
    seed : int
        Seed of the run; the pilot has the one before.
    """
    settings: dict[str, Any] = {
        "step": step,
        "tune": tune,
        "cores": 1,
        "progressbar": False,
        "compute_convergence_checks": False,
    }
    watch = Stopwatch()
    first = {"chains": 1, "initvals": starts[:1], "random_seed": seed - 1}
    pm.sample(draws=pilot, callback=watch, **first, **settings)
    draws = max(int(seconds * pilot / watch.seconds[0, -1]), 2)
    watch = Stopwatch()
    every = {"chains": len(starts), "initvals": list(starts), "random_seed": seed}
    idata = pm.sample(draws=draws, callback=watch, **every, **settings)
    return TimedRun(idata, watch.seconds, step.setup_seconds + watch.tuning_seconds)
