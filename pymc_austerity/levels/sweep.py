"""A sweep: every block of a model with groups moves."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels.jointly import JointBlock, move_jointly
from pymc_austerity.levels.moves import (
    AlongWithLevels,
    Moved,
    move_common,
    move_levels,
)
from pymc_austerity.levels.posterior import GroupedPosterior
from pymc_austerity.levels.untouched import UntouchedEntries, UntouchedState
from pymc_austerity.proposals import Layout, Outcome, RandomWalkProposal, RandomWalkState
from pymc_austerity.proposals.adaptation import ScaleSearch

__all__ = ["BlockUse", "Sweep", "SweepState"]

_FEWEST_STEPS, _MOST_STEPS, _ENTRIES_MOVED = 2, 20, 5_000
"""Steps of a random walk with levels along, and entries of the model times steps."""
_USUAL, _SMALL, _SHARE = 1.0, 0.4, 0.1
"""Sizes of Crank-Nicolson moves, and the share of the small ones, which are for blocks that are far
from normal."""
_TARGET = 0.4
"""Acceptance that the size of joint moves is tuned to, where it is not higher at full size."""


class SweepState(NamedTuple):
    """What is learnt while tuning: random walks of entries that no row reads, and of mean levels.

    Attributes
    ----------
    alone : RandomWalkState, HamiltonianState or None
        Given the levels; None where there are no such entries.
    along : tuple of RandomWalkState
        Of the hyperparameters of each factor that has some, with its levels along.
    shifts : tuple of RandomWalkState
        Of the mean level of each large factor but the first, with the levels of the first along.
    joint : ScaleSearch
        Largest size of joint moves.
    """

    alone: UntouchedState | None
    along: tuple[RandomWalkState, ...]
    shifts: tuple[RandomWalkState, ...]
    joint: ScaleSearch


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
    joint : JointBlock or None
        What moves with the levels of the first factor along, besides.
    walk : RandomWalkProposal
        Moves that take levels along.
    """

    posterior: GroupedPosterior
    untouched: UntouchedEntries | None
    joint: JointBlock | None
    walk: RandomWalkProposal = field(default_factory=RandomWalkProposal)

    @property
    def blocks(self) -> tuple[str, ...]:
        """Names of the blocks, as they are counted."""
        factors = tuple(
            levels.names.strip("[]").replace(", ", "_") for levels in self.posterior.factors
        )
        untouched = ("untouched",) if self.untouched is not None else ()
        common = ("common",) if self.posterior.common is not None else ()
        joint = ("joint",) if self.joint is not None else ()
        return (*untouched, *factors, *common, *joint)

    def init(self) -> SweepState:
        """State of a chain that begins."""
        shifts = tuple(
            self.walk.init(Layout.continuous(self.posterior.factors[factor].entries.shape[1]))
            for factor in self._shifted_factors()
        )
        size = ScaleSearch.begin(_USUAL, largest=_USUAL)
        if self.untouched is None:
            return SweepState(None, (), shifts, size)
        untouched, along = self.untouched, []
        for factor in self._with_hyperparameters():
            hyperparameters = self.posterior.factors[factor].prior.hyperparameters
            own = np.isin(untouched.entries, hyperparameters)
            about = untouched.about.marginal(own)
            along.append(self.walk.init(Layout.continuous(int(own.sum())), about))
        return SweepState(untouched.init(), tuple(along), shifts, size)

    def _shifted_factors(self) -> list[int]:
        """Numbers of the factors, but the first, that are too large to be moved at once."""
        moved = [] if self.joint is None else [number for number, _ in self.joint.factors]
        return [k for k in range(1, len(self.posterior.factors)) if k not in moved]

    def _with_hyperparameters(self) -> list[int]:
        """Numbers of the factors whose prior depends on what no row reads."""
        factors = self.posterior.factors
        return [k for k, levels in enumerate(factors) if levels.prior.hyperparameters.size]

    def freeze(self, state: SweepState) -> SweepState:
        """State in which the tuning phase ends."""
        freeze, untouched = self.walk.freeze, self.untouched
        return SweepState(
            None if untouched is None or state.alone is None else untouched.freeze(state.alone),
            tuple(freeze(walk) for walk in state.along),
            tuple(freeze(walk) for walk in state.shifts),
            state.joint.end(),
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
        shifts = dict(zip(self._shifted_factors(), state.shifts, strict=True))
        for factor in range(len(self.posterior.factors)):
            moved = move_levels(self.posterior, factor, theta, _size(rng), rng)
            theta, done = moved.point, [moved]
            if factor in shifts:
                moved, shifts[factor] = self._shifted(
                    factor, theta, shifts[factor], rng, tuning=tuning
                )
                theta = moved.point
                done.append(moved)
            uses.append(BlockUse.of(done))
        state = state._replace(shifts=tuple(shifts.values()))
        if self.posterior.common is not None:
            moved = move_common(self.posterior, theta, _size(rng), rng)
            theta = moved.point
            uses.append(BlockUse.of([moved]))
        if self.joint is not None:
            size = _size(rng) * state.joint.scale
            moved = move_jointly(self.posterior, self.joint, theta, size, rng)
            theta = moved.point
            if tuning:
                joint = state.joint.step(moved.accepted > 0.0, _TARGET)
                state = state._replace(joint=joint)
            uses.append(BlockUse.of([moved]))
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
        for number, factor in enumerate(self._with_hyperparameters()):
            for n_steps in _walk_lengths(theta.size):
                moved, along[number] = self._walked(
                    factor, n_steps, theta, along[number], rng, tuning=tuning
                )
                theta = moved.point
                done.append(moved)
        return theta, state._replace(alone=alone, along=tuple(along)), BlockUse.of(done)

    def _shifted(
        self,
        factor: int,
        theta: NDArray[np.float64],
        walk: RandomWalkState,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> tuple[Moved, RandomWalkState]:
        """All levels of a factor by the same amount, with the levels of the first one along.

        Rows that read one level of each depend on their sum, so that one mean level can rise and
        the other fall, which moves of single levels do slowly.
        """
        its = self.posterior
        entries = its.factors[factor].entries
        before = theta[entries].mean(axis=0)
        there, log_ratio, walk = self.walk.propose(walk, before, rng)
        along = AlongWithLevels(its, 0, theta, entries)
        along.move(theta[entries] + (there - before), log_ratio, rng)
        moved = along.decide(rng)
        if tuning:
            after = moved.point[entries].mean(axis=0)
            walk = self.walk.tune(walk, Outcome(before, after, moved.accepted > 0, moved.n_rows))
        return moved, walk

    def _walked(
        self,
        factor: int,
        n_steps: int,
        theta: NDArray[np.float64],
        walk: RandomWalkState,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> tuple[Moved, RandomWalkState]:
        """A random walk of the hyperparameters of a factor, with its levels along."""
        entries = self.posterior.factors[factor].prior.hyperparameters
        along = AlongWithLevels(self.posterior, factor, theta, entries)
        for _ in range(n_steps):
            before = along.theta[entries]
            there, log_ratio, walk = self.walk.propose(walk, before, rng)
            accepted = along.move(there, log_ratio, rng)
            if tuning:
                outcome = Outcome(before, along.theta[entries], accepted, 0)
                walk = self.walk.tune(walk, outcome)
        return along.decide(rng), walk


def _size(rng: np.random.Generator) -> float:
    return _SMALL if rng.random() < _SHARE else _USUAL


def _walk_lengths(n_entries: int) -> tuple[int, int]:
    """Of random walks with levels along: one step, then many with one decision on rows."""
    return 1, min(max(_ENTRIES_MOVED // n_entries, _FEWEST_STEPS), _MOST_STEPS)
