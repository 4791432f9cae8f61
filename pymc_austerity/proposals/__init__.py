"""Where to go next: new points and their log-ratios, knowing no likelihood."""

from pymc_austerity.proposals.layout import Layout
from pymc_austerity.proposals.protocols import Proposal, ProposalFunction
from pymc_austerity.proposals.random_walk import RandomWalk, RandomWalkState
from pymc_austerity.proposals.user import UserProposal

__all__ = [
    "Layout",
    "Proposal",
    "ProposalFunction",
    "RandomWalk",
    "RandomWalkState",
    "UserProposal",
]
