"""Coefficients that can be out of a model: their priors, and the moves on them."""

from pymc_austerity.variable_selection.inclusion import InclusionIndicators
from pymc_austerity.variable_selection.reversible_jump import ReversibleJumpProposal
from pymc_austerity.variable_selection.spike_and_slab import SpikeAndSlab
from pymc_austerity.variable_selection.support import (
    has_point_masses,
    refuse_ordinary_moves,
    refuse_without_point_masses,
)

__all__ = [
    "InclusionIndicators",
    "ReversibleJumpProposal",
    "SpikeAndSlab",
    "has_point_masses",
    "refuse_ordinary_moves",
    "refuse_without_point_masses",
]
