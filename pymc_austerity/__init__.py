"""MCMC on mini-batches for PyMC models, with a known error of every decision."""

from pymc_austerity._version import __version__
from pymc_austerity.errors import (
    AusterityWarning,
    DataError,
    NotRowwiseError,
    SettingError,
    SettingTypeError,
    StaleDataError,
)
from pymc_austerity.proposals import (
    CrankNicolson,
    Langevin,
    Mixture,
    RandomWalk,
    ReversibleJump,
    StiefelWalk,
)
from pymc_austerity.sequential import (
    BarkerTest,
    EmpiricalBernstein,
    Hoeffding,
    StudentT,
    WangTsiatis,
)
from pymc_austerity.step_methods import AusterityGibbs, AusterityMH

__all__ = [
    "AusterityGibbs",
    "AusterityMH",
    "AusterityWarning",
    "BarkerTest",
    "CrankNicolson",
    "DataError",
    "EmpiricalBernstein",
    "Hoeffding",
    "Langevin",
    "Mixture",
    "NotRowwiseError",
    "RandomWalk",
    "ReversibleJump",
    "SettingError",
    "SettingTypeError",
    "StaleDataError",
    "StiefelWalk",
    "StudentT",
    "WangTsiatis",
    "__version__",
]
