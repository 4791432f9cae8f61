"""How a decision is made: from sums and counts, knowing no parameter and no model."""

from pymc_austerity.sequential.barker import BarkerTest, LogisticCorrection, logistic_correction
from pymc_austerity.sequential.concentration import Concentration, EmpiricalBernstein, Hoeffding
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
from pymc_austerity.sequential.schedules import Schedule, Tightening
from pymc_austerity.sequential.stratified import (
    StratifiedDesign,
    StratifiedStream,
    StratifiedSurvey,
)
from pymc_austerity.sequential.student_t import StudentT
from pymc_austerity.sequential.uniform import UniformSurvey
from pymc_austerity.sequential.wang_tsiatis import WangTsiatis

__all__ = [
    "BarkerTest",
    "Concentration",
    "Decision",
    "DifferenceStream",
    "EmpiricalBernstein",
    "Estimate",
    "Evidence",
    "Hoeffding",
    "LogisticCorrection",
    "Moments",
    "Schedule",
    "StoppingRule",
    "StratifiedDesign",
    "StratifiedStream",
    "StratifiedSurvey",
    "StudentT",
    "Survey",
    "Tightening",
    "UniformSurvey",
    "WangTsiatis",
    "decide",
    "logistic_correction",
]
