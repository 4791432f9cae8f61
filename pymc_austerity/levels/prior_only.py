"""Moves of the entries that no row reads, given all others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels.moves import Moved
from pymc_austerity.proposals import (
    GaussianApproximation,
    HamiltonianState,
    Layout,
    Outcome,
    RandomWalkProposal,
    RandomWalkState,
    SurrogateHamiltonianProposal,
)
from pymc_austerity.proposals.hamiltonian import center_and_scale, walk

PriorOnlyState: TypeAlias = RandomWalkState | HamiltonianState
_MOST_BY_RANDOM_WALK = 10
"""Entries up to which a few steps of a random walk suffice."""

_MOST_SCALED = 2
"""The same for entries that are normal given the others: more of them, such as the effects of
districts that are the means of schools, form a funnel with their scale."""

_STEPS, _TRAJECTORIES = 4, 2
"""Steps of a random walk, and trajectories of Hamiltonian Monte Carlo, at every sweep."""

_HAMILTONIAN = SurrogateHamiltonianProposal(n_trajectories=_TRAJECTORIES)


@dataclass(frozen=True, eq=False)
class PriorOnlyEntries:
    """Metropolis-Hastings on the row-free part alone: it reads no rows, and decisions are exact.

    A few entries take a few steps of a random walk. More entries follow Hamiltonian trajectories,
    in coordinates in which entries that are normal given the others are standard normal.

    Attributes
    ----------
    entries : int array, shape (u,)
        Positions in the raveled vector.
    about : GaussianApproximation
        Of these entries given the others.
    row_free_part : callable
        ``f(proposed, current)``: difference of the row-free part, nats.
    row_free_gradient : callable
        From a raveled point to the row-free part, nats, and its gradient, shape (d,).
    scaled : int array
        Which of these entries are normal given the others.
    """

    entries: NDArray[np.int64]
    about: GaussianApproximation
    row_free_part: Callable[[NDArray, NDArray], float]
    row_free_gradient: Callable[[NDArray], Sequence[Any]]
    scaled: NDArray[np.intp]

    @property
    def are_few(self) -> bool:
        """Whether a random walk moves them."""
        return self.entries.size <= _MOST_BY_RANDOM_WALK and self.scaled.size <= _MOST_SCALED

    def init(self) -> PriorOnlyState:
        """State at the beginning of a chain."""
        if self.are_few:
            return RandomWalkProposal().init(Layout.continuous(self.entries.size), self.about)
        proposal = _HAMILTONIAN.with_surrogate(_Given(self, np.zeros(0)))
        return proposal.init(Layout.continuous(self.entries.size))

    def move(
        self,
        theta: NDArray[np.float64],
        state: PriorOnlyState,
        rng: np.random.Generator,
        *,
        tuning: bool,
        apart: NDArray[np.float64],
    ) -> tuple[Moved, PriorOnlyState]:
        """A few moves from a point; the proposal adapts while the chain is tuning.

        Random walks learn the spread of the entries without a part of the point, shape (d,).
        """
        if isinstance(state, HamiltonianState):
            return self._along_trajectories(theta, state, rng, tuning=tuning)
        return self._by_random_walk(theta, state, rng, tuning=tuning, apart=apart[self.entries])

    def _along_trajectories(
        self,
        theta: NDArray[np.float64],
        state: HamiltonianState,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> tuple[Moved, HamiltonianState]:
        proposal = _HAMILTONIAN.with_surrogate(_Given(self, theta))
        before = theta[self.entries]
        there, _, state = proposal.propose(state, before, rng)
        following = theta.copy()
        following[self.entries] = there
        if tuning:
            state = proposal.tune(state, Outcome(before, there, True, 0))
        return Moved(following, state.acceptance, 0), state

    def _by_random_walk(
        self,
        theta: NDArray[np.float64],
        state: RandomWalkState,
        rng: np.random.Generator,
        *,
        tuning: bool,
        apart: NDArray[np.float64],
    ) -> tuple[Moved, RandomWalkState]:
        proposal, n_accepted = RandomWalkProposal(), 0
        for _ in range(_STEPS):
            before = theta[self.entries]
            there, _, state = proposal.propose(state, before, rng)
            proposed = theta.copy()
            proposed[self.entries] = there
            accepted = bool(-rng.standard_exponential() < self.row_free_part(proposed, theta))
            theta = proposed if accepted else theta
            n_accepted += accepted
            if tuning:
                outcome = Outcome(before - apart, theta[self.entries] - apart, accepted, 0)
                state = proposal.tune(state, outcome)
        return Moved(theta, n_accepted / _STEPS, 0), state

    def freeze(self, state: PriorOnlyState) -> PriorOnlyState:
        """State at the end of the tuning phase."""
        if isinstance(state, HamiltonianState):
            return _HAMILTONIAN.freeze(state)
        return RandomWalkProposal().freeze(state)


@dataclass(frozen=True, eq=False)
class _Given:
    """The row-free part as a function of the entries, for Hamiltonian moves."""

    untouched: PriorOnlyEntries
    theta: NDArray[np.float64]
    step_size: float = 0.5

    @property
    def root(self) -> NDArray[np.float64]:
        """Root of the covariance in these coordinates."""
        its, scaled = self.untouched.about, self.untouched.scaled
        covariance = its.root @ its.root.T
        covariance[scaled], covariance[:, scaled] = 0.0, 0.0
        covariance[scaled, scaled] = 1.0
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)

    def coordinates(self, point: NDArray) -> NDArray[np.float64]:
        scaled, found = self.untouched.scaled, point.astype(np.float64)
        if scaled.size:
            center, scale = self._center_and_scale(found)
            found[scaled] = (found[scaled] - center) / scale
        return found

    def point(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        scaled, found = self.untouched.scaled, coordinates.copy()
        if scaled.size:
            center, scale = self._center_and_scale(coordinates)
            found[scaled] = center + scale * coordinates[scaled]
        return found

    def difference(self, proposed: NDArray, current: NDArray) -> float:
        """Trajectories are decided on the row-free part: nothing remains to decide."""
        return 0.0

    def walk(
        self,
        coordinates: NDArray[np.float64],
        root: NDArray[np.float64],
        size: float,
        time: float,
        n_trajectories: int,
        rng: np.random.Generator,
    ) -> tuple[NDArray[np.float64], float, int]:
        nothing, no_rows = _no_rows(coordinates.size)
        known = (nothing, nothing, no_rows, self.untouched.scaled)
        with np.errstate(all="ignore"):  # what is not finite is rejected
            return walk(self._exact, known, coordinates, root, size, time, n_trajectories, rng)

    def _center_and_scale(self, x: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return center_and_scale(self._exact, x, *_no_rows(x.size), self.untouched.scaled)

    def _exact(self, values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        there = self.theta.copy()
        there[self.untouched.entries] = values
        value, gradient = self.untouched.row_free_gradient(there)
        return float(value), gradient[self.untouched.entries]


def _no_rows(d: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Anchor and Hessian of rows that are not there."""
    return np.zeros(d), np.zeros((d, d))
