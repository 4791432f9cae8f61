"""The variables that a step method moves, among all variables of its decisions."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.exact import AnyDecider
from pymc_austerity.proposals import (
    Conditional,
    GaussianApproximation,
    Layout,
    Outcome,
    Proposal,
    RandomWalkProposal,
    conditional,
)
from pymc_austerity.sequential import Decision, log_uniform
from pymc_austerity.setup.starts import start_of_chain
from pymc_austerity.setup.target import Target


class Question(NamedTuple):
    """A proposal to decide about.

    Attributes
    ----------
    proposed, current : arrays, shape (d,)
        Two points of the target.
    log_ratio : float
        Log-ratio besides that of the target, nats.
    """

    proposed: NDArray
    current: NDArray
    log_ratio: float


class Transition(NamedTuple):
    """Where a step leads.

    Attributes
    ----------
    point : array, shape (d,)
        Of the step method.
    decision : Decision
    state : Any
        Of the proposal.
    scaling : float
        Size of the proposal that was made.
    """

    point: NDArray
    decision: Decision
    state: Any
    scaling: float


class Embedding:
    """How points of a step method are embedded in the points of decisions: here they are the same.

    Parameters
    ----------
    target : Target
        The posterior in the form that decisions use.
    """

    def __init__(self, target: Target) -> None:
        self.target, self.layout, self.start = target, target.layout, target.start
        self.approximation = target.approximation

    def look(self, point: Mapping[str, NDArray]) -> None:
        """Record the values of the other variables, before a step."""

    def place(self, whole: NDArray) -> None:
        """Record the values of all variables that decisions are about."""

    def centered(self, own: NDArray) -> NDArray:
        """A point as proposals use it."""
        return own

    def back(self, centered: NDArray) -> NDArray:
        """Inverse of `centered`."""
        return centered

    def start_of_chain(
        self, rng: np.random.Generator, proposal: Proposal[Any], is_left: Callable[[NDArray], bool]
    ) -> NDArray:
        """An overdispersed start."""
        return start_of_chain(self.target, rng, proposal=proposal, is_left=is_left)

    def question(self, proposed: NDArray, current: NDArray, log_ratio: float) -> Question:
        """A proposal in terms of all variables of decisions."""
        return Question(proposed, current, log_ratio)

    def transition(
        self,
        decider: AnyDecider,
        proposal: Proposal[Any],
        state: Any,
        current: NDArray,
        rng: np.random.Generator,
        *,
        tuning: bool,
        adapts: bool,
    ) -> Transition:
        """Propose, decide, and let the proposal learn if it adapts."""
        seen = self.centered(current)
        moved, log_ratio, state = proposal.propose(state, seen, rng)
        proposed = self.back(moved)
        new, old, log_known = self.question(proposed, current, log_ratio)
        if new is not proposed and np.array_equal(new, old):  # no row depends on what is moved
            accept = log_known > log_uniform(rng)
            decision = Decision(accept, 0, 0, 0.0, math.nan, True)
        else:
            decision = decider.decide(new, old, log_known, rng, tuning=tuning)
        scaling = proposal.current_scaling(state)
        if tuning and adapts:
            after = moved if decision.accept else seen
            outcome = Outcome(seen, after, decision.accept, decision.n_rows_used)
            state = proposal.tune(state, outcome)
        return Transition(proposed if decision.accept else current, decision, state, scaling)


@dataclass(eq=False)
class SomeVariables(Embedding):
    """Decisions depend on more variables than the step method moves, or rows on fewer of them.

    Rows are expanded in all real variables that they depend on. Those that other step methods move
    keep their values during a step; own variables that no row depends on, such as discrete ones,
    enter the row-free part only. Proposals are made for points minus their mean given the others,
    in the normal approximation.

    Parameters
    ----------
    target : Target
        The posterior of all variables that rows depend on.
    names : sequence of str
        These variables, in the order of their entries.
    row_free_difference : callable
        ``f(proposed, current)`` for points of the step method: the row-free part, nats.
    layout : Layout
        Kinds of its entries.
    start : array, shape (d,)
        Own point at which the model was verified.
    entries, places : int arrays, shape (k,)
        The own entries that rows may depend on, and their positions in points of the target.
    is_centered : bool
        Whether proposals are made for points minus their mean given the others.
    """

    target: Target
    names: Sequence[str]
    row_free_difference: Any
    layout: Layout
    start: NDArray
    entries: NDArray[np.intp]
    places: NDArray[np.intp]
    is_centered: bool

    def __post_init__(self) -> None:
        whole = self.target.start
        self.approximation: GaussianApproximation | None = None
        self._rest = np.setdiff1d(np.arange(whole.size), self.places)
        self._whole, self._shift = whole, np.zeros_like(self.start)
        self._given: Conditional | None = None
        joint = self.target.approximation
        if joint is not None and self.entries.size:
            self._given = conditional(joint, self.places, self._rest)
            if self.entries.size == self.start.size:
                self.approximation = self._given.approximation

    @property
    def real_approximation(self) -> GaussianApproximation | None:
        """Normal approximation of the own entries that rows may depend on."""
        return None if self._given is None else self._given.approximation

    def look(self, point: Mapping[str, NDArray]) -> None:
        """Record the values of the other variables."""
        self.place(np.concatenate([np.ravel(point[name]) for name in self.names]))

    def place(self, whole: NDArray) -> None:
        """Record the values of all variables that rows depend on."""
        self._whole = whole.astype(self.target.start.dtype, copy=False)
        if self.is_centered and self._given is not None and self._rest.size:
            joint = self.target.approximation
            assert joint is not None
            away = self._whole[self._rest] - joint.mean[self._rest]
            self._shift = np.zeros(self.start.size)
            self._shift[self.entries] = self._given.gain @ away

    def centered(self, own: NDArray) -> NDArray:
        """The point minus its mean given the others, up to a constant."""
        return (own - self._shift).astype(own.dtype, copy=False)

    def back(self, centered: NDArray) -> NDArray:
        """Inverse of `centered`."""
        return (centered + self._shift).astype(centered.dtype, copy=False)

    def start_of_chain(
        self, rng: np.random.Generator, proposal: Proposal[Any], is_left: Callable[[NDArray], bool]
    ) -> NDArray:
        """Own entries of an overdispersed start; those that no row depends on are not moved."""

        def own(whole: NDArray) -> NDArray:
            start = self.start.copy()
            start[self.entries] = whole[self.places]
            return start

        def is_own_left(whole: NDArray) -> bool:
            return is_left(own(whole))

        usual = RandomWalkProposal()
        return own(start_of_chain(self.target, rng, proposal=usual, is_left=is_own_left))

    def question(self, proposed: NDArray, current: NDArray, log_ratio: float) -> Question:
        """The proposal among all variables that rows depend on, with the row-free part included."""
        log_known = log_ratio + float(self.row_free_difference(proposed, current))
        return Question(self.among_all(proposed), self.among_all(current), log_known)

    def among_all(self, own: NDArray) -> NDArray:
        """The recorded point of all variables that rows depend on, with the own values put in."""
        whole = self._whole.copy()
        whole[self.places] = own[self.entries]
        return whole
