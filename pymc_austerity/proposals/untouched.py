"""Moves of entries on which no row depends, such as the means and scales of a hierarchy."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.proposals.gaussian import GaussianApproximation
from pymc_austerity.proposals.layout import Layout
from pymc_austerity.proposals.protocols import Outcome
from pymc_austerity.proposals.random_walk import RandomWalkProposal, RandomWalkState

__all__ = ["UntouchedMoves"]

_MOVES = 3
"""Random-walk moves at every step: about enough to make a few entries independent in five steps."""


@dataclass(frozen=True, eq=False)
class UntouchedMoves:
    """Metropolis-Hastings given the other entries, on the exact part alone, without reading rows.

    Parameters
    ----------
    entries : int array, shape (u,)
        Positions in the raveled vector of the variables.
    exact_part : callable
        ``f(proposed, current)``: difference of the exact part of the log-density, nats.
    proposal : RandomWalkProposal
        Proposal for the entries.
    """

    entries: NDArray[np.int64]
    exact_part: Callable[[NDArray, NDArray], float]
    proposal: RandomWalkProposal = field(default_factory=RandomWalkProposal)

    def init(self, approximation: GaussianApproximation) -> RandomWalkState:
        """Initial state of a chain, given an approximation of all entries."""
        rows = approximation.root[self.entries]
        root = np.linalg.cholesky(rows @ rows.T).astype(np.float64, copy=False)
        marginal = GaussianApproximation(approximation.mean[self.entries], root)
        return self.proposal.init(Layout.continuous(self.entries.size), marginal)

    def move(
        self, state: RandomWalkState, point: NDArray, rng: np.random.Generator, *, tuning: bool
    ) -> tuple[NDArray, RandomWalkState]:
        """A few moves from a point; the random walk learns while the chain is tuning."""
        for _ in range(_MOVES):
            point, _, state = self.step(state, point, rng, tuning=tuning)
        return point, state

    def step(
        self, state: RandomWalkState, point: NDArray, rng: np.random.Generator, *, tuning: bool
    ) -> tuple[NDArray, bool, RandomWalkState]:
        """One move: where it led, whether it was accepted, and the new state."""
        before = point[self.entries]
        there, _, state = self.proposal.propose(state, before, rng)
        proposed = point.copy()
        proposed[self.entries] = there
        accepted = bool(-rng.standard_exponential() < self.exact_part(proposed, point))
        if accepted:
            point = proposed
        if tuning:
            outcome = Outcome(before, there if accepted else before, accepted, 0)
            state = self.proposal.tune(state, outcome)
        return point, accepted, state

    def freeze(self, state: RandomWalkState) -> RandomWalkState:
        """State at the end of the tuning phase."""
        return self.proposal.freeze(state)
