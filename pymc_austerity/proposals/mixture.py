"""Several proposals side by side; the one that travels furthest per row read is used most."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import SettingError
from pymc_austerity.proposals.crank_nicolson import CrankNicolson
from pymc_austerity.proposals.gaussian import GaussianApproximation
from pymc_austerity.proposals.layout import Layout
from pymc_austerity.proposals.protocols import Outcome, Proposal
from pymc_austerity.proposals.random_walk import RandomWalk

__all__ = ["Mixture", "MixtureState"]

_FIRST_WINDOW = 50
_SHARE_OF_OTHERS = 0.5
_OVERHEAD_ROWS = 300.0
"""Rows that could be evaluated in the time that a decision takes besides its rows."""


@dataclass
class MixtureState:
    """What a mixture has learnt.

    Attributes
    ----------
    states : list
        State of each component.
    shares : float array, shape (k,)
        Probability of each component.
    chosen : int
        Component that made the last proposal.
    travelled, cost : float arrays, shape (k,)
        Squared jump distances in standard deviations, and rows read, discounted sums.
    """

    states: list[Any]
    shares: NDArray[np.float64]
    travelled: NDArray[np.float64]
    cost: NDArray[np.float64]
    inverse_root: NDArray[np.float64] | None
    chosen: int = 0
    n_steps: int = 0
    window: int = _FIRST_WINDOW
    cumulative: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Mixture:
    """Each step proposes from one of several components, chosen at random.

    While the chain tunes, half of the steps go to the component that has travelled furthest, as
    squared jump distance in units of the normal approximation per row read, and half to all of
    them alike. When tuning ends the best one gets everything but `smallest_share`, which goes to
    the last component: the one that works where the others fail.

    Parameters
    ----------
    components : sequence of proposals
        By default Crank-Nicolson moves of sizes 1, 0.7, 0.4, 0.2 and 0.1, and a `RandomWalk`.
    smallest_share : float
        Share of the last component after tuning.

    Notes
    -----
    A mixture of kernels that leave the posterior invariant does so too; the choice does not depend
    on the point. Jump distance per row read: after Pasarica and Gelman (2010), Adaptively scaling
    the Metropolis algorithm using expected squared jumped distance.
    """

    components: Sequence[Proposal] = (
        CrankNicolson(1.0),
        CrankNicolson(0.7),
        CrankNicolson(0.4),
        CrankNicolson(0.2),
        CrankNicolson(0.1),
        RandomWalk(),
    )
    smallest_share: float = 0.1

    def __post_init__(self) -> None:
        if not self.components:
            raise SettingError("components is empty: give the proposals to choose from.")
        if not 0.0 <= self.smallest_share <= 1.0:
            raise SettingError(
                f"smallest_share={self.smallest_share!r} is not a share: give a number in [0, 1]."
            )

    def init(
        self, layout: Layout, approximation: GaussianApproximation | None = None
    ) -> MixtureState:
        """All components with the same probability."""
        k = len(self.components)
        state = MixtureState(
            states=[component.init(layout, approximation) for component in self.components],
            shares=np.full(k, 1.0 / k),
            travelled=np.zeros(k),
            cost=np.zeros(k),
            inverse_root=None if approximation is None else approximation.inverse_root,
        )
        return _with_shares(state, state.shares)

    def propose(
        self, state: MixtureState, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float]:
        """A proposal of a component chosen at random."""
        uniform, chosen = rng.random(), 0
        while uniform >= state.cumulative[chosen]:
            chosen += 1
        state.chosen = chosen
        return self.components[chosen].propose(state.states[chosen], point, rng)

    def tune(self, state: MixtureState, outcome: Outcome) -> MixtureState:
        """Credit the component that made the proposal; at the end of a window, new shares."""
        chosen = state.chosen
        state.states[chosen] = self.components[chosen].tune(state.states[chosen], outcome)
        state.cost[chosen] += outcome.n_rows_used + _OVERHEAD_ROWS
        if outcome.accepted:
            jump = outcome.following - outcome.previous
            if state.inverse_root is not None:
                jump = state.inverse_root.dot(jump)
            state.travelled[chosen] += float(jump.dot(jump))
        state.n_steps += 1
        if state.n_steps < state.window:
            return state
        state.n_steps, state.window = 0, 2 * state.window
        k = len(self.components)
        shares = np.full(k, _SHARE_OF_OTHERS / k)
        shares[self._best(state)] += 1.0 - _SHARE_OF_OTHERS
        state.travelled *= 0.25  # what was learnt on the way to the posterior counts less
        state.cost *= 0.25
        return _with_shares(state, shares)

    def freeze(self, state: MixtureState) -> MixtureState:
        """The best component, and the last one now and then."""
        state.states = [
            component.freeze(own)
            for component, own in zip(self.components, state.states, strict=True)
        ]
        shares = np.zeros(len(self.components))
        shares[self._best(state)] = 1.0 - self.smallest_share
        shares[-1] += self.smallest_share
        return _with_shares(state, shares)

    def current_scaling(self, state: MixtureState) -> float:
        """Size of the last proposal."""
        return self.components[state.chosen].current_scaling(state.states[state.chosen])

    def _best(self, state: MixtureState) -> int:
        efficiency = state.travelled / np.maximum(state.cost, 1.0)
        return int(np.argmax(efficiency)) if efficiency.any() else len(self.components) - 1


def _with_shares(state: MixtureState, shares: NDArray[np.float64]) -> MixtureState:
    state.shares = shares
    state.cumulative = np.cumsum(shares).tolist()
    state.cumulative[-1] = math.inf  # rounding must not leave a gap
    return state
