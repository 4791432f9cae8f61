"""Sequential tests by design: how often they err and what they read, before they are run."""

from pymc_austerity.design.boundaries import Boundary
from pymc_austerity.design.error import (
    OperatingCharacteristic,
    operating_characteristic,
    worst_error,
)
from pymc_austerity.design.looks import (
    Looks,
    constant_looks,
    doubling_looks,
    effective_shares,
)

__all__ = [
    "Boundary",
    "Looks",
    "OperatingCharacteristic",
    "constant_looks",
    "doubling_looks",
    "effective_shares",
    "operating_characteristic",
    "worst_error",
]
