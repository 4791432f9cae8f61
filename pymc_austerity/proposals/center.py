"""An estimate of the posterior mean from a chain."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.proposals.efficiency import Efficiency
from pymc_austerity.proposals.gaussian import GaussianApproximation
from pymc_austerity.proposals.protocols import Outcome

__all__ = ["Center"]

_MARGIN = 2.0
"""Squared distance that is attributed to chance, relative to the expected one."""


class Center(NamedTuple):
    """The average of a chain, weighted by its number of independent draws.

    Attributes
    ----------
    approximation : GaussianApproximation
        Normal approximation of the posterior, usually about its mode.
    efficiency : Efficiency
        Efficiency of all steps.
    total : float array, shape (d,)
        Sum of the points after the steps.
    """

    approximation: GaussianApproximation
    efficiency: Efficiency
    total: NDArray[np.float64]

    @classmethod
    def begin(cls, approximation: GaussianApproximation) -> "Center":
        """Center of a chain that has not started."""
        return cls(approximation, Efficiency(), np.zeros(approximation.mean.size))

    def after(self, outcome: Outcome) -> "Center":
        """Center after one more step."""
        efficiency, n_rows = self.efficiency, outcome.n_rows_used
        if outcome.accepted:
            jump = self.approximation.standardize(outcome.following - outcome.previous)
            efficiency = efficiency.accepted(n_rows, float(jump.dot(jump)))
        else:
            efficiency = efficiency.rejected(n_rows)
        return Center(self.approximation, efficiency, self.total + outcome.following)

    def discounted(self) -> "Center":
        """Center with half the weight on the steps so far, which precede convergence."""
        return Center(self.approximation, self.efficiency.discounted(), 0.5 * self.total)

    @property
    def independence(self) -> float:
        """Number of independent draws that a step is worth, from 0 to 1.

        Two independent draws are the square root of ``2 d`` standard deviations apart on average.
        """
        return min(self.efficiency.distance_per_wait / (2.0 * self.total.size), 1.0)

    @property
    def uncertainty(self) -> float:
        """Expected squared distance of the average from the mean, in standard deviations."""
        n_independent = self.efficiency.n_tries * self.independence
        return self.total.size / n_independent if n_independent else np.inf

    def estimate(self) -> GaussianApproximation:
        """The approximation, moved to the mean of the chain if that differs from its own.

        The move is shortened by the factor of James and Stein (1961), Estimation with
        quadratic loss. The approximation does not move unless the distance exceeds what chance
        explains, with a margin, because draws of chains that stick are worth less than estimated.
        """
        if not self.uncertainty < np.inf:
            return self.approximation
        way = self.total / self.efficiency.n_tries - self.approximation.mean
        shift = self.approximation.standardize(way)
        squared = float(shift.dot(shift))
        if squared <= _MARGIN * self.uncertainty:
            return self.approximation
        kept = 1.0 - self.uncertainty / squared
        return replace(self.approximation, mean=self.approximation.mean + kept * way)
