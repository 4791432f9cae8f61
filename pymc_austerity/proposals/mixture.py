"""Several proposals side by side; the most efficient one is used most."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import SettingError
from pymc_austerity.proposals.center import Center
from pymc_austerity.proposals.crank_nicolson import CrankNicolson
from pymc_austerity.proposals.gaussian import GaussianApproximation
from pymc_austerity.proposals.layout import Layout
from pymc_austerity.proposals.protocols import Outcome, Proposal
from pymc_austerity.proposals.random_walk import RandomWalk
from pymc_austerity.proposals.score import Score

__all__ = ["Mixture", "MixtureState"]

_FIRST_WINDOW = 50
_SHARE_OF_OTHERS = 0.5


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
    scores : list of Score
        How far each component has come and what that cost.
    center : Center or None
        Of the Crank-Nicolson moves; None without a normal approximation.
    n_steps, window : int
        Steps in the current window, and its length.
    cumulative : list of float
        Running sum of `shares`.
    """

    states: list[Any]
    shares: NDArray[np.float64]
    scores: list[Score]
    center: Center | None
    chosen: int = 0
    n_steps: int = 0
    window: int = _FIRST_WINDOW
    cumulative: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Mixture:
    """Each step proposes from one of several components, chosen at random.

    While the chain tunes, half of the steps go to the most efficient component and half to all of
    them alike. Efficiency is the squared distance of its moves, in units of the normal
    approximation, over the wait for a move and over the rows read. The wait is the one that a
    randomly chosen step finds itself in, the mean square of the waits over their mean, so that a
    component that is stuck now and then for long is not mistaken for a fast one. When tuning ends
    the best one gets everything but `smallest_share`, which goes to the last component: the one
    that works where the others fail.

    Crank-Nicolson moves are made about the mean of the posterior, as far as the tuning phase can
    tell it from the mode: in skewed posteriors many more of them are accepted there.

    Parameters
    ----------
    components : sequence of proposals
        By default Crank-Nicolson moves of sizes 1, 0.7, 0.4, 0.2 and 0.1, and a `RandomWalk`.
    smallest_share : float
        Share of the last component after tuning.

    Notes
    -----
    A mixture of kernels that leave the posterior invariant does so too; the choice does not depend
    on the point. After Pasarica and Gelman (2010), Adaptively scaling the Metropolis algorithm
    using expected squared jumped distance, whose criterion does not see the waits.
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
            scores=[Score() for _ in self.components],
            center=None if approximation is None else Center(approximation),
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
        score, center = state.scores[chosen], state.center
        score.tried(outcome.n_rows_used)
        squared = 0.0
        if outcome.accepted:
            jump = outcome.following - outcome.previous
            if center is not None:
                jump = center.approximation.standardize(jump)
            squared = float(jump.dot(jump))
            score.moved(squared)
        if center is not None:
            center.saw(outcome, squared)
        state.n_steps += 1
        if state.n_steps < state.window:
            return state
        state.n_steps, state.window = 0, 2 * state.window
        k = len(self.components)
        shares = np.full(k, _SHARE_OF_OTHERS / k)
        shares[self._best(state)] += 1.0 - _SHARE_OF_OTHERS
        self._recenter(state)
        for score in state.scores:
            score.discount()
        if center is not None:
            center.discount()
        return _with_shares(state, shares)

    def _recenter(self, state: MixtureState) -> None:
        """Crank-Nicolson moves about where the chain has found the mean to be."""
        if state.center is None:
            return
        approximation = state.center.estimate()
        for i, component in enumerate(self.components):
            if isinstance(component, CrankNicolson):
                state.states[i] = approximation

    def freeze(self, state: MixtureState) -> MixtureState:
        """The best component, and the last one now and then."""
        self._recenter(state)
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
        efficiency = [score.efficiency for score in state.scores]
        return int(np.argmax(efficiency)) if any(efficiency) else len(self.components) - 1


def _with_shares(state: MixtureState, shares: NDArray[np.float64]) -> MixtureState:
    state.shares = shares
    state.cumulative = np.cumsum(shares).tolist()
    state.cumulative[-1] = math.inf  # rounding must not leave a gap
    return state
