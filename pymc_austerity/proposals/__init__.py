"""Proposals: new points and their log-ratios, whatever the likelihood."""

from pymc_austerity.proposals.center import Center
from pymc_austerity.proposals.conditional import (
    Conditional,
    ConditionalProposal,
    ConditionalState,
    conditional,
)
from pymc_austerity.proposals.crank_nicolson import CrankNicolsonProposal
from pymc_austerity.proposals.dual_averaging import DualAveraging
from pymc_austerity.proposals.gaussian import GaussianApproximation
from pymc_austerity.proposals.hamiltonian import (
    HamiltonianState,
    Surrogate,
    SurrogateHamiltonianProposal,
)
from pymc_austerity.proposals.layout import Block, Layout
from pymc_austerity.proposals.mixture import MixtureState, ProposalMixture
from pymc_austerity.proposals.protocols import (
    GradientProposal,
    Gradients,
    Outcome,
    Proposal,
    ProposalFunction,
)
from pymc_austerity.proposals.random_walk import RandomWalkProposal, RandomWalkState
from pymc_austerity.proposals.real_or_discrete import (
    RealOrDiscreteProposal,
    RealOrDiscreteState,
)
from pymc_austerity.proposals.user import UserProposal, as_proposal, try_proposal

__all__ = [
    "Block",
    "Center",
    "Conditional",
    "ConditionalProposal",
    "ConditionalState",
    "CrankNicolsonProposal",
    "DualAveraging",
    "GaussianApproximation",
    "GradientProposal",
    "Gradients",
    "HamiltonianState",
    "Layout",
    "MixtureState",
    "Outcome",
    "Proposal",
    "ProposalFunction",
    "ProposalMixture",
    "RandomWalkProposal",
    "RandomWalkState",
    "RealOrDiscreteProposal",
    "RealOrDiscreteState",
    "Surrogate",
    "SurrogateHamiltonianProposal",
    "UserProposal",
    "as_proposal",
    "conditional",
    "try_proposal",
]
