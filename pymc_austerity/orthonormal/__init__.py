"""Matrices with orthonormal columns: their prior, their moves, and checks of other moves."""

from pymc_austerity.orthonormal.rotations import StiefelProposal
from pymc_austerity.orthonormal.support import on_manifold, refuse_ordinary_moves
from pymc_austerity.orthonormal.uniform import UniformStiefel

__all__ = ["StiefelProposal", "UniformStiefel", "on_manifold", "refuse_ordinary_moves"]
