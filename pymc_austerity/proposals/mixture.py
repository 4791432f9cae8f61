"""Several proposals side by side; the most efficient one is used most."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.arguments import checked_fraction
from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.proposals.crank_nicolson import CrankNicolsonProposal
from pymc_austerity.proposals.efficiency import Efficiency, distances_per_row
from pymc_austerity.proposals.gaussian import GaussianApproximation
from pymc_austerity.proposals.layout import Layout
from pymc_austerity.proposals.protocols import Outcome, Proposal
from pymc_austerity.proposals.random_walk import RandomWalkProposal
from pymc_austerity.proposals.user import as_proposal

__all__ = ["MixtureState", "ProposalMixture"]

_FIRST_WINDOW = 50
_SHARE_OF_OTHERS = 0.5


class MixtureState(NamedTuple):
    """State of a mixture.

    Attributes
    ----------
    states : tuple
        State of each component.
    shares : float array, shape (k,)
        Probability of each component.
    cumulative : tuple of float
        Running sum of `shares`.
    efficiencies : tuple of Efficiency
        Distance travelled and cost of each component.
    inverse_root : float array, shape (d, d), or None
        Converts jumps to units of the normal approximation.
    chosen : int
        Component that made the last proposal.
    n_steps, window : int
        Steps in the current window, and its length.
    """

    states: tuple[Any, ...]
    shares: NDArray[np.float64]
    cumulative: tuple[float, ...]
    efficiencies: tuple[Efficiency, ...]
    inverse_root: NDArray[np.float64] | None
    chosen: int = 0
    n_steps: int = 0
    window: int = _FIRST_WINDOW


@dataclass(frozen=True)
class ProposalMixture:
    """Proposals from several components, one of which is chosen at random for each step.

    During tuning, half of the steps go to the most efficient component, and half are shared equally
    among all components. Efficiency is the squared distance of a component's moves, in units of the
    normal approximation, divided by the wait for a move and by the rows read. The wait is that of a
    randomly chosen step, the mean square of the waits divided by their mean, so that a component
    that is occasionally stuck for long is not mistaken for a fast one; and the rows of a few
    decisions that read very many count for all components, because any of them might have made
    these. When tuning ends, the best component gets all steps except for `smallest_share`, which
    goes to the last component: the one that works where the others fail.

    Parameters
    ----------
    components : sequence of proposals or functions
        By default Crank-Nicolson moves of sizes 1, 0.7, 0.4, 0.2 and 0.1, and a
        `RandomWalkProposal`.
    smallest_share : float
        Share of the last component after tuning.

    Notes
    -----
    A mixture of kernels that leave the posterior invariant leaves it invariant too, because the
    choice does not depend on the point. After Pasarica and Gelman (2010), Adaptively scaling the
    Metropolis algorithm using expected squared jumped distance, whose criterion ignores the waits.
    """

    components: Sequence[Proposal] = (
        CrankNicolsonProposal(1.0),
        CrankNicolsonProposal(0.7),
        CrankNicolsonProposal(0.4),
        CrankNicolsonProposal(0.2),
        CrankNicolsonProposal(0.1),
        RandomWalkProposal(),
    )
    smallest_share: float = 0.1

    def __post_init__(self) -> None:
        if isinstance(self.components, str) or not isinstance(self.components, Sequence):
            raise SettingTypeError(
                f"components of type {type(self.components).__name__} is not a list: give the "
                "proposals to choose from, as in "
                "ProposalMixture([CrankNicolsonProposal(0.5), RandomWalkProposal()])."
            )
        if not self.components:
            raise SettingError("components=[] has nothing to choose from: give some proposals.")
        object.__setattr__(self, "components", tuple(map(as_proposal, self.components)))
        checked_fraction("smallest_share", self.smallest_share, 1.0, "a share")

    def init(
        self, layout: Layout, approximation: GaussianApproximation | None = None
    ) -> MixtureState:
        """All components with the same probability."""
        k = len(self.components)
        shares = np.full(k, 1.0 / k)
        return MixtureState(
            states=tuple(component.init(layout, approximation) for component in self.components),
            shares=shares,
            cumulative=_cumulative(shares),
            efficiencies=(Efficiency(),) * k,
            inverse_root=None if approximation is None else approximation.inverse_root,
        )

    def propose(
        self, state: MixtureState, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float, MixtureState]:
        """A proposal from a component chosen at random."""
        uniform, chosen = rng.random(), 0
        while uniform >= state.cumulative[chosen]:
            chosen += 1
        component, own = self.components[chosen], state.states[chosen]
        new, log_ratio, own = component.propose(own, point, rng)
        states = _with_item(state.states, chosen, own)
        return new, log_ratio, state._replace(states=states, chosen=chosen)

    def tune(self, state: MixtureState, outcome: Outcome) -> MixtureState:
        """Credit the component that made the proposal; at the end of a window, new shares."""
        chosen = state.chosen
        own = self.components[chosen].tune(state.states[chosen], outcome)
        credited = _credited(state.efficiencies[chosen], outcome, state.inverse_root)
        state = state._replace(
            states=_with_item(state.states, chosen, own),
            efficiencies=_with_item(state.efficiencies, chosen, credited),
            n_steps=state.n_steps + 1,
        )
        return state if state.n_steps < state.window else self._next_window(state)

    def _next_window(self, state: MixtureState) -> MixtureState:
        k = len(self.components)
        shares = np.full(k, _SHARE_OF_OTHERS / k)
        shares[self._best(state)] += 1.0 - _SHARE_OF_OTHERS
        return state._replace(
            shares=shares,
            cumulative=_cumulative(shares),
            efficiencies=tuple(efficiency.discounted() for efficiency in state.efficiencies),
            n_steps=0,
            window=2 * state.window,
        )

    def freeze(self, state: MixtureState) -> MixtureState:
        """State that uses the best component, and the last one now and then."""
        pairs = zip(self.components, state.states, strict=True)
        states = tuple(component.freeze(own) for component, own in pairs)
        shares = np.zeros(len(self.components))
        shares[self._best(state)] = 1.0 - self.smallest_share
        shares[-1] += self.smallest_share
        return state._replace(states=states, shares=shares, cumulative=_cumulative(shares))

    def current_scaling(self, state: MixtureState) -> float:
        """Size of the last proposal."""
        return self.components[state.chosen].current_scaling(state.states[state.chosen])

    def _best(self, state: MixtureState) -> int:
        gains = distances_per_row(state.efficiencies)
        return int(np.argmax(gains)) if any(gains) else len(self.components) - 1


def _credited(
    efficiency: Efficiency, outcome: Outcome, inverse_root: NDArray[np.float64] | None
) -> Efficiency:
    if not outcome.accepted:
        return efficiency.rejected(outcome.n_rows_used)
    jump = outcome.following - outcome.previous
    if inverse_root is not None:
        jump = inverse_root.dot(jump)
    return efficiency.accepted(outcome.n_rows_used, float(jump.dot(jump)))


def _with_item(items: tuple[Any, ...], place: int, item: Any) -> tuple[Any, ...]:
    return (*items[:place], item, *items[place + 1 :])


def _cumulative(shares: NDArray[np.float64]) -> tuple[float, ...]:
    return (*np.cumsum(shares)[:-1].tolist(), math.inf)  # rounding must not leave a gap
