"""How a decision is made: from sums and counts, without parameters or models."""

from pymc_austerity.sequential.barker import BarkerTest, logistic_correction
from pymc_austerity.sequential.protocols import (
    BoundOfDifferences,
    Decision,
    Estimate,
    Evidence,
    SequentialTest,
    StoppingRule,
    Survey,
    TestDescription,
)
from pymc_austerity.sequential.rules import (
    EmpiricalBernsteinTest,
    HoeffdingTest,
    Schedule,
    StudentTTest,
    Tightening,
    relative_excess,
)
from pymc_austerity.sequential.stopping import (
    AcceptAll,
    StoppingTest,
    as_test,
    audited,
    exceeds,
    log_uniform,
)
from pymc_austerity.sequential.surveys import (
    StratifiedSurvey,
    UniformSurvey,
    further_counts,
    weight_of_variance,
)
