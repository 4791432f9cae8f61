"""A sweep, in which every block of a model with groups moves, and the rows that it reads."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import Verdicts
from pymc_austerity.exact import Inflation
from pymc_austerity.levels.joint import JointBlock, PartlyNonCentered, Shares, move_jointly
from pymc_austerity.levels.learned import Learned
from pymc_austerity.levels.moves import (
    Moved,
    NestedLevels,
    Ridges,
    move_along,
    move_common,
    move_levels,
)
from pymc_austerity.levels.posterior import GroupedPosterior
from pymc_austerity.levels.prior_only import Exchange, PriorOnlyEntries, PriorOnlyState
from pymc_austerity.proposals import Layout, Outcome, RandomWalkProposal, RandomWalkState
from pymc_austerity.proposals.adaptation import Average, ScaleSearch

_STEPS_OF_AN_ENTRY, _MOST_STEPS, _ENTRIES_MOVED = 3, 20, 100_000
"""Steps of a random walk that moves levels along: for each entry that walks, and in all; and the
entries that all walks of a sweep may move."""

_FAR, _NEAR, _SHARE, _LEAST = 0.0, 0.9, 0.1, 0.05
"""Correlations of Crank-Nicolson moves of the joint block, and the share of those that stay near,
which are for blocks that are far from normal; and the least share of steps in other blocks."""

_WORTH = 2.0
"""Steps of a random walk in the common entries that a draw of their approximation is worth."""

_ENOUGH = 0.85
"""Acceptance to keep, as a share of that with all rows: rows cost, but so does the rest of a
sweep."""

_TARGET = 0.4
"""Acceptance to which the sizes of joint moves and the lengths of walks are tuned."""

_STEP_OF_A_LINE = ScaleSearch.begin(2.4)
"""Size of a step along a line in standard deviations (Gelman, Roberts and Gilks 1996)."""

_STEPS_ALONG_RIDGES = 3
"""In a sweep, along each: a random walk needs about four to forget where it began."""

_PILOT_SWEEPS, _PILOT_ENTRIES, _PILOT_ROWS = 100, 1_000_000, 5_000_000
"""Limits of the run, which takes about a second at most."""

_BEFORE_A_MEAN, _FOR_A_MEAN = 30, 20
"""Points before those of a mean, and the fewest of these."""


class SweepState(NamedTuple):
    """What is learned during tuning: random walks of entries that no row reads, sizes of moves.

    Attributes
    ----------
    alone : RandomWalkState, HamiltonianState or None
        Given the levels; None where there are no such entries.
    along : tuple of RandomWalkState
        For the hyperparameters of each factor that has some, moved together with its levels.
    lengths : tuple of ScaleSearch
        Number of steps of such a walk per decision.
    joint : ScaleSearch
        Size of joint moves, as a share of the usual one.
    inflations : dict of str to Inflation
        Factors of the bounds of rows, by the kind of move.
    exchange : ScaleSearch
        Size of steps that change no predictor.
    learned : Learned
        Of normal approximations.
    drawn : dict of str to Average
        Draws of normal approximations that are accepted, as a share, by the kind of move: of each
        level of a factor, or of the common entries.
    near : dict of str to float array
        Probability of a step of a random walk in place of such a draw.
    ridges : ScaleSearch
        Size of steps along ridges, in standard deviations.
    """

    alone: PriorOnlyState | None
    along: tuple[RandomWalkState, ...]
    lengths: tuple[ScaleSearch, ...]
    joint: ScaleSearch
    inflations: dict[str, Inflation]
    exchange: ScaleSearch
    learned: Learned
    drawn: dict[str, Average]
    near: dict[str, NDArray[np.float64]]
    ridges: ScaleSearch = _STEP_OF_A_LINE

    def inflation(self, kind: str) -> float:
        """Factor of the bounds of rows for a kind of move."""
        return self.inflations[kind].value if kind in self.inflations else 1.0

    def accepting(self, kind: str, moved: Moved) -> "SweepState":
        """The state after one more decision on each level of a factor, or on common entries."""
        is_near, accept = moved.drawn
        known = self.drawn.get(kind, Average.begin(np.ones(accept.size)))
        drawn = self.drawn | {kind: known.step(np.where(is_near, np.nan, accept))}
        near = self.near | {kind: _chance_of_steps(kind, drawn[kind])}
        return self._replace(drawn=drawn, near=near)

    def noting(self, kind: str, moved: Moved) -> "SweepState":
        """The state after one more decision of this kind."""
        known = self.inflations.get(kind, Inflation.begin(1.0, _ENOUGH))
        if not moved.n_rows:
            return self
        known = known.after(moved.ratios, moved.n_rows, moved.log_ratio)
        return self._replace(inflations=self.inflations | {kind: known})


def _chance_of_steps(kind: str, drawn: Average) -> NDArray[np.float64]:
    """Probability of a step of a random walk, for each level or for all common entries.

    A level of which many draws are rejected may have been in a tail all the time; steps in many
    common entries lead less far than a draw.
    """
    accepted = drawn.value
    rejected = 1.0 - (_WORTH * accepted if kind == "common" else accepted * accepted)
    return np.maximum(np.minimum(rejected, 1.0 - _SHARE), _LEAST)


@dataclass(frozen=True)
class BlockUse:
    """Cost and acceptance of a block in a sweep.

    Attributes
    ----------
    accepted : float
        Share of its decisions that accepted.
    n_rows : int
        Rows that were read.
    verdicts : tuple of Verdicts
        Of its sequential tests.
    """

    accepted: float
    n_rows: int
    verdicts: tuple[Verdicts, ...] = ()

    @classmethod
    def of(cls, moves: list[Moved]) -> "BlockUse":
        """The mean acceptance and all rows of some moves."""
        accepted = sum(move.accepted for move in moves) / len(moves)
        verdicts = tuple(move.verdicts for move in moves if move.verdicts is not None)
        return cls(accepted, sum(move.n_rows for move in moves), verdicts)


@dataclass(frozen=True, eq=False)
class Sweep:
    """Metropolis within Gibbs for a model with groups.

    Attributes
    ----------
    posterior : GroupedPosterior
    untouched : PriorOnlyEntries or None
        Entries that no row reads.
    joint : JointBlock or None
        Directions in common entries and levels of smaller factors, which move at once.
    tilts : tuple of float array
        For each factor, the gradient of the remainder of the expansion along its hyperparameters,
        moved together with its levels.
    shares : Shares
        Shares of the sweeps that make moves which a Gibbs sampler does not have.
    exchange : Exchange or None
        Moves along which no predictor changes.
    nested : tuple of NestedLevels
        Factors whose levels are within those of another.
    ridges : Ridges or None
        Directions in which levels, the means of their prior and common entries move at once.
    walk : RandomWalkProposal
        Proposals of moves that move levels along.
    learned : Learned
        What chains know when they begin.
    """

    posterior: GroupedPosterior
    untouched: PriorOnlyEntries | None
    joint: JointBlock | None
    tilts: tuple[NDArray[np.float64], ...]
    shares: Shares
    exchange: Exchange | None = None
    nested: tuple[NestedLevels, ...] = ()
    ridges: Ridges | None = None
    walk: RandomWalkProposal = field(default_factory=RandomWalkProposal)
    learned: Learned = field(default_factory=lambda: Learned({}, {}))

    @cached_property
    def blocks(self) -> tuple[str, ...]:
        """Names of the blocks, in the order in which a sweep moves them."""
        names = ["untouched"] if self.untouched is not None else []
        last = ["common"] if self.posterior.common is not None else []
        last += ["joint"] if self.joint is not None else []
        last += ["exchange"] if self.exchange is not None else []
        last += ["ridges"] if self.ridges is not None else []
        for levels in self.posterior.factors:
            name = levels.names.strip("[]").replace(", ", "_")
            taken = {"untouched", "common", "joint", "exchange", "ridges", *names}
            others = (f"{name}_{number}" for number in count(2))
            names.append(next(free for free in chain([name], others) if free not in taken))
        return (*names, *last)

    @property
    def blocks_of_levels(self) -> tuple[str, ...]:
        """Names of those that are levels of a factor."""
        first = int(self.untouched is not None)
        return self.blocks[first : first + len(self.posterior.factors)]

    def init(self) -> SweepState:
        """State at the beginning of a chain."""
        size = ScaleSearch.begin(1.0, largest=1.0)
        steps = ScaleSearch.begin(1.0) if self.exchange is None else self.exchange.begin()
        if self.untouched is None:
            return SweepState(None, (), (), size, {}, steps, self.learned, {}, {})
        untouched, along, factors = self.untouched, [], self.posterior.factors
        for factor in self._with_hyperparameters():
            hyperparameters = self.posterior.factors[factor].prior.hyperparameters
            own = np.isin(untouched.entries, hyperparameters)
            about = untouched.about.marginal(own)
            along.append(self.walk.init(Layout.continuous(int(own.sum())), about))
        possible = max(_ENTRIES_MOVED // max(self.posterior.anchor.size * len(along), 1), 1)
        longest = [
            min(possible, _MOST_STEPS, _STEPS_OF_AN_ENTRY * factors[k].prior.hyperparameters.size)
            for k in self._with_hyperparameters()
        ]
        lengths = tuple(ScaleSearch.begin(float(n), largest=float(n)) for n in longest)
        walks = untouched.init(), tuple(along), lengths
        return SweepState(*walks, size, {}, steps, self.learned, {}, {})

    def _with_hyperparameters(self) -> list[int]:
        """Numbers of the factors whose prior depends on entries that no row reads."""
        factors = self.posterior.factors
        return [k for k, levels in enumerate(factors) if levels.prior.hyperparameters.size]

    def freeze(self, state: SweepState) -> SweepState:
        """State at the end of the tuning phase."""
        freeze, untouched = self.walk.freeze, self.untouched
        drawn = {kind: each.end() for kind, each in state.drawn.items()}
        return SweepState(
            None if untouched is None or state.alone is None else untouched.freeze(state.alone),
            tuple(freeze(walk) for walk in state.along),
            tuple(length.end() for length in state.lengths),
            state.joint.end(),
            state.inflations,
            state.exchange.end(),
            state.learned.end(),
            drawn,
            {kind: _chance_of_steps(kind, each) for kind, each in drawn.items()},
            state.ridges.end(),
        )

    def begin(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """A point to start from: a draw of the normal approximation of each block."""
        its = self.posterior
        point = its.anchor.copy()
        if self.untouched is not None:
            own, about = self.untouched.entries, self.untouched.about
            point[own] = about.mean + about.root @ rng.standard_normal(own.size)
        if its.common is not None:
            own, root = its.common.entries, its.common.root
            noise = rng.standard_normal(own.size) + self.learned.offset("common")
            point[own] += root @ (root.T @ its.common.shift + noise)
        for factor, levels in enumerate(its.factors):
            _, normals = its.level_normals(factor, point)
            split, shape = self.learned.split(f"levels {factor}"), levels.anchor.shape
            standard = rng.standard_normal(shape) if split is None else split.drawn(rng)
            point[levels.entries] = levels.anchor + normals.values(standard)
        if self.ridges is not None:
            along = self.ridges.directions
            point += rng.standard_normal(len(along)) @ along
        return point

    def step(
        self,
        theta: NDArray[np.float64],
        state: SweepState,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> tuple[NDArray[np.float64], SweepState, dict[str, BlockUse]]:
        """Move every block; random walks adapt while the chain is tuning."""
        run = _Run(self, theta, state, rng, tuning)
        for mean in self.posterior.means:
            run.theta = mean.drawn(self.posterior.factors, run.theta, rng)
        uses = [] if self.untouched is None else [run.untouched()]
        for factor in range(len(self.posterior.factors)):
            uses.append(BlockUse.of([run.levels(factor)]))
        if self.posterior.common is not None:
            uses.append(run.common())
        if self.joint is not None:
            uses.append(run.joint(self.joint))
        for nested in self.nested:
            run.theta = nested.drawn(self.posterior.factors, run.theta, rng)
        if self.exchange is not None:
            moved, steps = self.exchange.move(
                self.posterior, run.theta, run.state.exchange, rng, tuning=tuning
            )
            run.state = run.state._replace(exchange=steps)
            uses.append(BlockUse.of([run.made(moved)]))
        if self.ridges is not None:
            along = np.repeat(self.ridges.directions, _STEPS_ALONG_RIDGES, axis=0)
            uses.append(BlockUse.of([run.ridge(own) for own in along]))
        return run.theta, run.state, dict(zip(self.blocks, uses, strict=True))


@dataclass
class _Run:
    """One sweep: where the chain is, and what it learns."""

    sweep: Sweep
    theta: NDArray[np.float64]
    state: SweepState
    rng: np.random.Generator
    tuning: bool

    def made(self, moved: Moved, kind: str = "") -> Moved:
        """Go where a move leads; what a kind of decision took is noted while the chain tunes."""
        self.theta = moved.point
        if self.tuning and kind:
            self.state = self.state.noting(kind, moved)
        return moved

    def centered(self, moved: Moved, kind: str) -> Moved:
        """The same move; where the entries were is noted while the chain tunes."""
        if self.tuning:
            learned = self.state.learned.centered(kind, moved.distance)
            self.state = self.state._replace(learned=learned)
        return moved

    def accepting(self, moved: Moved, kind: str) -> Moved:
        """The same move; which draws were accepted is noted while the chain tunes."""
        if self.tuning:
            self.state = self.state.accepting(kind, moved)
        return moved

    def levels(self, factor: int) -> Moved:
        """Move the levels of a factor."""
        kind, learned = f"levels {factor}", self.state.learned
        near = self.state.near.get(kind, _LEAST)
        where = self.sweep.posterior, factor, self.theta, near, self.rng
        moved = self.accepting(move_levels(*where, learned.split(kind)), kind)
        if self.tuning:
            self.state = self.state._replace(learned=learned.shaped(kind, moved.distance))
        return self.made(moved)

    def common(self) -> BlockUse:
        """Move the common entries."""
        where = self.sweep.posterior, self.theta, self.state.near.get("common", _LEAST), self.rng
        known = self.state.inflation("common"), self.state.learned.offset("common")
        moved = self.accepting(self.centered(move_common(*where, *known), "common"), "common")
        return BlockUse.of([self.made(moved, "common")])

    def joint(self, block: JointBlock) -> BlockUse:
        """Move the joint block, in some of the sweeps."""
        if _left_out(self.sweep.shares.joint, self.rng):
            return BlockUse(math.nan, 0)
        far = 1.0 - self.state.joint.scale * (1.0 - _correlation(self.rng))
        where = (self.sweep.posterior, block, self.theta)
        known = self.state.inflation("joint"), self.state.learned.offset("joint")
        moved = self.centered(move_jointly(*where, far, self.rng, *known), "joint")
        if self.tuning:
            joint = self.state.joint.step(moved.accepted > 0.0, _TARGET)
            self.state = self.state._replace(joint=joint)
        return BlockUse.of([self.made(moved, "joint")])

    def ridge(self, direction: NDArray[np.float64]) -> Moved:
        """Move along a ridge."""
        search = self.state.ridges
        where = self.sweep.posterior, search.scale * direction, self.theta, self.rng
        moved = self.made(move_along(*where, self.state.inflation("ridges")), "ridges")
        if self.tuning:
            accepted = moved.accepted > 0.0
            self.state = self.state._replace(ridges=search.step(accepted, _TARGET))
        return moved

    @property
    def _apart(self) -> NDArray[np.float64]:
        """What ridges have made of the point, which a walk that learns its spread leaves out."""
        if self.sweep.ridges is None or not self.tuning:
            return np.zeros(self.theta.size)
        return self.sweep.ridges.part(self.theta)

    def untouched(self) -> BlockUse:
        """Move entries that no row reads, by themselves and with the levels that depend on them."""
        sweep, posterior = self.sweep, self.sweep.posterior
        walks, lengths = list(self.state.along), list(self.state.lengths)
        assert sweep.untouched is not None and self.state.alone is not None
        where = self.theta, self.state.alone, self.rng
        moved, alone = sweep.untouched.move(*where, tuning=self.tuning, apart=self._apart)
        done = [self.made(moved)]
        for number, factor in enumerate(sweep._with_hyperparameters()):
            if _left_out(sweep.shares.along[factor], self.rng):
                continue
            own, tilt = posterior.factors[factor].prior.hyperparameters, sweep.tilts[factor]
            along = PartlyNonCentered(posterior, factor, self.theta, own, tilt)
            moved, walks[number] = self._walked(along, factor, walks[number])
            its = along, factor, walks[number], lengths[number]
            longer, lengths[number] = self._walked_far(*its)
            done += [moved, longer]
        self.state = self.state._replace(alone=alone, along=tuple(walks), lengths=tuple(lengths))
        return BlockUse.of(done)

    def _walked(
        self, along: PartlyNonCentered, factor: int, walk: RandomWalkState
    ) -> tuple[Moved, RandomWalkState]:
        """One step of the hyperparameters of a factor together with its levels."""
        entries, kind = along.entries, f"near {factor}"
        before = self.theta[entries]
        there, log_ratio, walk = self.sweep.walk.propose(walk, before, self.rng)
        moved = along.jump(there, log_ratio, self.rng, self.state.inflation(kind))
        part = self._apart[entries]
        self.made(moved, kind)
        return moved, self._tuned(walk, before - part, self.theta[entries] - part, moved)

    def _walked_far(
        self, along: PartlyNonCentered, factor: int, walk: RandomWalkState, length: ScaleSearch
    ) -> tuple[Moved, ScaleSearch]:
        """Several steps, as if the expansion of the rows were exact, and one decision."""
        kind = f"far {factor}"
        along.walk(walk, max(round(length.scale), 1), self.rng)
        has_moved = along.theta is not self.theta
        moved = self.made(along.decide(self.rng, self.state.inflation(kind)), kind)
        if self.tuning and has_moved:
            length = length.step(moved.accepted > 0.0, _TARGET)
        return moved, length

    def _tuned(
        self, walk: RandomWalkState, before: NDArray, after: NDArray, moved: Moved
    ) -> RandomWalkState:
        if not self.tuning:
            return walk
        outcome = Outcome(before, after, moved.accepted > 0.0, moved.n_rows)
        return self.sweep.walk.tune(walk, outcome)


def _left_out(share: float, rng: np.random.Generator) -> bool:
    """Whether a sweep omits a move that only a share of the sweeps makes."""
    return share < 1.0 and bool(rng.random() >= share)


def _correlation(rng: np.random.Generator) -> float:
    return _NEAR if rng.random() < _SHARE else _FAR


class Pilot(NamedTuple):
    """What a few sweeps show before chains begin.

    Attributes
    ----------
    typical_rows, mean_rows : float
        Median and mean number of rows that a sweep reads, over the second half of the sweeps.
    learned : Learned
        Of normal approximations.
    mean : float array, shape (d,)
        Mean of the points after the first 30 sweeps.
    accepted : float
        Share of the decisions on levels that accepted, in the second half of the sweeps.
    is_long : bool
        Whether there were enough of these points for their mean to be known.
    """

    typical_rows: float
    mean_rows: float
    learned: Learned
    mean: NDArray[np.float64]
    accepted: float
    is_long: bool


def pilot_sweeps(sweep: Sweep, most_rows: int = _PILOT_ROWS) -> Pilot:
    """Make at most 100 sweeps from a draw of the normal approximation, which tune like a chain.

    Parameters
    ----------
    sweep : Sweep
        Its moves.
    most_rows : int
        Rows to read, which the last sweep may exceed.
    """
    rng, state = np.random.default_rng(7), sweep.init()
    point, n_rows = sweep.begin(rng), [0]
    most, sums, accepted = min(_PILOT_SWEEPS, _PILOT_ENTRIES // point.size), 0.0 * point, []
    while len(n_rows) <= max(most, 1) and sum(n_rows) < most_rows:
        point, state, uses = sweep.step(point, state, rng, tuning=True)
        n_rows.append(sum(use.n_rows for use in uses.values()))
        accepted.append([uses[name].accepted for name in sweep.blocks_of_levels])
        if len(n_rows) > _BEFORE_A_MEAN:
            sums += point
    half, n_summed = (len(n_rows) + 1) // 2, len(n_rows) - _BEFORE_A_MEAN
    later = float(np.median(n_rows[half:])), float(np.mean(n_rows[half:]))
    share = float(np.mean(accepted[half - 1 :]))
    return Pilot(*later, state.learned, sums / max(n_summed, 1), share, n_summed >= _FOR_A_MEAN)
