"""Proposals: new points and their log-ratios, whatever the likelihood."""

from pymc_austerity.proposals.adaptation import DualAveraging
from pymc_austerity.proposals.crank_nicolson import (
    Conditional,
    ConditionalProposal,
    ConditionalState,
    CrankNicolsonProposal,
    conditional,
)
from pymc_austerity.proposals.hamiltonian import (
    HamiltonianState,
    Surrogate,
    SurrogateHamiltonianProposal,
)
from pymc_austerity.proposals.mixture import Center, MixtureState, ProposalMixture
from pymc_austerity.proposals.protocols import (
    Block,
    GaussianApproximation,
    GradientProposal,
    Gradients,
    Layout,
    Outcome,
    Proposal,
    ProposalFunction,
    UserProposal,
    as_proposal,
    try_proposal,
)
from pymc_austerity.proposals.random_walk import (
    RandomWalkProposal,
    RandomWalkState,
    RealOrDiscreteProposal,
    RealOrDiscreteState,
)

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
