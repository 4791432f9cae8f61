"""Transitions of a chain in compiled code, of normal proposals and of trajectories."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from pymc_austerity.compiled.addresses import (
    addressed,
    call,
    call_for_number,
)
from pymc_austerity.compiled.decisions import (
    ACCEPTED,
    REJECTED,
    STATISTICS,
    VIOLATED,
    AnyDecisions,
    ExactDecisions,
    RandomDecisions,
    SequentialDecisions,
    decide_at_random,
    decide_exactly,
    decide_sequentially,
)
from pymc_austerity.compiled.proposals import MOVE, Move, NormalMoves, move_by_noise
from pymc_austerity.parts import compiled_once, part, part_by_type, reals
from pymc_austerity.proposals import hamiltonian


@part_by_type(
    types.int64,
    {
        SequentialDecisions: decide_sequentially,
        RandomDecisions: decide_at_random,
        ExactDecisions: decide_exactly,
    },
)
def decide_by(its, proposed, current, log_ratio, rng, audits, statistics):  # type: ignore[no-untyped-def]
    """Accept or reject; see `decide_sequentially`."""
    raise NotImplementedError


class KnownByAddress(NamedTuple):
    """The row-free part, and m weighted rows of k linear predictors, for compiled code.

    Attributes
    ----------
    exact : int
        Address of the row-free part; see `pymc_austerity.model.DensityGradient`.
    n_rows, n_predictors : int
        m, which may be none, and k m.
    slopes : int
        Address of the rows as functions of their predictors; see `pymc_austerity.model.RowSlopes`.
    table : int
        Address of the table of the rows.
    design : int
        Address of the predictors as products with the point, shape (k m, d).
    offsets : int
        Address of an array of shape (k m,).
    weights : int
        Address of the weights of the rows.
    """

    exact: int
    n_rows: int = 0
    n_predictors: int = 0
    slopes: int = 0
    table: int = 0
    design: int = 0
    offsets: int = 0
    weights: int = 0


@part(types.float64)
def _of_rows(exact: KnownByAddress, point: NDArray, gradient: NDArray) -> float:
    """Log-likelihood of the rows, nats, of which the gradient is added."""
    n_rows, n_predictors = exact.n_rows, exact.n_predictors
    design = numba.carray(reals(exact.design), (n_predictors, point.size))
    etas = np.dot(design, point) + numba.carray(reals(exact.offsets), n_predictors)
    found, weights, value = np.empty(n_rows + n_predictors), reals(exact.weights), 0.0
    call(exact.slopes, (etas.ctypes.data, found.ctypes.data, exact.table))
    for i in range(n_rows):
        value += weights[i] * found[i]
    for i in range(n_predictors):
        found[n_rows + i] *= weights[i % n_rows]
    gradient += np.dot(found[n_rows:], design)
    return value


def _evaluate(exact: KnownByAddress, point: NDArray) -> tuple[float, NDArray]:
    """See `pymc_austerity.proposals.hamiltonian.evaluate`."""
    gradient = np.empty(point.size)
    value = call_for_number(exact.exact, (point.ctypes.data, gradient.ctypes.data))
    if exact.n_rows > 0:
        value += _of_rows(exact, point, gradient)
    return value, gradient


part(hamiltonian.DENSITY, compiled=_evaluate)(hamiltonian.evaluate)

center_and_scale = compiled_once(hamiltonian.center_and_scale)
"""See `pymc_austerity.proposals.hamiltonian`."""

walk = compiled_once(hamiltonian.walk)
"""See `pymc_austerity.proposals.hamiltonian`."""


class CompiledTrajectories(NamedTuple):
    """Trajectories on a surrogate of the posterior, in a state that no longer changes.

    Attributes
    ----------
    exact : KnownByAddress
        What is known without an expansion.
    anchor, gradient, hessian, scaled : arrays
        As in `pymc_austerity.proposals.hamiltonian.log_density`.
    beyond : float array, shape (d, d)
        Hessian of the expansion that decisions use, minus that of the surrogate.
    root : float array, shape (d, d)
        Of the inverse of the metric.
    step_size, time : float
    n_trajectories : int
    """

    exact: KnownByAddress
    anchor: NDArray[np.float64]
    gradient: NDArray[np.float64]
    hessian: NDArray[np.float64]
    scaled: NDArray[np.intp]
    beyond: NDArray[np.float64]
    root: NDArray[np.float64]
    step_size: float
    time: float
    n_trajectories: int

    @property
    def size(self) -> int:
        """Dimension, d."""
        return self.anchor.size

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Step size of the only kind of move."""
        return np.array([self.step_size])


@part(types.Tuple((hamiltonian.VECTOR, types.int64)))
def _end(its: Any, current: NDArray, rng: Any) -> tuple[NDArray, int]:
    """The point at the end of the trajectories, and how many of them were accepted."""
    kind = hamiltonian.kind_of_move(its.step_size, its.time, its.n_trajectories, rng)
    known, scaled, place = (its.anchor, its.gradient, its.hessian, its.scaled), its.scaled, current
    about = its.anchor, its.hessian, scaled
    if scaled.size > 0:
        center, scale = hamiltonian.center_and_scale(its.exact, current, *about)
        place = current.copy()
        for j in range(scaled.size):
            place[scaled[j]] = (current[scaled[j]] - center[j]) / scale[j]
    end, _, n_accepted = walk(its.exact, known, place, its.root, *kind, rng)
    if scaled.size > 0 and n_accepted > 0:
        center, scale = hamiltonian.center_and_scale(its.exact, end, *about)
        for j in range(scaled.size):
            end[scaled[j]] = center[j] + scale[j] * end[scaled[j]]
    return end, n_accepted


def _by_trajectories(
    its: CompiledTrajectories, work: int, exact_now: float, rng: np.random.Generator
) -> Move:
    """What is known cancels, but for what the expansion of decisions has beyond the surrogate."""
    d = its.anchor.size
    current, out = numba.carray(reals(work), d), reals(work + 8 * d)
    proposed, n_accepted = _end(its, current, rng)
    for i in range(d):
        out[i] = proposed[i]
    if n_accepted == 0:
        return Move(0, -math.inf, 0.0, 0.0)
    moved, about = proposed - current, (proposed - its.anchor) + (current - its.anchor)
    return Move(0, 0.5 * np.dot(moved, np.dot(its.beyond, about)), 0.0, 0.0)


@part_by_type(MOVE, {NormalMoves: move_by_noise, CompiledTrajectories: _by_trajectories})
def _propose_by(its, work, exact_now, rng):  # type: ignore[no-untyped-def]
    """Write a proposal behind the current point; see `CurrentPoint`."""
    raise NotImplementedError


class CurrentPoint(NamedTuple):
    """Where a chain is.

    Attributes
    ----------
    work : float array, shape (3, d)
        The current point and the proposed one; the rest is working space.
    size : int
        d.
    log_ratio : float
        Of a proposal that is there already, nats, but for the rows that are sampled; NaN where
        proposals are to be made.
    """

    work: NDArray[np.float64]
    size: int
    log_ratio: float = math.nan


class Transitions(NamedTuple):
    """A block of transitions.

    Attributes
    ----------
    points : float array, shape (n, d)
        Where the chain is after each.
    statistics : float array, shape (n, 8)
        What each took: see `pymc_austerity.compiled.decisions.STATISTICS`.
    """

    points: NDArray[np.float64]
    statistics: NDArray[np.float64]


@numba.njit(cache=True, error_model="numpy", no_cfunc_wrapper=True, nogil=True)
def transitions(
    moves: NormalMoves | CompiledTrajectories,
    decisions: AnyDecisions,
    place: CurrentPoint,
    rng: np.random.Generator,
    audits: np.random.Generator,
    n_transitions: int,
    made: Transitions,
) -> int:
    """Make transitions.

    Parameters
    ----------
    moves, decisions
        How to propose and to decide, as `addressed` has them, but for arrays of trajectories; but
        for working space nothing in them changes.
    place : CurrentPoint
        Where the chain is, as `addressed` has it. It ends where the chain is then.
    rng, audits : numpy.random.Generator
        Of the chain, and of what is checked.
    n_transitions : int
        How many, n.
    made : Transitions
        Where they are written, as `addressed` has it.

    Returns
    -------
    int
        Transitions made: fewer where one of them violates a bound.
    """
    d, work, exact_now = place.size, place.work, math.nan
    current, proposed = reals(work), reals(work + 8 * d)
    for t in range(n_transitions):
        out, point = reals(made.statistics + 64 * t), reals(made.points + 8 * d * t)
        verdict, component, log_ratio, exact_then = REJECTED, 0, place.log_ratio, math.nan
        out[1] = out[2] = out[3] = out[5] = out[6] = 0.0
        out[4] = math.nan
        if log_ratio != log_ratio:
            component, log_ratio, exact_now, exact_then = _propose_by(moves, work, exact_now, rng)
        if math.isfinite(log_ratio):
            verdict = decide_by(decisions, proposed, current, log_ratio, rng, audits, out)
        if verdict == VIOLATED:
            return t
        out[0], out[7] = verdict, component
        if verdict == ACCEPTED:
            exact_now = exact_then
            for i in range(d):
                current[i] = proposed[i]
        for i in range(d):
            point[i] = current[i]
    return n_transitions


@dataclass(frozen=True, eq=False)
class CompiledTarget:
    """What compiled code knows of a posterior, and how it decides.

    Attributes
    ----------
    decisions : SequentialDecisions, RandomDecisions or ExactDecisions
    refuse_unread : callable
        Raises an error if rows could not be read.
    alive : tuple
        What has to live as long as the addresses in the others are in use.
    """

    decisions: AnyDecisions
    refuse_unread: Callable[[], None]
    alive: tuple[Any, ...]


class CompiledChain:
    """Makes transitions that do not change what follows, or decides on proposals of others.

    Parameters
    ----------
    target : CompiledTarget
    moves : NormalMoves or CompiledTrajectories

    Attributes
    ----------
    decisions : SequentialDecisions, RandomDecisions or ExactDecisions
        As `addressed` has them.
    at_once : int
        Transitions that the first call should make.
    """

    at_once = 1

    def __init__(self, target: CompiledTarget, moves: NormalMoves | CompiledTrajectories) -> None:
        self.target, self._moves = target, moves
        self._by_address = moves if isinstance(moves, CompiledTrajectories) else addressed(moves)
        self.decisions = addressed(target.decisions)
        self._work = np.zeros((3, moves.size))
        self._place = addressed(CurrentPoint(self._work, moves.size))
        self._single, self._known = self._space(1), None
        self._single_by_address = addressed(self._single)

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Size of the moves of each component."""
        return self._moves.sizes

    def _call(self, *given: Any) -> int:
        """Call `transitions`; from the second time on without a look at types, half of a call."""
        if self._known is None:
            n_made: int = transitions(*given)
            self._known = transitions.overloads[tuple(map(typeof, given))].entry_point
            return n_made
        return self._known(*given)

    def _space(self, n_transitions: int) -> Transitions:
        points = np.empty((n_transitions, self._place.size))
        return Transitions(points, np.empty((n_transitions, len(STATISTICS))))

    def make(
        self,
        n_transitions: int,
        start: NDArray,
        rng: np.random.Generator,
        audits: np.random.Generator,
    ) -> Transitions:
        """Make transitions from a point.

        Parameters
        ----------
        n_transitions : int
        start : array, shape (d,)
        rng, audits : numpy.random.Generator
            Of the chain, and of what is checked.

        Returns
        -------
        Transitions
            Fewer where a row changes by more than its bound: the next one is for Python to refuse.

        Raises
        ------
        StorageError
            Rows could not be read.
        """
        self._work[0] = start
        made = self._space(n_transitions)
        how = self._by_address, self.decisions, self._place, rng, audits
        n_made = self._call(*how, n_transitions, addressed(made))
        self.target.refuse_unread()
        return Transitions(made.points[:n_made], made.statistics[:n_made])

    def decide(
        self,
        proposed: NDArray,
        current: NDArray,
        log_ratio: float,
        rng: np.random.Generator,
        audits: np.random.Generator,
    ) -> list[float] | None:
        """Decide on a given proposal.

        Parameters
        ----------
        proposed, current : arrays, shape (d,)
        log_ratio : float
            All of the log acceptance ratio but for the rows that are sampled, nats; finite.
        rng, audits : numpy.random.Generator
            As for `make`.

        Returns
        -------
        list of float
            What it took; see `STATISTICS`. None where a row changes by more than its bound.

        Raises
        ------
        StorageError
            Rows could not be read.
        """
        self._work[0], self._work[1] = current, proposed
        place = self._place._replace(log_ratio=log_ratio)
        how = self._by_address, self.decisions, place, rng, audits
        n_made = self._call(*how, 1, self._single_by_address)
        self.target.refuse_unread()
        found: list[float] = self._single.statistics[0].tolist()
        return found if n_made else None
