"""Sequential tests by design: how often they err and what they read, computed before a run."""

from pymc_austerity.design.error import (
    OperatingCharacteristic,
    expected_characteristic,
    operating_characteristic,
    worst_error,
)
from pymc_austerity.design.looks import (
    Boundary,
    Looks,
    constant_looks,
    doubling_looks,
    effective_shares,
    stratified_looks,
    stratified_spread,
)
from pymc_austerity.design.normality import NormalityCheck, first_look_statistics
from pymc_austerity.design.optimal import (
    TestDesign,
    average_design,
    default_batch_sizes,
    worst_case_design,
)
