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
from pymc_austerity.proposals import CrankNicolson, Langevin, Mixture, RandomWalk
from pymc_austerity.sequential import StudentT
from pymc_austerity.step_methods import AusterityGibbs, AusterityMH

__all__ = [
    "AusterityGibbs",
    "AusterityMH",
    "AusterityWarning",
    "CrankNicolson",
    "DataError",
    "Langevin",
    "Mixture",
    "NotRowwiseError",
    "RandomWalk",
    "SettingError",
    "SettingTypeError",
    "StaleDataError",
    "StudentT",
    "__version__",
]
