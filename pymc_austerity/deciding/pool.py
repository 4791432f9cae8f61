"""Exact decisions from rows that were drawn before the chains, in a pass over all of them."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.poisson import PoissonSampling
from pymc_austerity.deciding.pool_draws import DrawnAhead, PoolDraws, StoredDraws
from pymc_austerity.deciding.stored_rows import StoredResiduals, rows_named
from pymc_austerity.exact import BoundViolatedError, ExactDecision, log_weight, rates_of
from pymc_austerity.exact.firefly import bounds_at

__all__ = ["SETUP", "Pool", "PooledSampling", "RowsInGroups"]

_log = logging.getLogger("pymc.austerity")

SETUP = 0
"""The part of the pool that set-up reuses; chain k has part k + 1."""

_MORE_PARTS, _MOST_PARTS = 3, 8
"""How many times as many draws as a part has the first pass of a chain makes, and how many a later
one may make, unless a decision needs more."""


class RowsInGroups(Protocol):
    """All rows, whose groups are known during passes."""

    def draw(self, counts: NDArray[np.int64], seed: tuple[int, ...]) -> StoredDraws:
        """Draw given numbers of rows from each group, uniformly with replacement, group by group.

        The draws of a group are independent, and their order is independent of them.
        """
        ...

    def sum_over(
        self, function: Callable[..., NDArray], groups: NDArray[np.bool_]
    ) -> tuple[float, int]:
        """Sum of a function of blocks of rows over all rows of some groups, and their number."""
        ...


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows that are available without a pass.

    Attributes
    ----------
    stored : StoredDraws
        All rows of some groups, then the draws of one part after another, group by group.
    whole : int array, shape (G,)
        Where the rows of each completely stored group begin; -1 for other groups.
    lengths : int array, shape (G,)
        Number of draws of each group in a part; 0 for groups that are stored completely.
    n_parts : int
        Number of parts: one for set-up, and one for each chain.
    seed : int
        Seed of the draws.
    """

    stored: StoredDraws
    whole: NDArray[np.int64]
    lengths: NDArray[np.int64]
    n_parts: int
    seed: int

    def begin(self, part: int) -> NDArray[np.int64]:
        """Where the draws of each group begin in a part, shape (G,)."""
        n_whole = self.stored.rows.n_rows - self.n_parts * int(self.lengths.sum())
        starts = np.cumsum(self.lengths) - self.lengths
        return n_whole + part * int(self.lengths.sum()) + starts


@dataclass(frozen=True, eq=False, kw_only=True)
class PooledSampling(PoissonSampling):
    r"""Poisson sampling of rows that stay where they are, from draws that were made in advance.

    Parameters
    ----------
    pool : Pool
        Available rows.
    everywhere : RowsInGroups
        All rows, for passes.

    Notes
    -----
    Candidates of a decision are uniform draws from groups, independent of each other, of the chain
    and of all earlier decisions. A draw may be made in advance as long as nothing in the chain
    depends on it before it is used: every draw is used for one candidate only, in an order that was
    fixed at random. The number of draws, and the time of further ones, depends only on the counts
    of candidates, which do not depend on unused draws. So the candidates have the same distribution
    as those of `PoissonSampling`, and the posterior is exactly invariant.

    Groups that are stored completely are drawn from directly, and are read completely if
    their bound is above 1. For other groups, this takes a pass over all rows, and so do decisions
    beyond the largest radius.
    """

    pool: Pool
    everywhere: RowsInGroups

    def draws_of(self, part: int) -> PoolDraws:
        """The draws of set-up or of a chain, all of them unused."""
        n_groups = self.groups.n_groups
        lengths = self.pool.lengths
        draws = PoolDraws(part, np.zeros_like(lengths), lengths, _MORE_PARTS * lengths)
        if part >= self.pool.n_parts:  # more chains than parts: this one draws for itself
            self._refill(draws, np.zeros(n_groups, dtype=np.int64))
        return draws

    def is_bounded_at(self, point: NDArray) -> bool:
        """Whether the log-likelihood of every row is finite at a point, by its bounds."""
        return bool(np.isfinite(bounds_at(self.whitened(point), self.groups)).all())

    def decide(
        self,
        proposed: NDArray,
        current: NDArray,
        log_ratio: float,
        inflation: float,
        rng: np.random.Generator,
        draws: PoolDraws | None = None,
    ) -> ExactDecision:
        """Accept or reject a proposal.

        Parameters
        ----------
        proposed, current, log_ratio, inflation, rng
            As for `PoissonSampling.decide`.
        draws : PoolDraws, optional
            The chain's used draws, which are updated. By default, those of set-up are used, from
            the first one on. Set-up uses draws more than once, and takes the expansion as exact if
            rows are not available.
        """
        draws = draws or self.draws_of(SETUP)
        u, v = self.whitened(current), self.whitened(proposed)
        n_read, bounds, totals = rates_of(u, v, inflation, self.groups)
        loose, at_hand = np.isinf(bounds), self.pool.whole >= 0
        n_far = 0
        if draws.part != SETUP and n_read and (loose & ~at_hand).any():
            far, n_far = self._sum_of_far(proposed, current, loose & ~at_hand)
            log_ratio += far
        which = self._groups_of_candidates(totals, rng)
        stored, candidates = self._taken(which, draws, rng)
        read = self._all_of(loose & at_hand)
        function = StoredResiduals(self.function, stored.rows)
        pooled = StoredResiduals(self.function, self.pool.stored.rows)
        near = at_hand[which]
        found = np.empty(which.size)
        found[near] = pooled(proposed, current, candidates[near])
        found[~near] = function(proposed, current, candidates[~near])
        whole = pooled(proposed, current, read)
        residuals = np.concatenate([whole, found])
        weight, violated = log_weight(residuals, bounds[which], rng, self.groups.rounding)
        if violated >= 0:
            k = violated - whole.size
            numbers = (self.pool.stored if near[k] else stored).numbers
            with rows_named(numbers):
                raise BoundViolatedError(
                    int(candidates[k]), float(found[k]), float(bounds[which[k]])
                )
        total = log_ratio + weight
        accept = bool(np.log1p(-rng.random()) < total)
        n_used = n_far + read.size + which.size
        return ExactDecision(accept, n_used, total, found / bounds[which])

    def _groups_of_candidates(
        self, totals: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        total = totals[-1]
        shares = rng.random(rng.poisson(total)) * total
        # rounding must not lead beyond the last group that has candidates
        return np.minimum(totals.searchsorted(shares, side="right"), totals.searchsorted(total))

    def _taken(
        self, which: NDArray[np.int64], draws: PoolDraws, rng: np.random.Generator
    ) -> tuple[StoredDraws, NDArray[np.int64]]:
        """Where the candidates of some groups are stored."""
        whole, sizes = self.pool.whole[which], np.diff(self.groups.starts)[which]
        direct = whole + (rng.random(which.size) * sizes).astype(np.int64)
        counts = np.bincount(which[whole < 0], minlength=self.groups.n_groups)
        missing = draws.used + counts > draws.lengths
        if missing.any():
            if draws.part == SETUP:
                draws.used[missing] = 0
                counts = np.minimum(counts, draws.lengths)
            else:
                self._refill(draws, counts)
        stored, begin = self.stored_of(draws)
        ranks = _ranks(which)
        if draws.part == SETUP:
            ranks = ranks % np.maximum(draws.lengths[which], 1)
        pooled = begin[which] + draws.used[which] + ranks
        draws.used = draws.used + counts
        return stored, np.where(whole >= 0, direct, pooled)

    def stored_of(self, draws: PoolDraws) -> tuple[StoredDraws, NDArray[np.int64]]:
        """Where the draws of a chain are, and where those of each group begin."""
        if draws.n_refills and draws.own is None:
            draws.own = self.everywhere.draw(draws.lengths, self._seed(draws.part, draws.n_refills))
        if draws.own is None:
            return self.pool.stored, self.pool.begin(draws.part)
        return draws.own, np.cumsum(draws.lengths) - draws.lengths

    def draw_ahead(self, draws: PoolDraws) -> None:
        """Begin to draw what follows, in a thread, if the draws of a chain run low.

        The chain gets the same draws without it, and waits for them.
        """
        if draws.part == SETUP or draws.ahead is not None or not draws.run_low:
            return
        seed = self._seed(draws.part, draws.n_refills + 1)
        draws.ahead = DrawnAhead(self.everywhere.draw, draws.following, seed)

    def _refill(self, draws: PoolDraws, needed: NDArray[np.int64]) -> None:
        """New draws for a chain that has used up those of a group; remaining ones are discarded.

        The numbers of those that follow these depend on what was used of the last ones.
        """
        draws.n_refills += 1
        pooled, used = self.pool.whole < 0, draws.used
        draws.lengths = np.where(pooled, np.maximum(draws.following, 2 * needed), 0)
        more = np.where(pooled, draws.lengths + 2 * (used + needed), 0)
        share = min(1.0, _MOST_PARTS * self.pool.lengths.sum() / max(more.sum(), 1))
        draws.following = (share * more).astype(np.int64)
        draws.used = np.zeros_like(used)
        ahead, draws.ahead, draws.own = draws.ahead, None, None
        seed = self._seed(draws.part, draws.n_refills)
        if ahead is not None:
            draws.own = ahead.result(draws.lengths, seed)
        if draws.own is None:
            draws.own = self.everywhere.draw(draws.lengths, seed)
        _log.info(
            "A chain has used the rows that were drawn for it: %s more were drawn in a pass over "
            "all %s rows%s.",
            f"{int(draws.lengths.sum()):,}",
            f"{self.groups.n_rows:,}",
            "" if ahead is None else ", while the chain went on",
        )

    def _seed(self, part: int, n_refills: int) -> tuple[int, ...]:
        return (self.pool.seed, part, n_refills)

    def _all_of(self, groups: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Where all rows of some groups are stored."""
        chosen = np.flatnonzero(groups)
        sizes = np.diff(self.groups.starts)[chosen]
        begins = self.pool.whole[chosen]
        return np.arange(int(sizes.sum())) + np.repeat(begins - np.cumsum(sizes) + sizes, sizes)

    def _sum_of_far(
        self, proposed: NDArray, current: NDArray, groups: NDArray[np.bool_]
    ) -> tuple[float, int]:
        n_rows = int(np.diff(self.groups.starts)[groups].sum())
        _log.info(
            "A decision between points far from the anchor reads %s rows in a pass over all of "
            "them.",
            f"{n_rows:,}",
        )
        return self.everywhere.sum_over(
            lambda *block: self.function(proposed, current, *block), groups
        )


def _ranks(which: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many entries before each one are equal to it."""
    order = np.argsort(which, kind="stable")
    ordered = which[order]
    firsts = np.searchsorted(ordered, ordered)
    ranks = np.empty(which.size, dtype=np.int64)
    ranks[order] = np.arange(which.size) - firsts
    return ranks
