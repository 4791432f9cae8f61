"""Sweeps over binary variables: which factors an entry has, and how its updates are decided."""

from pymc_austerity.step_methods.gibbs.checks import checked_binary_variables
from pymc_austerity.step_methods.gibbs.compiled import CompiledSweep
from pymc_austerity.step_methods.gibbs.factors import Factors, find_factors
from pymc_austerity.step_methods.gibbs.reference import ReferenceSweep
from pymc_austerity.step_methods.gibbs.starting import flipped_at_random
from pymc_austerity.step_methods.gibbs.sweep import Outcomes, Plan, Sweep, statistics_of_sweep

__all__ = [
    "CompiledSweep",
    "Factors",
    "Outcomes",
    "Plan",
    "ReferenceSweep",
    "Sweep",
    "checked_binary_variables",
    "find_factors",
    "flipped_at_random",
    "statistics_of_sweep",
]
