"""Where the posterior has its mean, as far as a chain can tell."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.proposals.efficiency import Score
from pymc_austerity.proposals.gaussian import GaussianApproximation
from pymc_austerity.proposals.protocols import Outcome

__all__ = ["Center"]

_MARGIN = 2.0
"""Squared distance that is taken for chance, next to the one that is expected."""


@dataclass
class Center:
    """The average of a chain, with as much trust as its number of independent draws deserves.

    Attributes
    ----------
    approximation : GaussianApproximation
        Normal approximation of the posterior, usually about its mode.
    score : Score
        Of all steps.
    total : float array, shape (d,)
        Sum of the points after the steps.
    """

    approximation: GaussianApproximation
    score: Score = field(default_factory=Score)
    total: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.total = np.zeros(self.approximation.mean.size)

    def saw(self, outcome: Outcome) -> None:
        """Count a step."""
        self.total += outcome.following
        self.score.tried(outcome.n_rows_used)
        if outcome.accepted:
            jump = self.approximation.standardize(outcome.following - outcome.previous)
            self.score.moved(float(jump.dot(jump)))

    def discount(self) -> None:
        """Let what was learnt on the way to the posterior count less."""
        self.score.discount()
        self.total *= 0.5

    @property
    def independence(self) -> float:
        """Independent draws that a step is worth, 0 to 1.

        Two independent draws are the square root of ``2 d`` standard deviations apart on average.
        """
        return min(self.score.distance_per_wait / (2.0 * self.total.size), 1.0)

    @property
    def uncertainty(self) -> float:
        """Expected squared distance of the average from the mean, in standard deviations."""
        n_independent = self.score.n_tries * self.independence
        return self.total.size / n_independent if n_independent else np.inf

    def estimate(self) -> GaussianApproximation:
        """The approximation, about the mean if that can be told from where it was.

        The way to the average is shortened by the factor of James and Stein (1961), Estimation with
        quadratic loss. It is not gone at all unless it is longer than chance explains, with a
        margin, as chains that stick are worth fewer independent draws than it seems.
        """
        if not self.uncertainty < np.inf:
            return self.approximation
        way = self.total / self.score.n_tries - self.approximation.mean
        shift = self.approximation.standardize(way)
        squared = float(shift.dot(shift))
        if squared <= _MARGIN * self.uncertainty:
            return self.approximation
        kept = 1.0 - self.uncertainty / squared
        return replace(self.approximation, mean=self.approximation.mean + kept * way)
