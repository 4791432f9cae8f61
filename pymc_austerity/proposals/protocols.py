"""The contract of a proposal: settings in the object, everything that changes in its state."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.proposals.gaussian import GaussianApproximation
from pymc_austerity.proposals.layout import Layout

__all__ = ["GradientProposal", "Gradients", "Outcome", "Proposal", "ProposalFunction"]

State = TypeVar("State")


class Outcome(NamedTuple):
    """The result of a proposal.

    Attributes
    ----------
    previous, following : arrays, shape (d,)
        Where the chain was and where it is now.
    accepted : bool
        Whether it moved.
    n_rows_used : int
        Rows that the decision read.
    """

    previous: NDArray
    following: NDArray
    accepted: bool
    n_rows_used: int


class ProposalFunction(Protocol):
    """The simplest proposal: a function, which never adapts.

    It takes the current point (array, shape ``(d,)``: the variables of the step method in
    unconstrained space, raveled and joined) and a random generator; it returns a new array of the
    same shape and the log-ratio ``log q(current | new) - log q(new | current)`` in nats, which is
    0 for a symmetric proposal.
    """

    def __call__(self, point: NDArray, rng: np.random.Generator, /) -> tuple[NDArray, float]:
        """Propose a new point."""
        ...


class Proposal(Protocol[State]):
    """A proposal that may adapt while the chain is tuning.

    The object holds the settings and is immutable, so that chains can share it. Everything that
    changes is in a state, which is immutable too: methods take a state and return a new one, and
    the step method keeps and pickles the latest.

    Three more members are optional. An attribute ``unconstrained = False`` states that no normal
    approximation fits the coordinates in which the proposal moves, so that none is computed. A
    method ``disperse(layout, point, radius, rng)`` returns a possible start near a point; a
    larger radius, which is at most 1, gives a more distant start. A method ``check_model(model)``
    refuses models on which the proposal would not be valid.
    """

    def init(self, layout: Layout, approximation: GaussianApproximation | None = None) -> State:
        """Initial state of a chain, given an approximation of the posterior if there is one."""
        ...

    def propose(
        self, state: State, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float, State]:
        """New point, ``log q(point | new) - log q(new | point)`` in nats, and the new state.

        `current_scaling` and `tune` receive this state.
        """
        ...

    def tune(self, state: State, outcome: Outcome) -> State:
        """State after a decision of the tuning phase."""
        ...

    def freeze(self, state: State) -> State:
        """State at the end of the tuning phase, after which nothing changes."""
        ...

    def current_scaling(self, state: State) -> float:
        """Size of the proposal as one number, for the statistics; NaN if it has none."""
        ...


class Gradients(Protocol):
    """Gradients of the log-posterior, estimated from rows, for the proposals of a step method."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def batch_size(self) -> int:
        """Number of rows in a mini-batch; a mini-batch of all rows gives the exact gradient."""
        ...

    @property
    def decisions(self) -> Literal["metropolis", "barker", "poisson", "none"]:
        """Rule that decides on the proposals; with "none", all of them are accepted."""
        ...

    def draw(self, rng: np.random.Generator) -> Callable[[NDArray], NDArray[np.float64]]:
        """A new mini-batch, as a function from a point to the gradient there, shape ``(d,)``."""
        ...


class GradientProposal(Proposal[State], Protocol[State]):
    """A proposal that uses gradients from the step method."""

    @property
    def batch_size(self) -> int | None:
        """Number of rows in a mini-batch; None for all."""
        ...

    @property
    def control_variates(self) -> Literal["auto"] | bool:
        """Whether the gradients use control variates."""
        ...

    @property
    def n_rows_read(self) -> int:
        """Rows read for every proposal."""
        ...

    def with_gradients(self, gradients: Gradients) -> Proposal[Any]:
        """The same proposal with gradients, ready to propose."""
        ...
