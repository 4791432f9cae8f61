"""How a decision is made: from sums and counts, knowing no parameter and no model."""

from pymc_austerity.sequential.decide import decide
from pymc_austerity.sequential.moments import Moments
from pymc_austerity.sequential.protocols import (
    Decision,
    DifferenceStream,
    Estimate,
    Evidence,
    StoppingRule,
    Survey,
)
from pymc_austerity.sequential.stratified import (
    StratifiedDesign,
    StratifiedStream,
    StratifiedSurvey,
)
from pymc_austerity.sequential.student_t import StudentT
from pymc_austerity.sequential.uniform import UniformSurvey

__all__ = [
    "Decision",
    "DifferenceStream",
    "Estimate",
    "Evidence",
    "Moments",
    "StoppingRule",
    "StratifiedDesign",
    "StratifiedStream",
    "StratifiedSurvey",
    "StudentT",
    "Survey",
    "UniformSurvey",
    "decide",
]
