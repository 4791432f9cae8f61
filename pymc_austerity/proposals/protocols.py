"""The contract of a proposal: settings in the object, everything that changes in its state."""

from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.proposals.layout import Layout

__all__ = ["Proposal", "ProposalFunction"]

State = TypeVar("State")


class ProposalFunction(Protocol):
    """The simplest proposal: a function, which never adapts.

    Takes the current point (array, shape ``(d,)``: the variables of the step method in
    unconstrained space, raveled and joined) and a random generator; returns a new array of the
    same shape and the log-ratio ``log q(current | new) - log q(new | current)`` in nats, which is
    0 for a symmetric proposal.
    """

    def __call__(self, point: NDArray, rng: np.random.Generator, /) -> tuple[NDArray, float]:
        """Propose a new point."""
        ...


class Proposal(Protocol[State]):
    """A proposal that may adapt while the chain is tuning.

    The object holds the settings and never changes, so that chains can share it; what the next
    step needs is in a state that the step method keeps, copies and pickles for it.
    """

    def init(self, layout: Layout) -> State:
        """State of a chain that begins."""
        ...

    def propose(
        self, state: State, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float]:
        """New point, and ``log q(point | new) - log q(new | point)`` in nats."""
        ...

    def tune(self, state: State, point: NDArray, accepted: bool) -> State:
        """State after a decision of the tuning phase; `point` is where the chain is now."""
        ...

    def freeze(self, state: State) -> State:
        """State in which the tuning phase ends and nothing changes any more."""
        ...

    def current_scaling(self, state: State) -> float:
        """Size of the proposal as one number, for the statistics; NaN if it has none."""
        ...
