"""Priors that the proposals of this package need and PyMC does not have."""

from pymc_austerity.distributions.inclusion import InclusionIndicators
from pymc_austerity.distributions.spike_and_slab import SpikeAndSlab
from pymc_austerity.distributions.stiefel import UniformStiefel
from pymc_austerity.distributions.support import has_point_masses, on_manifold

__all__ = [
    "InclusionIndicators",
    "SpikeAndSlab",
    "UniformStiefel",
    "has_point_masses",
    "on_manifold",
]
