"""Metropolis-Hastings on subsets of the rows, for PyMC models with large data."""

from importlib.metadata import PackageNotFoundError, version

from pymc_austerity.diagnostics import report
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
)
from pymc_austerity.sources import Columns
from pymc_austerity.step_methods import AusterityMH, FireflyMH, GroupedMH, Options

try:
    __version__ = version("pymc-austerity")
except PackageNotFoundError:  # imported from a folder in which it was never installed
    __version__ = "0.0.0"

__all__ = [
    "AusterityGibbs",
    "AusterityMH",
    "AusterityWarning",
    "BarkerTest",
    "Columns",
    "CrankNicolsonProposal",
    "DataError",
    "EmpiricalBernsteinTest",
    "FireflyMH",
    "GroupedMH",
    "HoeffdingTest",
    "LangevinProposal",
    "NotRowwiseError",
    "Options",
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
    "__version__",
    "report",
]
