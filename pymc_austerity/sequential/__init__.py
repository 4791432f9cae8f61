"""How a decision is made: from sums and counts, knowing no parameter and no model."""

from pymc_austerity.sequential.barker import BarkerTest, LogisticCorrection, logistic_correction
from pymc_austerity.sequential.concentration import (
    Concentration,
    EmpiricalBernsteinTest,
    HoeffdingTest,
)
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
from pymc_austerity.sequential.student_t import StudentTTest
from pymc_austerity.sequential.uniform import UniformSurvey
from pymc_austerity.sequential.wang_tsiatis import WangTsiatisTest

__all__ = [
    "BarkerTest",
    "Concentration",
    "Decision",
    "DifferenceStream",
    "EmpiricalBernsteinTest",
    "Estimate",
    "Evidence",
    "HoeffdingTest",
    "LogisticCorrection",
    "Moments",
    "Schedule",
    "StoppingRule",
    "StratifiedDesign",
    "StratifiedStream",
    "StratifiedSurvey",
    "StudentTTest",
    "Survey",
    "Tightening",
    "UniformSurvey",
    "WangTsiatisTest",
    "decide",
    "logistic_correction",
]
