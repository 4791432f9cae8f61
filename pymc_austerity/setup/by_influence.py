"""Rows in memory that are sampled by influence."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import (
    differences_of_all,
    influence_of_all,
)
from pymc_austerity.deciding.sampling import StratifiedSampling
from pymc_austerity.rows import ArrayRows, SharedRows, StratifiedWindows
from pymc_austerity.setup.plans import About, Plan
from pymc_austerity.setup.strata import (
    Stratification,
    stratify,
    words_on_strata,
)

__all__ = ["ByInfluence", "by_influence"]

_PAIRS_TO_CHECK = 4


class ByInfluence(NamedTuple):
    """Rows that will be sampled by influence, before they are stored.

    Attributes
    ----------
    about : About
        Their expansion.
    scores : float array, shape (N,)
        Influence of each row, nats.
    stratification : Stratification
        How they are divided, without those that are known as they are.
    """

    about: About
    scores: NDArray[np.float64]
    stratification: Stratification

    @property
    def n_first(self) -> int:
        """Rows of a first look."""
        return self.stratification.strata.n_first

    def plan(self) -> Plan:
        """Store the rows by stratum, and plan to sample them."""
        function, arrays = self.about.residuals.function, self.about.residuals.arrays
        order, strata, n_take_all = self.stratification
        source = SharedRows(arrays, order)
        within = np.split(self.scores[order], np.cumsum(strata.sizes)[:-1])
        deviations = np.sqrt([np.mean(part**2) for part in within])
        sampling = StratifiedSampling(function, StratifiedWindows(source, strata), deviations)
        words = f"{words_on_strata(strata, n_take_all)}."
        return self.about.plan(function, source, sampling, words)


def by_influence(about: About) -> ByInfluence:
    """Measure the influence of the rows, and divide them by it."""
    function, settings = about.residuals.function, about.settings
    rows, pairs = ArrayRows(about.residuals.arrays), about.pilot_pairs()
    scores, _ = influence_of_all(function, pairs, rows)
    checked = [differences_of_all(function, *pair, rows) for pair in pairs[:_PAIRS_TO_CHECK]]
    rng = about.problem.prepared.rng
    if about.kept is None:
        return ByInfluence(about, scores, stratify(scores, checked, settings, rng))
    others = np.delete(np.arange(scores.size), about.kept.which)
    checked = [values[others] for values in checked]
    found = stratify(scores[others], checked, settings, rng)
    return ByInfluence(about, scores, found._replace(order=others[found.order]))
