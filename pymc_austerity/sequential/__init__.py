"""How a decision is made: from sums and counts, without parameters or models."""

from pymc_austerity.sequential.accept_all import AcceptAll
from pymc_austerity.sequential.audited import Audited, audited
from pymc_austerity.sequential.barker import BarkerTest
from pymc_austerity.sequential.empirical_bernstein import EmpiricalBernsteinTest
from pymc_austerity.sequential.estimates import weight_of_variance
from pymc_austerity.sequential.hoeffding import HoeffdingTest
from pymc_austerity.sequential.logistic_correction import LogisticCorrection, logistic_correction
from pymc_austerity.sequential.moments import Moments
from pymc_austerity.sequential.protocols import (
    BoundOfDifferences,
    Decision,
    DifferenceStream,
    Estimate,
    Evidence,
    SequentialTest,
    StoppingRule,
    Survey,
    TestDescription,
)
from pymc_austerity.sequential.relative import relative_excess
from pymc_austerity.sequential.schedules import Schedule, Tightening
from pymc_austerity.sequential.stopping import StoppingTest, exceeds, log_uniform
from pymc_austerity.sequential.stratified import (
    FirstLook,
    StratifiedStream,
    StratifiedSurvey,
    further_counts,
)
from pymc_austerity.sequential.student_t import StudentTTest
from pymc_austerity.sequential.uniform import UniformSurvey
from pymc_austerity.sequential.user import UserTest, as_test
from pymc_austerity.sequential.wang_tsiatis import WangTsiatisTest

__all__ = [
    "AcceptAll",
    "Audited",
    "BarkerTest",
    "BoundOfDifferences",
    "Decision",
    "DifferenceStream",
    "EmpiricalBernsteinTest",
    "Estimate",
    "Evidence",
    "FirstLook",
    "HoeffdingTest",
    "LogisticCorrection",
    "Moments",
    "Schedule",
    "SequentialTest",
    "StoppingRule",
    "StoppingTest",
    "StratifiedStream",
    "StratifiedSurvey",
    "StudentTTest",
    "Survey",
    "TestDescription",
    "Tightening",
    "UniformSurvey",
    "UserTest",
    "WangTsiatisTest",
    "as_test",
    "audited",
    "exceeds",
    "further_counts",
    "log_uniform",
    "logistic_correction",
    "relative_excess",
    "weight_of_variance",
]
