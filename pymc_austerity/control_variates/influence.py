"""How badly the expansion fits each row, measured on pilot pairs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.rows import Block, RowSource, blocks_of

__all__ = [
    "Influence",
    "LargestScores",
    "differences_of_all",
    "influence_of_all",
    "influence_scores",
]


def influence_scores(
    function: Callable[..., NDArray],
    pairs: Sequence[tuple[NDArray, NDArray]],
    source: RowSource,
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
    function: Callable[..., NDArray],
    pairs: Sequence[tuple[NDArray, NDArray]],
    source: RowSource,
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

    @classmethod
    def by_sample(
        cls,
        function: Callable[..., NDArray],
        pairs: Sequence[tuple[NDArray, NDArray]],
        differences: Sequence[NDArray[np.float64]],
    ) -> "Influence":
        """Scores by the root mean square of the differences of some rows, for each pair."""
        squares = (np.square(own[np.isfinite(own)]) for own in differences)
        sizes = np.array([own.mean() if own.size else 0.0 for own in squares])
        return cls(function, pairs, _weights(sizes))

    def of(self, function: Callable[..., NDArray]) -> "Influence":
        """The same for other residuals."""
        return replace(self, function=function)

    def of_all(self, source: RowSource) -> NDArray[np.float64]:
        """Scores of all rows of a source, nats."""
        return np.concatenate([self(block) for block in blocks_of(source)])

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
