"""Influence of the rows, what is left of their differences, and the sizes of first looks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from pymc_austerity.rows import Block, RowSource, blocks_of

_OPEN_AFTER_FIRST_LOOK = 0.5
"""Share of the decisions that may need a second look. Decisions that need many looks cost the same
wherever they start, so a small first look is cheap; a tiny one could not estimate spreads."""

_RESOLVING = 0.2
"""Twice the density of the sum at the threshold, per nat, times the overshoot of doubling looks.
Measured on real data, where it lies between 0.1 and 0.3."""


@dataclass(frozen=True, eq=False)
class ResidualFunction:
    """Wrapper that gives a compiled residual function its anchor.

    Parameters
    ----------
    function : callable
        ``f(proposed, current, anchor, *block)``; see `pymc_austerity.model.compile_residuals`.
    anchor : float array, shape (d,)
        Point of the expansion.
    """

    function: Callable[..., NDArray]
    anchor: NDArray

    def __call__(self, proposed: NDArray, current: NDArray, *block: NDArray) -> NDArray[np.float64]:
        """Residuals of the rows in the block, float64 array, shape (rows,), nats."""
        return self.function(proposed, current, self.anchor, *block)


def influence_scores(
    function: Callable[..., NDArray], pairs: Sequence[tuple[NDArray, NDArray]], source: RowSource
) -> NDArray[np.float64]:
    """Root mean square of the differences of each row over pilot pairs of points.

    The differences of a pair are divided by their own root mean square over the rows, so that
    every pair has the same weight, and multiplied by that of the median pair.

    Parameters
    ----------
    function : callable
        Row differences, or their residuals.
    pairs : sequence of (proposed, current)
        Pairs like those of a run.
    source : RowSource
        All rows.

    Returns
    -------
    float array, shape (n_rows,)
        Scores, nats; rows that are not finite for some pair get the largest one.
    """
    return influence_of_all(function, pairs, source)[0]


def influence_of_all(
    function: Callable[..., NDArray], pairs: Sequence[tuple[NDArray, NDArray]], source: RowSource
) -> tuple[NDArray[np.float64], "Influence"]:
    """The same scores, and a function that scores other residuals of these rows on that scale."""
    squares, sizes = np.zeros(source.n_rows), []
    for proposed, current in pairs:
        own = differences_of_all(function, proposed, current, source)
        np.square(own, out=own)
        mean_square = float(np.mean(own, where=np.isfinite(own)))
        sizes.append(mean_square)
        if mean_square > 0.0:
            own /= mean_square
            squares += own
    scores = np.sqrt(squares / len(pairs) * np.median(sizes))
    known = np.isfinite(scores)
    influence = Influence(function, pairs, _weights(np.array(sizes)))
    return np.where(known, scores, scores[known].max(initial=0.0)), influence


def _weights(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the squared differences of each pair, by their mean over the rows."""
    weights = np.zeros(sizes.size)
    np.divide(np.median(sizes), sizes, out=weights, where=sizes > 0.0)
    return weights / sizes.size


def differences_of_all(
    function: Callable[..., NDArray], proposed: NDArray, current: NDArray, source: RowSource
) -> NDArray[np.float64]:
    """Differences of all rows between two points, in the order in which they are stored.

    Returns
    -------
    float array, shape (n_rows,), nats
    """
    differences, done = np.empty(source.n_rows), 0
    for block in blocks_of(source):
        values = function(proposed, current, *block)
        differences[done : done + values.size] = values
        done += values.size
    return differences


@dataclass(frozen=True, eq=False)
class Influence:
    """`influence_scores` of rows block by block, where all rows are not read for each pair.

    Attributes
    ----------
    function : callable
        Row differences, or their residuals.
    pairs : sequence of (proposed, current)
        Pairs like those of a run.
    weights : float array, shape (number of pairs,)
        Of the squared differences of each pair.
    """

    function: Callable[..., NDArray]
    pairs: Sequence[tuple[NDArray, NDArray]]
    weights: NDArray[np.float64]

    def __call__(self, block: Block) -> NDArray[np.float64]:
        """Scores of the rows of a block, nats; infinite where they are not finite for a pair."""
        squares = np.zeros(len(block[0]))
        for (proposed, current), weight in zip(self.pairs, self.weights, strict=True):
            squares += weight * np.square(self.function(proposed, current, *block))
        return np.where(np.isfinite(squares), np.sqrt(squares), np.inf)


@dataclass(eq=False)
class LargestScores:
    """The largest scores of all rows, and their sum, added up block by block.

    Attributes
    ----------
    most : int
        Number of scores that are kept.
    n_rows : int
        Rows added so far.
    n_unknown : int
        Those of them with scores that are not finite.
    largest_known : float
        The largest finite score.
    sum_known : float
        Of finite scores.
    largest : float array, shape (n,)
        The largest scores, in any order.

    Examples
    --------
    >>> scores = LargestScores(2)
    >>> for block in ([1.0, 5.0], [np.inf, 3.0]):
    ...     scores.add(np.array(block))
    >>> scores.falling, scores.total
    (array([5., 5.]), 14.0)
    """

    most: int
    n_rows: int = 0
    n_unknown: int = 0
    largest_known: float = 0.0
    sum_known: float = 0.0
    largest: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of_all(cls, scores: NDArray[np.float64], most: int) -> "LargestScores":
        """Those of rows that are there at once."""
        found = cls(most)
        found.add(scores)
        return found

    @classmethod
    def of_sample(cls, scores: NDArray[np.float64], most: int, n_rows: int) -> "LargestScores":
        """Those to expect if all rows are like those of a sample."""
        known = cls.of_all(scores, scores.size)
        each = n_rows / scores.size
        places = (np.arange(min(most, n_rows)) / each).astype(np.int64)
        total, largest = each * known.total, known.falling[places]
        return cls(most, n_rows, 0, known.largest_known, total, largest)

    def add(self, scores: NDArray[np.float64]) -> None:
        """Add rows."""
        known = scores[np.isfinite(scores)]
        self.n_rows += scores.size
        self.n_unknown += scores.size - known.size
        self.sum_known += float(known.sum())
        self.largest_known = max(self.largest_known, float(known.max(initial=0.0)))
        self._keep(scores)

    def join(self, others: "LargestScores") -> None:
        """Add rows that were added up elsewhere."""
        self.n_rows += others.n_rows
        self.n_unknown += others.n_unknown
        self.sum_known += others.sum_known
        self.largest_known = max(self.largest_known, others.largest_known)
        self._keep(others.largest)

    def _keep(self, scores: NDArray[np.float64]) -> None:
        all_of_them = np.concatenate([self.largest, scores])
        if all_of_them.size > self.most:
            all_of_them = -np.partition(-all_of_them, self.most - 1)[: self.most]
        self.largest = all_of_them

    @property
    def falling(self) -> NDArray[np.float64]:
        """The largest scores, the first one first; infinite ones count as the largest finite."""
        return np.sort(np.minimum(self.largest, self.largest_known))[::-1]

    @property
    def total(self) -> float:
        """Sum of all scores."""
        return self.sum_known + self.n_unknown * self.largest_known


class FirstLookSizes(NamedTuple):
    """Sizes of a first look.

    Attributes
    ----------
    n_take_all : int
        Rows that every decision reads.
    n_strata : int
        Strata of the others.
    per_stratum : int
        Rows of each of them.
    expected_rows : float
        Rows of a decision on average, which may need further looks.
    """

    n_take_all: int
    n_strata: int
    per_stratum: int
    expected_rows: float

    @property
    def n_rows(self) -> int:
        """All of them."""
        return self.n_take_all + self.n_strata * self.per_stratum


def cheapest_first_look(
    largest: LargestScores, *, epsilon: float, n_strata: int, fewest_per_stratum: int, most: int
) -> FirstLookSizes:
    r"""Numbers of rows always read and of rows of each stratum, for the cheapest decisions.

    A look with standard error :math:`s` leaves a decision open if the sum of the differences lies
    within :math:`q s` of the threshold, :math:`q` the normal quantile of epsilon. The threshold
    is spread by :math:`\log u` with a density of at most 1 per nat, on average over the sum's own
    spread of about half of that, so this happens to a share of about :math:`q s`. With the rows in
    :math:`A` always read and the others in strata of the same total score, Neyman's allocation of
    :math:`n` rows has :math:`s = \sum_{i \notin A} r_i / \sqrt n`. That gives :math:`n(A)`.

    Decisions closer to the threshold continue until their standard error resolves the distance, or
    all rows are read; on average that takes a multiple of :math:`q \sqrt N \sum_{i \notin A} r_i`
    rows. The :math:`A` with the smallest total is chosen; if the first look is too large for every
    :math:`A`, that with the smallest :math:`s`.

    Parameters
    ----------
    largest : LargestScores
        Standard deviations of rows' differences over decisions, :math:`r_i`, nats; at least `most`
        of them, or all.
    epsilon : float
        Of the test.
    n_strata : int
        Strata besides the rows that are always read.
    fewest_per_stratum : int
        Rows that an estimate of the spread within a stratum needs.
    most : int
        Largest first look in rows, unless `n_strata` with `fewest_per_stratum` are more.
    """
    falling, total, n_rows = largest.falling, largest.total, largest.n_rows
    quantile = float(norm.isf(max(epsilon, 1e-6)))
    candidates = np.unique(np.concatenate([[0], np.geomspace(10, max(most, 11), 40)]).astype(int))
    fewest = n_strata * fewest_per_stratum
    fits = (candidates + fewest <= most) & (candidates < n_rows)
    candidates = candidates[fits | (candidates == 0)]
    left = np.maximum(total - np.concatenate([[0.0], np.cumsum(falling)])[candidates], 0.0)
    wanted = (quantile * left / _OPEN_AFTER_FIRST_LOOK) ** 2
    n_sampled, room = np.maximum(wanted, fewest), np.maximum(most - candidates, fewest)
    further = np.minimum(_RESOLVING * quantile * np.sqrt(n_rows) * left, n_rows)
    affordable = candidates + n_sampled <= most
    cost = candidates + n_sampled + further
    if affordable.any():
        best = int(np.argmin(np.where(affordable, cost, np.inf)))
    else:  # as small a standard error as the most rows give
        best = int(np.argmin(left / np.sqrt(room)))
    per_stratum = min(np.ceil(n_sampled[best] / n_strata), room[best] // n_strata)
    sizes = int(candidates[best]), n_strata, int(per_stratum)
    return FirstLookSizes(*sizes, expected_rows=float(cost[best]))
