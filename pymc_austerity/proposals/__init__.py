"""Proposals: new points and their log-ratios, whatever the likelihood."""

from pymc_austerity.proposals.adaptation import DualAveraging
from pymc_austerity.proposals.hamiltonian import HamiltonianState, SurrogateHamiltonianProposal
from pymc_austerity.proposals.mixture import ProposalMixture
from pymc_austerity.proposals.normal import (
    Conditional,
    CrankNicolsonProposal,
    RandomWalkProposal,
    RandomWalkState,
    RealOrDiscreteProposal,
    conditional,
)
from pymc_austerity.proposals.protocols import (
    Block,
    GaussianApproximation,
    Layout,
    Outcome,
    Proposal,
    ProposalFunction,
    UserProposal,
    as_proposal,
    try_proposal,
)
