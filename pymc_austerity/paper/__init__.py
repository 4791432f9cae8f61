"""What only the papers need: samplers of special variables, on top of the engine.

Binary fields (`AusterityGibbs`), matrices with orthonormal columns, coefficients that can be out of
a model, and Langevin dynamics of stochastic gradients.
"""

from pymc_austerity.paper.gibbs import AusterityGibbs
from pymc_austerity.paper.langevin import LangevinProposal
from pymc_austerity.paper.orthonormal import StiefelProposal, UniformStiefel
from pymc_austerity.paper.selection import InclusionIndicators, ReversibleJumpProposal, SpikeAndSlab

__all__ = [
    "AusterityGibbs",
    "InclusionIndicators",
    "LangevinProposal",
    "ReversibleJumpProposal",
    "SpikeAndSlab",
    "StiefelProposal",
    "UniformStiefel",
]
