"""How a decision is made: from sums and counts, knowing no parameter and no model."""

from pymc_austerity.sequential.decide import decide
from pymc_austerity.sequential.moments import Moments
from pymc_austerity.sequential.protocols import (
    Decision,
    DifferenceStream,
    Evidence,
    StoppingRule,
)
from pymc_austerity.sequential.student_t import StudentT

__all__ = [
    "Decision",
    "DifferenceStream",
    "Evidence",
    "Moments",
    "StoppingRule",
    "StudentT",
    "decide",
]
