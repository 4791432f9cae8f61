"""Chains of so many draws, with the time and the rows that every draw took.

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

    @property
    def steps_per_draw(self) -> int:
        """Transitions between two draws."""
        return int(self.idata.sample_stats.attrs["steps_per_draw"])

    def draws(self, name: str) -> Floats:
        """Draws of a variable, shape (chains, draws, ...)."""
        values: Floats = self.idata.posterior[name].to_numpy()
        return values

    def joined(self, names: Sequence[str]) -> Floats:
        """Draws of scalars and vectors side by side, shape (chains, draws, entries)."""
        each = [self.draws(name) for name in names]
        return np.concatenate([x.reshape(*x.shape[:2], -1) for x in each], axis=2)


_SETTINGS: dict[str, Any] = {
    "cores": 1,
    "progressbar": False,
    "compute_convergence_checks": False,
}


def sample_chain(
    n_draws: int,
    step: Any,
    start: dict[str, NDArray] | None,
    *,
    seed: int,
    tune: int = 0,
    setup_seconds: float = 0.0,
) -> TimedRun:
    """Sample one chain.

    Parameters
    ----------
    n_draws : int
        Draws after tuning.
    step : step method
        Of the model on the context stack. It gives ``n_rows_used``.
    start : dict or None
        Values of the free variables at the start; None for the start of the step method.
    seed : int
        Seed of the chain.
    tune : int
        Tuning steps.
    setup_seconds : float
        Processor time that the step method took to set up.
    """
    watch = Stopwatch()
    idata = pm.sample(
        step=step,
        tune=tune,
        draws=n_draws,
        chains=1,
        initvals=start,
        random_seed=seed,
        callback=watch,
        **_SETTINGS,
    )
    return TimedRun(idata, watch.seconds, setup_seconds + watch.tuning_seconds)
