"""Decisions of Firefly Monte Carlo, of one chain after the other."""

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.exact import ExactDecider, ExactTest
from pymc_austerity.deciding.settings import FIREFLY
from pymc_austerity.exact import FireflyDecision


class FireflyDecider(ExactDecider):
    """Accepts or rejects proposals given which rows are bright; the posterior is invariant.

    Parameters
    ----------
    settings, target, sampling
        As for `ExactDecider`.

    Attributes
    ----------
    n_bright : int
        Rows that were bright when rows were last read.
    """

    test = ExactTest(FIREFLY)
    n_bright = 0

    def stop_tuning(self) -> str:
        """Nothing was chosen."""
        return ""

    def _on_rows(
        self,
        proposed: NDArray,
        current: NDArray,
        log_known: float,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> FireflyDecision:
        made = self.sampling.decide_by_fireflies(proposed, current, log_known, rng)
        self.n_bright = made.n_bright
        return made
