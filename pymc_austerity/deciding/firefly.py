"""Decisions of Firefly Monte Carlo, of one chain after the other."""

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.decider import IMPOSSIBLE
from pymc_austerity.deciding.exact import ExactDecider
from pymc_austerity.deciding.settings import FIREFLY
from pymc_austerity.sequential import Decision, TestDescription

__all__ = ["FireflyDecider"]


class FireflyTest:
    """Stands for fireflies where a sequential test has its name and settings."""

    description: ClassVar[TestDescription] = FIREFLY

    def __repr__(self) -> str:
        return "FireflyTest()"


class FireflyDecider(ExactDecider):
    """Accepts or rejects proposals given which rows are bright; the posterior is invariant.

    Parameters
    ----------
    settings, target, sampling
        As for `ExactDecider`.

    Attributes
    ----------
    n_bright : int
        Rows that were bright at the last decision.
    """

    test = FireflyTest()
    n_bright = 0

    def stop_tuning(self) -> str:
        """Nothing was chosen."""
        return ""

    def decide(
        self,
        proposed: NDArray,
        current: NDArray,
        log_ratio: float,
        rng: np.random.Generator,
        *,
        tuning: bool = False,
    ) -> Decision:
        """Accept or reject a proposal: see `ExactDecider.decide`."""
        self.n_bright = 0
        log_known = log_ratio + self.target.exact_part(proposed, current)
        if not math.isfinite(log_known):
            return IMPOSSIBLE
        log_known += self.target.expansion(proposed, current)
        made = self.sampling.decide_by_fireflies(proposed, current, log_known, rng)
        self.n_bright = made.n_bright
        return Decision(made.accept, made.n_rows_used, 1, 0.0, math.nan, True)
