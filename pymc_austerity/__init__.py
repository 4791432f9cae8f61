"""Metropolis-Hastings on subsets of the rows, for PyMC models with large data."""

from pymc_austerity._version import __version__
from pymc_austerity.errors import (
    AusterityWarning,
    DataError,
    NotRowwiseError,
    SettingError,
    SettingTypeError,
    StaleDataError,
    StorageError,
)
from pymc_austerity.paper import (
    AusterityGibbs,
    LangevinProposal,
    ReversibleJumpProposal,
    StiefelProposal,
)
from pymc_austerity.proposals import (
    CrankNicolsonProposal,
    ProposalMixture,
    RandomWalkProposal,
    SurrogateHamiltonianProposal,
)
from pymc_austerity.sequential import (
    BarkerTest,
    EmpiricalBernsteinTest,
    HoeffdingTest,
    StudentTTest,
    WangTsiatisTest,
)
from pymc_austerity.step_methods import AusterityMH, AusterityStep, FireflyMH, GroupedMH

__all__ = [
    "AusterityGibbs",
    "AusterityMH",
    "AusterityStep",
    "AusterityWarning",
    "BarkerTest",
    "CrankNicolsonProposal",
    "DataError",
    "EmpiricalBernsteinTest",
    "FireflyMH",
    "GroupedMH",
    "HoeffdingTest",
    "LangevinProposal",
    "NotRowwiseError",
    "ProposalMixture",
    "RandomWalkProposal",
    "ReversibleJumpProposal",
    "SettingError",
    "SettingTypeError",
    "StaleDataError",
    "StiefelProposal",
    "StorageError",
    "StudentTTest",
    "SurrogateHamiltonianProposal",
    "WangTsiatisTest",
    "__version__",
]
