"""Moves that priors decide alone, because no row reads what moves, or its predictors stay."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.sparse import csr_array

from pymc_austerity.levels.moves import Moved
from pymc_austerity.levels.posterior import GroupedPosterior
from pymc_austerity.proposals import (
    GaussianApproximation,
    HamiltonianState,
    Layout,
    Outcome,
    RandomWalkProposal,
    RandomWalkState,
    SurrogateHamiltonianProposal,
)
from pymc_austerity.proposals.adaptation import ScaleSearch
from pymc_austerity.proposals.hamiltonian import ScaledCoordinates, center_and_scale, walk

PriorOnlyState: TypeAlias = tuple[RandomWalkState, ...] | HamiltonianState
_MOST_BY_RANDOM_WALK, _MOST_TOGETHER = 10, 2
"""Entries, and entries that depend on each other, up to which a few steps of a random walk suffice:
of three, such as two scales and a correlation, a walk makes half of the effective draws a second
that trajectories make, and of the six scales of a horseshoe a quarter."""

_MOST_SCALED = 2
"""The same for entries that are normal given the others: more of them, such as the effects of
districts that are the means of schools, form a funnel with their scale."""

_STEPS, _TRAJECTORIES = 4, 2
"""Steps of random walks, and trajectories of Hamiltonian Monte Carlo, at every sweep. Independent
walks share the steps, and take one more each: a step of few entries goes less far than its share
of one of all of them."""

_HAMILTONIAN = SurrogateHamiltonianProposal(n_trajectories=_TRAJECTORIES)


@dataclass(frozen=True, eq=False)
class PriorOnlyEntries:
    """Metropolis-Hastings on the row-free part alone: it reads no rows, and decisions are exact.

    A few entries take a few steps of a random walk, those that are independent given the others of
    walks of their own. More entries, and more that depend on each other, follow Hamiltonian
    trajectories, in coordinates in which entries that are normal given the others are standard
    normal.

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
    components : tuple of int arrays
        Numbers of entries, among these, that depend on each other given all others.
    """

    entries: NDArray[np.int64]
    about: GaussianApproximation
    row_free_part: Callable[[NDArray, NDArray], float]
    row_free_gradient: Callable[[NDArray], Sequence[Any]]
    scaled: NDArray[np.intp]
    components: tuple[NDArray[np.intp], ...]

    @property
    def are_few(self) -> bool:
        """Whether a random walk moves them."""
        together = max(component.size for component in self.components)
        are_few = self.entries.size <= _MOST_BY_RANDOM_WALK and self.scaled.size <= _MOST_SCALED
        return are_few and together <= _MOST_TOGETHER

    def init(self) -> PriorOnlyState:
        """State at the beginning of a chain."""
        if self.are_few:
            every = np.arange(self.entries.size)
            its = ((own.size, self.about.marginal(np.isin(every, own))) for own in self.components)
            return tuple(RandomWalkProposal().init(Layout.continuous(n), about) for n, about in its)
        proposal = _HAMILTONIAN.with_surrogate(_Given(self, np.zeros(0), self.scaled))
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
        return self._by_random_walks(theta, state, rng, tuning=tuning, apart=apart[self.entries])

    def _along_trajectories(
        self,
        theta: NDArray[np.float64],
        state: HamiltonianState,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> tuple[Moved, HamiltonianState]:
        proposal = _HAMILTONIAN.with_surrogate(_Given(self, theta, self.scaled))
        before = theta[self.entries]
        there, _, state = proposal.propose(state, before, rng)
        following = theta.copy()
        following[self.entries] = there
        if tuning:
            state = proposal.tune(state, Outcome(before, there, True, 0))
        return Moved(following, state.acceptance, 0), state

    def _by_random_walks(
        self,
        theta: NDArray[np.float64],
        states: tuple[RandomWalkState, ...],
        rng: np.random.Generator,
        *,
        tuning: bool,
        apart: NDArray[np.float64],
    ) -> tuple[Moved, tuple[RandomWalkState, ...]]:
        proposal, acceptance, following = RandomWalkProposal(), 0.0, []
        for component, state in zip(self.components, states, strict=True):
            own, part = self.entries[component], apart[component]
            n_steps = round(_STEPS * own.size / self.entries.size) + (len(states) > 1)
            for _ in range(n_steps):
                before = theta[own]
                there, _, state = proposal.propose(state, before, rng)
                proposed = theta.copy()
                proposed[own] = there
                accepted = bool(-rng.standard_exponential() < self.row_free_part(proposed, theta))
                theta = proposed if accepted else theta
                acceptance += accepted / (n_steps * len(states))
                if tuning:
                    outcome = Outcome(before - part, theta[own] - part, accepted, 0)
                    state = proposal.tune(state, outcome)
            following.append(state)
        return Moved(theta, acceptance, 0), tuple(following)

    def freeze(self, state: PriorOnlyState) -> PriorOnlyState:
        """State at the end of the tuning phase."""
        if isinstance(state, HamiltonianState):
            return _HAMILTONIAN.freeze(state)
        return tuple(RandomWalkProposal().freeze(walk) for walk in state)


@dataclass(frozen=True, eq=False)
class _Given(ScaledCoordinates):
    """The row-free part as a function of the entries, for Hamiltonian moves."""

    untouched: PriorOnlyEntries
    theta: NDArray[np.float64]
    scaled: NDArray[np.intp]
    step_size: float = 0.5

    @property
    def root(self) -> NDArray[np.float64]:
        """Root of the covariance in these coordinates."""
        its, scaled = self.untouched.about, self.scaled
        covariance = its.root @ its.root.T
        covariance[scaled], covariance[:, scaled] = 0.0, 0.0
        covariance[scaled, scaled] = 1.0
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)

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
        known = (nothing, nothing, no_rows, self.scaled)
        with np.errstate(all="ignore"):  # what is not finite is rejected
            return walk(self._exact, known, coordinates, root, size, time, n_trajectories, rng)

    def center_and_scale(self, x: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return center_and_scale(self._exact, x, *_no_rows(x.size), self.scaled)

    def _exact(self, values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        there = self.theta.copy()
        there[self.untouched.entries] = values
        value, gradient = self.untouched.row_free_gradient(there)
        return float(value), gradient[self.untouched.entries]


def _no_rows(d: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Anchor and Hessian of rows that are not there."""
    return np.zeros(d), np.zeros((d, d))


# ------------------------------------------------------------------ exchange


_FLOWS, _SHARE_ACCEPTED, _MOST_TERMS = 5, 0.4, 200_000
"""Flows of a move, the share of them to accept, and terms that all flows of a move may have."""

_SCALE, _FARTHEST = 2.0, 0.5
"""Size of steps at the beginning, and the largest one, in which fields change by half of what they
are."""

_PER_UNIT = 64
"""Runge-Kutta steps of a flow whose fields change by as much as they are: 1e-10 of error."""


_quiet = np.errstate(over="ignore", invalid="ignore")
"""Where a flow leads out of all bounds, the proposal is rejected."""


class VectorFields(NamedTuple):
    r"""Vector fields :math:`\xi_k`, each a constant and a sum of multiples of entries.

    .. math:: \xi_{k,i}(\theta) = c_{k,i} + \sum_{m: i_m = i} w_{k,m} \phi_m(\theta_{j_m}),
        \qquad \phi_m(x) \in \{x, e^x\}

    Attributes
    ----------
    constant : float array or sparse array, shape (k, d)
    weights : float array, shape (k, m)
    changed, by : int arrays, shape (m,)
        The entries i and j of each term.
    exponential : bool array, shape (m,)
    """

    constant: NDArray[np.float64] | csr_array
    weights: NDArray[np.float64]
    changed: NDArray[np.int64]
    by: NDArray[np.int64]
    exponential: NDArray[np.bool_]

    @classmethod
    def of(cls, directions: NDArray[np.float64] | csr_array) -> "VectorFields":
        """Constant fields."""
        none = np.empty(0, dtype=np.int64)
        weights = np.empty((directions.shape[0], 0))
        return cls(directions, weights, none, none, np.empty(0, dtype=np.bool_))

    @classmethod
    def joined(cls, fields: Sequence["VectorFields"]) -> "VectorFields":
        """All of them."""
        return cls(
            np.concatenate([field.constant for field in fields]),
            block_diag(*(field.weights for field in fields)),
            np.concatenate([field.changed for field in fields]),
            np.concatenate([field.by for field in fields]),
            np.concatenate([field.exponential for field in fields]),
        )

    @property
    def n_directions(self) -> int:
        """Number of fields, k."""
        return len(self.weights)

    def at(
        self, amounts: NDArray[np.float64], theta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], float]:
        """A sum of the fields at a point, and its divergence."""
        weights, values = amounts @ self.weights, theta[self.by]
        values[self.exponential] = np.exp(values[self.exponential])
        slopes = np.where(self.exponential, values, 1.0)
        field = amounts @ self.constant
        field += np.bincount(self.changed, weights * values, theta.size)
        return field, float(weights @ np.where(self.changed == self.by, slopes, 0.0))

    @_quiet
    def flow(
        self, amounts: NDArray[np.float64], theta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], float]:
        """Follow a sum of the fields for a unit of time; the point, and the log of the Jacobian."""
        if not self.changed.size:
            return theta + amounts @ self.constant, 0.0
        n_steps = self.n_steps(amounts)
        amounts, volume = amounts / n_steps, 0.0
        for _ in range(n_steps):
            first, one = self.at(amounts, theta)
            second, two = self.at(amounts, theta + 0.5 * first)
            third, three = self.at(amounts, theta + 0.5 * second)
            last, four = self.at(amounts, theta + third)
            theta = theta + (first + 2.0 * (second + third) + last) / 6.0
            volume += (one + 2.0 * (two + three) + four) / 6.0
        return theta, volume

    def n_steps(self, amounts: NDArray[np.float64]) -> int:
        """Steps that it takes to follow a sum of the fields for a unit of time."""
        return 2 + math.ceil(_PER_UNIT * float(abs(amounts) @ abs(self.weights).max(axis=1)))

    def combined(self, amounts: NDArray[np.float64]) -> "VectorFields":
        """Other fields, each a sum of these; `amounts` has shape (k', k)."""
        return self._replace(constant=amounts @ self.constant, weights=amounts @ self.weights)


@dataclass(frozen=True, eq=False)
class Exchange:
    """Moves along the flows of vector fields that change no predictor.

    Constant ones raise some entries while others fall, as an intercept and all levels. Others
    stretch some entries while their multipliers shrink, as abilities and discriminations.

    Attributes
    ----------
    fields : VectorFields
        In units of the spread that the priors allow at the anchor.
    """

    fields: VectorFields

    def begin(self) -> ScaleSearch:
        """The search for a scale: flows are not followed so far that they take long."""
        most = abs(self.fields.weights).max(initial=0.0)
        return ScaleSearch.begin(_SCALE, _FARTHEST / most if most else math.inf)

    def move(
        self,
        posterior: GroupedPosterior,
        theta: NDArray[np.float64],
        search: ScaleSearch,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> tuple[Moved, ScaleSearch]:
        """A few steps of a random walk, decided by the priors alone, without reading rows.

        Back along a flow leads the same amounts with the other sign, which are as likely.
        """
        k, n_accepted = self.fields.n_directions, 0
        n_steps = min(max(_MOST_TERMS // max(self.fields.by.size, 1), 1), _FLOWS)
        for _ in range(n_steps):
            amounts = search.scale / math.sqrt(k) * rng.standard_normal(k)
            proposed, volume = self.fields.flow(amounts, theta)
            log_ratio = posterior.row_free_part(proposed, theta) + volume
            accept = -rng.standard_exponential() < log_ratio
            theta = proposed if accept else theta
            n_accepted += accept
            search = search.step(accept, _SHARE_ACCEPTED) if tuning else search
        return Moved(theta, n_accepted / n_steps, 0), search
