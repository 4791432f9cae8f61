"""Tests whose error is bounded for rows of any distribution, if the bound on the rows is right."""

import math
from dataclasses import dataclass
from functools import cached_property

from pymc_austerity.arguments import checked_number, checked_rate
from pymc_austerity.sequential.protocols import BoundOfDifferences, Evidence, TestDescription
from pymc_austerity.sequential.stopping import StoppingTest

__all__ = ["ConcentrationTest"]


@dataclass(frozen=True)
class ConcentrationTest(StoppingTest):
    """Common part of tests by inequalities: their bound, and the division of the error among looks.

    A bound that is a function of two points is evaluated when a survey begins, and the survey
    passes the number on with the evidence.
    """

    largest_difference: BoundOfDifferences
    error_prob: float = 0.05

    def __post_init__(self) -> None:
        if not callable(self.largest_difference):
            checked_number(
                "largest_difference",
                self.largest_difference,
                lambda bound: 0.0 < bound < math.inf,
                "a bound of differences",
                "a positive number of nats, or a function of two points that returns one",
            )
        checked_rate("error_prob", self.error_prob, "the probability of an error")

    @cached_property
    def description(self) -> TestDescription:
        """Properties that the rest of the package uses; batches double, so there are few looks."""
        name = type(self).__name__
        return TestDescription(
            name=name,
            summary=f"{name} with epsilon={self.error_prob:g}",
            assumption="bounded differences",
            epsilon=self.error_prob,
            growth=2.0,
            largest_difference=self.largest_difference,
        )

    @property
    def epsilon(self) -> float:
        """Largest probability of a wrong decision."""
        return self.error_prob

    def bound_of(self, evidence: Evidence) -> float:
        """Bound on the absolute difference of a row, nats."""
        bound = self.largest_difference
        return evidence.largest_difference if callable(bound) else bound

    def stops(self, evidence: Evidence) -> bool:
        """Whether the distance from the threshold is beyond what the inequality allows for."""
        return self.error(evidence) < self.share_of_error(evidence.n_looks)

    def share_of_error(self, look: int) -> float:
        r"""Error allowed at a look, :math:`\delta_k`; all looks together have at most the whole."""
        return 0.5 / look**2 * self.error_prob
