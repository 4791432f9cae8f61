"""Sequential tests by design: how often they err and what they read, computed before a run."""

from pymc_austerity.design.acceptance import acceptance_error
from pymc_austerity.design.bound import total_variation_bound
from pymc_austerity.design.boundaries import Boundary
from pymc_austerity.design.error import (
    OperatingCharacteristic,
    operating_characteristic,
    worst_error,
)
from pymc_austerity.design.expected import expected_error
from pymc_austerity.design.looks import (
    Looks,
    constant_looks,
    doubling_looks,
    effective_shares,
    stratified_looks,
    stratified_spread,
)
from pymc_austerity.design.normality import NormalityCheck, first_look_statistics
from pymc_austerity.design.optimal import average_design, worst_case_design
from pymc_austerity.design.promise import TestDesign
from pymc_austerity.design.search import default_batch_sizes
from pymc_austerity.design.trial import TrialRun

__all__ = [
    "Boundary",
    "Looks",
    "NormalityCheck",
    "OperatingCharacteristic",
    "TestDesign",
    "TrialRun",
    "acceptance_error",
    "average_design",
    "constant_looks",
    "default_batch_sizes",
    "doubling_looks",
    "effective_shares",
    "expected_error",
    "first_look_statistics",
    "operating_characteristic",
    "stratified_looks",
    "stratified_spread",
    "total_variation_bound",
    "worst_case_design",
    "worst_error",
]
