"""Draws that are made in advance, compiled or many at once; PyMC receives them one by one."""

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import (
    STATISTICS,
    CompiledChain,
    Transitions,
)
from pymc_austerity.deciding.decider import Decider
from pymc_austerity.deciding.exact import AnyDecider
from pymc_austerity.deciding.sampling import AT_ONCE, AllRowsTogether
from pymc_austerity.proposals import (
    Block,
    CrankNicolsonProposal,
    Proposal,
)
from pymc_austerity.sequential import log_uniform
from pymc_austerity.setup.compiled_target import (
    compiled_target,
    moves_of,
    why_transitions_need_python,
)
from pymc_austerity.setup.setup_progress import collection_paused
from pymc_austerity.setup.target import Target
from pymc_austerity.step_methods.statistics import of_transitions

_SIZE_OF_MOVES = CrankNicolsonProposal().b
_USUAL = {"n_looks": 1.0, "standardized_mean": math.nan}

_LONGEST = 0.01
"""Seconds between two returns to Python, unless a single draw takes longer."""

_MOST = 256
_N_ROWS, _COMPONENT = STATISTICS.index("n_rows_used"), STATISTICS.index("component")


def is_independent(target: Target, proposal: Proposal) -> bool:
    """Whether proposals are independent draws that decisions evaluate together."""
    is_for_all = isinstance(target.sampling, AllRowsTogether)
    return is_for_all and proposal == CrankNicolsonProposal(_SIZE_OF_MOVES)


class IndependentChain:
    r"""Makes transitions of an independence sampler; each decision uses all rows.

    .. math:: \log u < \log w(\theta') - \log w(\theta), \qquad
        \log w(\theta) = \log p(\theta | x) - \log N(\theta; m, R R')

    Random numbers are used in the same order as by one decision after the other.

    Parameters
    ----------
    target : Target
        With `AllRowsTogether` as its sampling.
    audit : float
        Share of decisions that are recorded as checked.

    Attributes
    ----------
    at_once : int
        Transitions that are best made in one call.
    sizes : float array, shape (1,)
        Size of the moves.
    """

    at_once = AT_ONCE

    def __init__(self, target: Target, audit: float) -> None:
        assert isinstance(target.sampling, AllRowsTogether) and target.approximation is not None
        self._target, self._totals = target, target.sampling.totals
        self._normal, self._audit = target.approximation, audit
        self._known: dict[bytes, float] = {}
        self.sizes = np.array([_SIZE_OF_MOVES])

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
            Fewer where the prior excludes a proposal: the next one is for Python to reject.
        """
        size = start.size
        proposed = np.empty((n_transitions, size), dtype=start.dtype)
        log_thresholds = np.empty(n_transitions)
        for t in range(n_transitions):  # a product of matrices would round as their shapes have it
            proposed[t] = self._normal.mean + self._normal.root.dot(rng.standard_normal(size))
            log_thresholds[t] = log_uniform(rng)
        log_weights = self._log_weights(np.vstack([start[None], proposed]))
        excluded = np.flatnonzero(np.isneginf(log_weights[1:]))
        n_made = int(excluded[0]) if excluded.size else n_transitions
        points = np.empty((n_made, size))
        statistics = np.zeros((n_made, len(STATISTICS)))
        current, here = start, log_weights[0]
        for t in range(n_made):
            if log_weights[1 + t] - here > log_thresholds[t]:
                current, here = proposed[t], log_weights[1 + t]
                statistics[t, STATISTICS.index("accepted")] = 1.0
            points[t] = current
            if self._audit > 0.0 and audits.random() < self._audit:
                statistics[t, STATISTICS.index("audited")] = 1.0
        statistics[:, STATISTICS.index("n_rows_used")] = self._target.n_rows
        for name, value in _USUAL.items():
            statistics[:, STATISTICS.index(name)] = value
        return Transitions(points, statistics)

    def _log_weights(self, points: NDArray) -> NDArray[np.float64]:
        """At points, nats; NaN where a row excludes one, minus infinity where the prior does.

        They are kept until the next call, which may be for some of the same points.
        """
        keys = [point.tobytes() for point in points]
        new = [k for k, key in enumerate(keys) if key not in self._known]
        if new:
            found = self._computed(points[new])
            self._known = {key: self._known[key] for key in keys if key in self._known}
            self._known |= {keys[k]: float(value) for k, value in zip(new, found, strict=True)}
        return np.array([self._known[key] for key in keys])

    def _computed(self, points: NDArray) -> NDArray[np.float64]:
        start = self._target.start
        exact = np.array([self._target.row_free_part(point, start) for point in points])
        exact = np.where(np.isfinite(exact), exact, -np.inf)
        return exact + self._totals(points) - self._normal.log_densities(points)


class Given(NamedTuple):
    """Counts of what was handed out.

    Attributes
    ----------
    n_draws, n_decisions : int
    component : int
        Which component of a mixture made the last proposal.
    """

    n_draws: int = 0
    n_decisions: int = 0
    component: int = 0


class DrawBuffer:
    """The draws of a chain whose settings are all frozen, computed block by block.

    A block is computed at once, and its draws are handed out one by one. If another step method
    changes the point, or if the state is read, the chain returns to the last draw that was handed
    out. The draws do not depend on the length of the blocks.

    Parameters
    ----------
    chain : CompiledChain or IndependentChain
        Makes the transitions.
    steps_per_draw : int
        Transitions between draws.
    blocks : sequence of Block
        Positions of the variables in the raveled point.
    dtype : dtype
        Type of the points.
    record : callable
        Computes the statistics of each draw.
    at_once : int
        Transitions of the first block.
    """

    def __init__(
        self,
        chain: CompiledChain | IndependentChain,
        *,
        steps_per_draw: int,
        blocks: Sequence[Block],
        dtype: Any,
        record: Callable[[NDArray[np.float64]], list[dict[str, Any]]],
        at_once: int = 1,
    ) -> None:
        self._chain = chain
        self._steps = steps_per_draw
        self._blocks = {block.name: block for block in blocks}
        self._dtype = dtype
        self._record = record
        self._first = self._length = -(-at_once // steps_per_draw)
        self._points: list[dict[str, Any]] = []
        self._next = 0
        self._last: dict[str, Any] | None = None
        self._given = Given()

    def step(
        self, point: dict[str, Any], rng: np.random.Generator, audits: np.random.Generator
    ) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
        """The draw that follows a point, and its statistics; None if Python has to reject it."""
        if point is not self._last:
            self._given = self.give_back()
            self._length = self._first
            self._make(point, rng, audits)
        elif self._next == len(self._points):
            self._make(point, rng, audits)
        number = self._next
        if number == len(self._points):
            return None
        self._next = number + 1
        self._last = following = self._points[number]
        return following, [self._statistics[number]]

    def give_back(self) -> Given:
        """Undo the draws that were made but not handed out.

        The generators are then in the state that they would have without draws made ahead.

        Returns
        -------
        Given
            What was handed out since the last call.
        """
        if self._next < len(self._points):
            self._made_again(self._next * self._steps)
        self._count()
        given, self._given = self._given, Given()
        self._points, self._next, self._last = [], 0, None
        return given

    def _count(self) -> None:
        """Add the current block to the counts of what was handed out."""
        if self._next == 0:
            return
        statistics = self._made.statistics[: self._next * self._steps]
        self._given = Given(
            self._given.n_draws + self._next,
            self._given.n_decisions + int(np.count_nonzero(statistics[:, _N_ROWS])),
            int(statistics[-1, _COMPONENT]),
        )

    def _make(
        self, point: dict[str, Any], rng: np.random.Generator, audits: np.random.Generator
    ) -> None:
        self._count()
        names = list(point)
        self._rng, self._audits = rng, audits
        self._states = rng.bit_generator.state, audits.bit_generator.state
        self._start = np.concatenate([np.ravel(point[name]) for name in self._blocks])
        started = time.perf_counter()
        wanted = self._length * self._steps
        self._made = self._chain.make(wanted, self._start, rng, audits)
        n_whole = len(self._made.points) // self._steps * self._steps
        if n_whole < wanted:
            self._made = self._made_again(n_whole)
        seconds = time.perf_counter() - started
        self._points = self._unraveled(self._made.points[self._steps - 1 :: self._steps], names)
        self._statistics = self._record(self._made.statistics)
        self._next = 0
        if 2.0 * seconds < _LONGEST:
            self._length = min(2 * self._length, _MOST)

    def _made_again(self, n_transitions: int) -> Transitions:
        """Exactly the first transitions of the current block."""
        self._rng.bit_generator.state, self._audits.bit_generator.state = self._states
        return self._chain.make(n_transitions, self._start, self._rng, self._audits)

    def _unraveled(self, points: NDArray, names: Sequence[str]) -> list[dict[str, Any]]:
        """Points in PyMC's format: names in its order, each with an array of its shape."""
        points = np.ascontiguousarray(points, dtype=self._dtype)
        columns = []
        for name in names:
            block = self._blocks[name]
            columns.append(points[:, block.entries].reshape(len(points), *block.shape))
        return [
            {name: column[k, ...] for name, column in zip(names, columns, strict=True)}
            for k in range(len(points))
        ]


def why_python(target: Target, decider: AnyDecider, proposal: Proposal[Any]) -> str:
    """Why transitions need Python after tuning, as a clause; empty if they do not."""
    if is_independent(target, proposal):
        return ""
    has_schedule = isinstance(decider, Decider) and decider.schedule is not None
    if has_schedule and not decider.settings.tightens:
        return "epsilon is a function"
    return why_transitions_need_python(target, decider, proposal)


@collection_paused()
def compile_now(target: Target, decider: AnyDecider, proposal: Proposal[Any]) -> None:
    """Compile what the chains will need, or read what an earlier process compiled."""
    state = proposal.init(target.layout, target.approximation)
    rng = np.random.default_rng(0)
    _chain(target, decider, proposal, state).make(0, target.start, rng, rng)


def draws_ahead(
    target: Target,
    decider: AnyDecider,
    proposal: Proposal[Any],
    proposal_state: Any,
    steps_per_draw: int,
) -> DrawBuffer:
    """Draws of a chain whose proposal and test no longer change."""
    chain = _chain(target, decider, proposal, proposal_state)
    record = partial(
        of_transitions,
        n_rows=target.n_rows,
        n_kept=target.n_kept,
        steps_per_draw=steps_per_draw,
        scalings=chain.sizes,
        epsilon=decider.epsilon,
    )
    return DrawBuffer(
        chain,
        steps_per_draw=steps_per_draw,
        blocks=target.layout.blocks,
        dtype=target.start.dtype,
        record=record,
        at_once=chain.at_once,
    )


def _chain(
    target: Target, decider: AnyDecider, proposal: Proposal[Any], state: Any
) -> CompiledChain | IndependentChain:
    if is_independent(target, proposal):
        return IndependentChain(target, decider.audits.share)
    return CompiledChain(compiled_target(target, decider), moves_of(target, proposal, state))
