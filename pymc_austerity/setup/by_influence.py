"""Rows that are sampled by influence, in memory or elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import (
    Influence,
    LargestScores,
    differences_of_all,
    influence_of_all,
)
from pymc_austerity.deciding.sampling import StratifiedSampling
from pymc_austerity.model import OneAtATime
from pymc_austerity.rows import (
    ArrayRows,
    Block,
    SharedRows,
    Store,
    StratifiedWindows,
    in_random_order,
)
from pymc_austerity.setup.source_rows import Labeled, NumberedBlocks
from pymc_austerity.setup.strata import (
    ByScore,
    expected_first_look,
    most_first_rows,
    strata_by_score,
    words_on_strata,
)
from pymc_austerity.setup.target import About, Target

_PAIRS_TO_CHECK = 4


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows whose influence is known: all of them, or a random sample of those in sources.

    Attributes
    ----------
    about : About
        Their expansion.
    influence : Influence
        Computes the scores.
    scores : float array, shape (n,)
        Influence of each row, nats.
    checked : list of float arrays, shape (n,), nats
        Residuals for some of the pilot pairs.
    """

    about: About
    influence: Influence
    scores: NDArray[np.float64]
    checked: list[NDArray[np.float64]]

    @classmethod
    def of(cls, about: About) -> "ScoredRows":
        """Measure the influence of the rows that are there at once."""
        function, pairs = about.residuals.function, about.pilot_pairs()
        rows = _rows_at_once(about)
        scores, influence = influence_of_all(function, pairs, rows)
        checked = [differences_of_all(function, *pair, rows) for pair in pairs[:_PAIRS_TO_CHECK]]
        return cls(about, influence, scores, checked)

    @property
    def n_first(self) -> int:
        """Rows of a first look, as far as they are known before the rows are divided."""
        n_rows = self.about.problem.likelihood.n_rows
        return expected_first_look(self.scores, n_rows, self.about.settings).n_rows

    def divided(self) -> "DividedRows":
        """The same rows in strata, without those that are known as they are."""
        about, scores, checked = self.about, self.scores, self.checked
        if about.kept is not None:
            scores = np.delete(scores, about.kept)
            checked = [np.delete(values, about.kept) for values in checked]
        largest, rng = self._largest(scores), about.problem.prepared.rng
        strata = strata_by_score(largest, scores, checked, about.settings, rng)
        return DividedRows(self, scores, strata, float(largest.falling[0]))

    def _largest(self, scores: NDArray[np.float64]) -> LargestScores:
        """The largest scores of all rows; one pass where these are in sources."""
        rows, settings = self.about.problem.prepared.from_sources, self.about.settings
        if rows is None:
            return LargestScores.of_all(scores, most_first_rows(settings, scores.size) + 1)
        most, scores_of = most_first_rows(settings, rows.n_rows) + 1, OneAtATime(self.influence)
        block_of, influence = self.about.residuals.block_of, self.influence

        def of_piece(blocks: NumberedBlocks) -> LargestScores:
            own = LargestScores(most)
            for _, block in blocks:
                own.add(scores_of(block_of(block)))
            return own

        largest = LargestScores(most)
        arguments = ("influence", influence.pairs, influence.weights, scores, most)
        for own in rows.in_pieces(of_piece, arguments=arguments):
            largest.join(own)
        return largest


def _rows_at_once(about: About) -> ArrayRows:
    rows = about.problem.prepared.from_sources
    if rows is None:
        return ArrayRows(about.residuals.arrays)
    assert rows.sample is not None
    return ArrayRows(about.residuals.block_of(rows.sample.window(0, rows.sample.n_rows)))


@dataclass(frozen=True, eq=False)
class DividedRows:
    """Rows that will be sampled by influence, before they are stored.

    Attributes
    ----------
    rows : ScoredRows
    scores : float array, shape (n,)
        Influence of each of them that is not known as it is, nats.
    strata : ByScore
        How they are divided.
    highest : float
        The highest finite score of all rows, nats.
    """

    rows: ScoredRows
    scores: NDArray[np.float64]
    strata: ByScore
    highest: float

    @property
    def n_first(self) -> int:
        """Rows of a first look, of rows that are all there."""
        return self.strata.strata(self._counts).n_first

    @property
    def _n_strata(self) -> int:
        return self.strata.first_counts.size

    @property
    def _counts(self) -> NDArray[np.int64]:
        """Of the rows that are there at once, in each stratum."""
        return np.bincount(self._labels, minlength=self._n_strata)

    @cached_property
    def _labels(self) -> NDArray[np.int64]:
        return self.strata.labels(self.scores)

    def target(self) -> Target:
        """Store the rows by stratum, to sample them."""
        about = self.rows.about
        function = about.residuals.function
        source, sizes, squares = self._stored()
        strata, present = self.strata.strata(sizes), sizes > 0
        deviations = np.sqrt(squares[present] / sizes[present])
        sampling = StratifiedSampling(function, StratifiedWindows(source, strata), deviations)
        n_take_all = int(sizes[0]) if self.strata.n_take_all else 0
        words = f"{words_on_strata(strata, n_take_all)}."
        return about.target(function, source, sampling, words)

    def _stored(self) -> tuple[Store, NDArray[np.int64], NDArray[np.float64]]:
        """All rows by their strata; number of rows and sum of squared scores of each stratum."""
        about, squares = self.rows.about, np.zeros(self._n_strata)

        def add(labels: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
            squares[:] += np.bincount(labels, np.minimum(scores, self.highest) ** 2, squares.size)

        rows, rng = about.problem.prepared.from_sources, about.problem.prepared.rng
        if rows is None:
            add(self._labels, self.scores)
            order = in_random_order(self._labels, rng)
            if about.kept is not None:
                order = np.delete(np.arange(self.rows.scores.size), about.kept)[order]
            return SharedRows(about.residuals.arrays, order), self._counts, squares
        block_of, scores_of = about.residuals.block_of, OneAtATime(self.rows.influence)

        def scored(_: int, block: Block) -> tuple[NDArray[np.float64], Block]:
            data = block_of(block)
            return scores_of(data), data

        def labeled() -> Iterator[Labeled]:
            for scores, block in rows.mapped_with_numbers(scored, here=True):
                own = self.strata.labels(scores)
                add(own, scores)
                yield own, block

        about.say("storing the rows in the order of sampling")
        return *rows.stored(labeled(), self._counts / self.scores.size, rng), squares
