"""Moves of either the real or the discrete entries of a point, chosen at random."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.proposals.gaussian import GaussianApproximation
from pymc_austerity.proposals.layout import Layout
from pymc_austerity.proposals.protocols import Outcome, Proposal
from pymc_austerity.proposals.random_walk import RandomWalkProposal

__all__ = ["RealOrDiscreteProposal", "RealOrDiscreteState"]


class RealOrDiscreteState(NamedTuple):
    """State of the two proposals.

    Attributes
    ----------
    is_real : bool array, shape (d,)
        Which entries are real numbers.
    real, discrete : object
        States of the two proposals.
    moves_real : bool
        Whether the last proposal moved the real entries.
    """

    is_real: NDArray[np.bool_]
    real: Any
    discrete: Any
    moves_real: bool = True


@dataclass(frozen=True, eq=False)
class RealOrDiscreteProposal:
    """Half of the steps move the real entries, the other half the discrete ones.

    Parameters
    ----------
    of_real : Proposal
        Proposal for the real entries.
    approximation : GaussianApproximation
        Normal approximation of the real entries.
    of_discrete : Proposal
        Proposal for the discrete entries.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.proposals import CrankNicolsonProposal, GaussianApproximation, Layout
    >>> normal = GaussianApproximation(np.zeros(1), np.eye(1))
    >>> proposal = RealOrDiscreteProposal(CrankNicolsonProposal(1.0), normal)
    >>> rng, state = np.random.default_rng(3), proposal.init(Layout(np.array([0, 2])))
    >>> for _ in range(3):
    ...     point, log_ratio, state = proposal.propose(state, np.zeros(2), rng)
    ...     print(point.round(2), round(log_ratio, 2))
    [-2.56  0.  ] 3.27
    [0. 1.] 0.0
    [-2.02  0.  ] 2.04
    """

    of_real: Proposal[Any]
    approximation: GaussianApproximation
    of_discrete: Proposal[Any] = field(default_factory=RandomWalkProposal)

    def init(
        self, layout: Layout, approximation: GaussianApproximation | None = None
    ) -> RealOrDiscreteState:
        """Initial states of the two proposals."""
        is_real = layout.n_categories == 0
        real = self.of_real.init(Layout(layout.n_categories[is_real]), self.approximation)
        discrete = self.of_discrete.init(Layout(layout.n_categories[~is_real]))
        return RealOrDiscreteState(is_real, real, discrete)

    def propose(
        self, state: RealOrDiscreteState, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float, RealOrDiscreteState]:
        """A proposal of one of the two, chosen at random."""
        moves_real = bool(rng.random() < 0.5)
        entries = state.is_real if moves_real else ~state.is_real
        new = point.copy()
        if moves_real:
            new[entries], log_ratio, own = self.of_real.propose(state.real, point[entries], rng)
            return new, log_ratio, state._replace(real=own, moves_real=True)
        new[entries], log_ratio, own = self.of_discrete.propose(state.discrete, point[entries], rng)
        return new, log_ratio, state._replace(discrete=own, moves_real=False)

    def tune(self, state: RealOrDiscreteState, outcome: Outcome) -> RealOrDiscreteState:
        """Tune the proposal that made the move."""
        entries = state.is_real if state.moves_real else ~state.is_real
        part = outcome._replace(
            previous=outcome.previous[entries], following=outcome.following[entries]
        )
        if state.moves_real:
            return state._replace(real=self.of_real.tune(state.real, part))
        return state._replace(discrete=self.of_discrete.tune(state.discrete, part))

    def freeze(self, state: RealOrDiscreteState) -> RealOrDiscreteState:
        """No more learning."""
        real, discrete = self.of_real.freeze(state.real), self.of_discrete.freeze(state.discrete)
        return state._replace(real=real, discrete=discrete)

    def current_scaling(self, state: RealOrDiscreteState) -> float:
        """Size of the last proposal."""
        if state.moves_real:
            return self.of_real.current_scaling(state.real)
        return self.of_discrete.current_scaling(state.discrete)
