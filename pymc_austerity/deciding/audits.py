"""Which decisions are checked on all rows, so that checking them stays cheap."""

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

__all__ = ["Audits", "BudgetedAudits", "RandomAudits"]


class Audits(Protocol):
    """Chooses decisions of one chain, whatever they will be."""

    def begin(self, rng: np.random.Generator) -> None:
        """Begin a chain; `rng` is not the one that makes the draws."""
        ...

    def restart(self) -> None:
        """Begin to count anew, where the tuning phase ends."""
        ...

    def wants(self, tuning: bool) -> bool:
        """Whether to check the next decision."""
        ...

    def took(self, seconds: float) -> None:
        """Note what a check has cost."""
        ...


class RandomAudits:
    """Every decision with the same probability.

    Parameters
    ----------
    share : float
        The probability.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self.rng = np.random.default_rng(0)

    def begin(self, rng: np.random.Generator) -> None:
        """Begin a chain."""
        self.rng = rng

    def restart(self) -> None:
        """Nothing is counted."""

    def wants(self, tuning: bool) -> bool:
        """Whether to check the next decision."""
        return self.share > 0.0 and self.rng.random() < self.share

    def took(self, seconds: float) -> None:
        """Cost does not matter."""


class BudgetedAudits:
    """Every decision with a probability such that checks take a share of the sampling time.

    The probability is `share` times the mean time between decisions over the cost of the last
    check, on a clock that stands still during checks. It does not depend on the decision at hand,
    nor, for long, on the one before. The first decision of a chain is checked to learn the
    cost, and no other one while the chain is tuning, because nobody reads what such checks find.

    Parameters
    ----------
    share : float
        Expected time of checks as a share of the time of everything else.
    clock : callable
        Seconds.
    """

    def __init__(self, share: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self.share = share
        self.clock = clock
        self.begin(np.random.default_rng(0))

    def begin(self, rng: np.random.Generator) -> None:
        """Begin a chain."""
        self.rng = rng
        self.cost: float | None = None
        self.restart()

    def restart(self) -> None:
        """Begin to count anew, where the tuning phase ends."""
        self.stood_still = 0.0
        self.started = self.clock()
        self.n_decisions = 0

    def wants(self, tuning: bool) -> bool:
        """Whether to check the next decision."""
        if self.cost is None:
            return True
        self.n_decisions += 1
        if tuning:
            return False
        mean_time = (self.clock() - self.started - self.stood_still) / self.n_decisions
        return self.rng.random() * self.cost < self.share * mean_time

    def took(self, seconds: float) -> None:
        """Note what a check has cost."""
        self.cost = seconds
        self.stood_still += seconds
