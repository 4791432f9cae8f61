"""Draws that compiled code makes in advance, and that PyMC receives one by one."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import STATISTICS, Transitions
from pymc_austerity.proposals import Block

_LONGEST = 0.01
"""Seconds between two returns to Python, unless a single draw takes longer."""

_MOST = 256
_N_ROWS, _COMPONENT = STATISTICS.index("n_rows_used"), STATISTICS.index("component")


class Recorder(Protocol):
    """Computes the statistics of draws."""

    def __call__(self, made: Transitions, /) -> list[dict[str, Any]]:
        """One dictionary for each draw."""
        ...


class Chain(Protocol):
    """Makes transitions that do not change what follows; see `CompiledChain.make`."""

    def make(
        self,
        n_transitions: int,
        start: NDArray,
        rng: np.random.Generator,
        audits: np.random.Generator,
        /,
    ) -> Transitions:
        """Make transitions from a point."""
        ...


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
    record : Recorder
        Computes the statistics.
    at_once : int
        Transitions of the first block.
    """

    def __init__(
        self,
        chain: Chain,
        *,
        steps_per_draw: int,
        blocks: Sequence[Block],
        dtype: Any,
        record: Recorder,
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
        self._statistics = self._record(self._made)
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
