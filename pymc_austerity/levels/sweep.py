"""A sweep: every block of a model with groups moves."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels.moves import (
    Moved,
    crank_nicolson,
    move_common,
    move_levels,
    move_with_levels,
)
from pymc_austerity.levels.posterior import GroupedPosterior
from pymc_austerity.levels.untouched import UntouchedEntries, UntouchedState
from pymc_austerity.proposals import Layout, Outcome, RandomWalkProposal, RandomWalkState

__all__ = ["BlockUse", "Sweep", "SweepState"]

_ENTRIES_OF_A_WALK = 4
"""One more move with levels along for so many entries that no row reads."""
_USUAL, _SMALL, _SHARE = 1.0, 0.4, 0.1
"""Sizes of Crank-Nicolson moves, and the share of the small ones, which are for blocks that are far
from normal."""


class SweepState(NamedTuple):
    """What is learnt while tuning: random walks of entries that no row reads, and of mean levels.

    Attributes
    ----------
    alone : RandomWalkState, HamiltonianState or None
        Given the levels; None where there are no such entries.
    along : tuple of RandomWalkState
        With the levels of each factor along.
    shifts : tuple of RandomWalkState
        Of the mean level of each factor but the first, with the levels of the first one along.
    """

    alone: UntouchedState | None
    along: tuple[RandomWalkState, ...]
    shifts: tuple[RandomWalkState, ...]


@dataclass(frozen=True)
class BlockUse:
    """What a block took in a sweep.

    Attributes
    ----------
    accepted : float
        Share of its decisions that accepted.
    n_rows : int
        Rows that were read.
    """

    accepted: float
    n_rows: int

    @classmethod
    def of(cls, moves: list[Moved]) -> "BlockUse":
        """The mean acceptance and all rows of some moves."""
        accepted = sum(move.accepted for move in moves) / len(moves)
        return cls(accepted, sum(move.n_rows for move in moves))


@dataclass(frozen=True, eq=False)
class Sweep:
    """Metropolis within Gibbs for a model with groups.

    Attributes
    ----------
    posterior : GroupedPosterior
    untouched : UntouchedEntries or None
        Entries that no row reads.
    walk : RandomWalkProposal
        Moves that take levels along.
    """

    posterior: GroupedPosterior
    untouched: UntouchedEntries | None
    walk: RandomWalkProposal = field(default_factory=RandomWalkProposal)

    @property
    def blocks(self) -> tuple[str, ...]:
        """Names of the blocks, as they are counted."""
        factors = tuple(
            levels.names.strip("[]").replace(", ", "_") for levels in self.posterior.factors
        )
        common = ("common",) if self.posterior.common is not None else ()
        return (*(("untouched",) if self.untouched is not None else ()), *factors, *common)

    def init(self) -> SweepState:
        """State of a chain that begins."""
        shifts = tuple(
            self.walk.init(Layout.continuous(levels.entries.shape[1]))
            for levels in self.posterior.factors[1:]
        )
        if self.untouched is None:
            return SweepState(None, (), shifts)
        layout = Layout.continuous(self.untouched.entries.size)
        along = self.walk.init(layout, self.untouched.about)
        n_factors = len(self.posterior.factors)
        return SweepState(self.untouched.init(), (along,) * n_factors, shifts)

    def freeze(self, state: SweepState) -> SweepState:
        """State in which the tuning phase ends."""
        freeze, untouched = self.walk.freeze, self.untouched
        return SweepState(
            None if untouched is None or state.alone is None else untouched.freeze(state.alone),
            tuple(freeze(walk) for walk in state.along),
            tuple(freeze(walk) for walk in state.shifts),
        )

    def begin(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """A point to start from: a draw of the normal approximation of each block."""
        its = self.posterior
        point = its.anchor.copy()
        if self.untouched is not None:
            own, about = self.untouched.entries, self.untouched.about
            point[own] = about.mean + about.root @ rng.standard_normal(own.size)
        if its.common is not None:
            noise = rng.standard_normal(its.common.entries.size)
            point[its.common.entries] += its.common.root @ noise
        for factor, levels in enumerate(its.factors):
            _, normals = its.level_normals(factor, point)
            noise = rng.standard_normal(levels.anchor.shape)
            point[levels.entries] = levels.anchor + normals.values(noise)
        return point

    def step(
        self,
        theta: NDArray[np.float64],
        state: SweepState,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> tuple[NDArray[np.float64], SweepState, dict[str, BlockUse]]:
        """Move every block; random walks learn while the chain is tuning."""
        uses: list[BlockUse] = []
        if self.untouched is not None:
            theta, state, use = self._untouched(theta, state, rng, tuning=tuning)
            uses.append(use)
        for factor in range(len(self.posterior.factors)):
            moved = move_levels(self.posterior, factor, theta, _size(rng), rng)
            theta = moved.point
            done = [moved]
            if factor > 0:
                moved, state = self._shifted(factor, theta, state, rng, tuning=tuning)
                theta = moved.point
                done.append(moved)
            uses.append(BlockUse.of(done))
        if self.posterior.common is not None:
            theta, use = self._common(theta, rng)
            uses.append(use)
        return theta, state, dict(zip(self.blocks, uses, strict=True))

    def _untouched(
        self,
        theta: NDArray[np.float64],
        state: SweepState,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> tuple[NDArray[np.float64], SweepState, BlockUse]:
        assert self.untouched is not None and state.alone is not None
        moved, alone = self.untouched.move(theta, state.alone, rng, tuning=tuning)
        theta, done, along = moved.point, [moved], list(state.along)
        for factor in range(len(along)):
            for _ in range(1 + self.untouched.entries.size // _ENTRIES_OF_A_WALK):
                moved, walk = self._walked(factor, theta, along[factor], rng, tuning=tuning)
                theta, along[factor] = moved.point, walk
                done.append(moved)
        return theta, state._replace(alone=alone, along=tuple(along)), BlockUse.of(done)

    def _shifted(
        self,
        factor: int,
        theta: NDArray[np.float64],
        state: SweepState,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> tuple[Moved, SweepState]:
        """All levels of a factor by the same amount, with the levels of the first one along.

        Rows that read one level of each depend on their sum, so that one mean level can rise and
        the other fall, which moves of single levels do slowly.
        """
        its, walk = self.posterior, state.shifts[factor - 1]
        entries = its.factors[factor].entries
        before = theta[entries].mean(axis=0)
        there, log_ratio, walk = self.walk.propose(walk, before, rng)
        values = theta[entries] + (there - before)
        moved = move_with_levels(its, 0, theta, entries, values, log_ratio, rng)
        if tuning:
            after = moved.point[entries].mean(axis=0)
            walk = self.walk.tune(walk, Outcome(before, after, moved.accepted > 0, moved.n_rows))
        shifts = (*state.shifts[: factor - 1], walk, *state.shifts[factor:])
        return moved, state._replace(shifts=shifts)

    def _walked(
        self,
        factor: int,
        theta: NDArray[np.float64],
        walk: RandomWalkState,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> tuple[Moved, RandomWalkState]:
        """One random walk of the untouched entries, with the levels of a factor along."""
        its, entries = self.posterior, self.posterior.untouched
        before = theta[entries]
        there, log_ratio, walk = self.walk.propose(walk, before, rng)
        moved = move_with_levels(its, factor, theta, entries, there, log_ratio, rng)
        if tuning:
            outcome = Outcome(before, moved.point[entries], moved.accepted > 0.0, moved.n_rows)
            walk = self.walk.tune(walk, outcome)
        return moved, walk

    def _common(
        self, theta: NDArray[np.float64], rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], BlockUse]:
        """Common entries given the levels, and with the levels of one factor along."""
        its, common = self.posterior, self.posterior.common
        assert common is not None
        first = move_common(its, theta, _size(rng), rng)
        theta = first.point
        own = common.entries
        mean = its.anchor[own] + common.marginal_mean
        z = common.marginal_inverse_root @ (theta[own] - mean)
        there, log_ratio = crank_nicolson(z, _size(rng), rng)
        factor, values = int(rng.integers(len(its.factors))), mean + common.marginal_root @ there
        second = move_with_levels(its, factor, theta, own, values, float(log_ratio), rng)
        return second.point, BlockUse.of([first, second])


def _size(rng: np.random.Generator) -> float:
    return _SMALL if rng.random() < _SHARE else _USUAL
