"""Gibbs sampling of binary variables: the step method, its work on the graph and its sweeps."""

from pymc_austerity.gibbs.austerity_gibbs import AusterityGibbs
from pymc_austerity.gibbs.compiled import CompiledSweep
from pymc_austerity.gibbs.gathered import GatheredDifferences, compile_gathered_differences
from pymc_austerity.gibbs.reference import ReferenceSweep
from pymc_austerity.gibbs.sweep import Outcomes, Plan, statistics_of_sweep
from pymc_austerity.gibbs.touching import Touches, touching_rows
from pymc_austerity.gibbs.verify_touching import verify_touching

__all__ = [
    "AusterityGibbs",
    "CompiledSweep",
    "GatheredDifferences",
    "Outcomes",
    "Plan",
    "ReferenceSweep",
    "Touches",
    "compile_gathered_differences",
    "statistics_of_sweep",
    "touching_rows",
    "verify_touching",
]
