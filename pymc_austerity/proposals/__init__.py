"""Where to go next: new points and their log-ratios, knowing no likelihood."""

from pymc_austerity.proposals.center import Center
from pymc_austerity.proposals.crank_nicolson import CrankNicolson
from pymc_austerity.proposals.gaussian import GaussianApproximation
from pymc_austerity.proposals.langevin import Langevin, LangevinState
from pymc_austerity.proposals.layout import Block, Layout
from pymc_austerity.proposals.mixture import Mixture, MixtureState
from pymc_austerity.proposals.protocols import (
    GradientProposal,
    Gradients,
    Outcome,
    Proposal,
    ProposalFunction,
)
from pymc_austerity.proposals.random_walk import RandomWalk, RandomWalkState
from pymc_austerity.proposals.reversible_jump import ReversibleJump
from pymc_austerity.proposals.stiefel import StiefelWalk
from pymc_austerity.proposals.user import UserProposal

__all__ = [
    "Block",
    "Center",
    "CrankNicolson",
    "GaussianApproximation",
    "GradientProposal",
    "Gradients",
    "Langevin",
    "LangevinState",
    "Layout",
    "Mixture",
    "MixtureState",
    "Outcome",
    "Proposal",
    "ProposalFunction",
    "RandomWalk",
    "RandomWalkState",
    "ReversibleJump",
    "StiefelWalk",
    "UserProposal",
]
