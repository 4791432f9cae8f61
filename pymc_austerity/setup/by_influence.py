"""Rows that are sampled by influence, with an expansion of the order that pays."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import (
    FirstLookSizes,
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
from pymc_austerity.setup.leaves import NumberedBlocks
from pymc_austerity.setup.plans import About, Plan
from pymc_austerity.setup.source_rows import Labeled
from pymc_austerity.setup.strata import (
    FEWEST_FIRST_ROWS,
    STRATA_IF_NORMAL,
    ByScore,
    cheapest,
    most_first_rows,
    strata_by_score,
    words_on_strata,
)
from pymc_austerity.setup.third_order import NotThirdOrderError, cubic_rows_of, with_third_order

__all__ = ["DividedRows", "ScoredRows", "of_best_order"]

_PAIRS_TO_CHECK = 4

_MOST_ENTRIES = 60
"""With more, contracting the terms would take about as long as reading the rows that they save."""

_SHARE = 0.98
"""Share of the total influence; the rows with the rest gain nothing from third-order terms."""

_OPERATIONS = 1e9
"""Multiplications and additions for the sum of third derivatives: a third of a second."""

_OPERATIONS_OF_A_ROW = 2_000
"""Operations for the third derivatives of a row, besides the products of its columns."""

_FEWEST_SAVED = 250
"""Fewest rows to save at each decision. Reading them takes 30 microseconds, and contracting the
terms of 37 parameters less than five. Tens of thousands of decisions make up for a second of
set-up."""


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
    detail : str
        Further details of the expansion, as a sentence.
    """

    about: About
    influence: Influence
    scores: NDArray[np.float64]
    checked: list[NDArray[np.float64]]
    detail: str = ""

    @classmethod
    def of(cls, about: About) -> "ScoredRows":
        """Measure the influence of the rows that are there at once."""
        function, pairs = about.residuals.function, about.pilot_pairs()
        rows = _rows_at_once(about)
        scores, influence = influence_of_all(function, pairs, rows)
        checked = [differences_of_all(function, *pair, rows) for pair in pairs[:_PAIRS_TO_CHECK]]
        return cls(about, influence, scores, checked)

    @property
    def expected_rows(self) -> float:
        """Expected number of rows of a decision."""
        return self._expected.expected_rows

    @property
    def first_rows(self) -> int:
        """Expected number of rows of a first look."""
        return self._expected.n_take_all + STRATA_IF_NORMAL * self._expected.per_stratum

    @cached_property
    def _expected(self) -> FirstLookSizes:
        settings, n_rows = self.about.settings, self.about.problem.likelihood.n_rows
        most = most_first_rows(settings, n_rows) + 1
        return cheapest(LargestScores.of_sample(self.scores, most, n_rows), settings)

    def divided(self) -> "DividedRows":
        """The same rows in strata, without those that are known as they are."""
        about, scores, checked = self.about, self.scores, self.checked
        if about.kept is not None:
            scores = np.delete(scores, about.kept.which)
            checked = [np.delete(values, about.kept.which) for values in checked]
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


class DividedRows(NamedTuple):
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
        return self.strata.strata(np.bincount(self._labels, minlength=self._n_strata)).n_first

    @property
    def _n_strata(self) -> int:
        return self.strata.first_counts.size

    @property
    def _labels(self) -> NDArray[np.int64]:
        return self.strata.labels(self.scores)

    def plan(self) -> Plan:
        """Store the rows by stratum, and plan to sample them."""
        about = self.rows.about
        function = about.residuals.function
        source, sizes, squares = self._stored()
        strata, present = self.strata.strata(sizes), sizes > 0
        deviations = np.sqrt(squares[present] / sizes[present])
        sampling = StratifiedSampling(function, StratifiedWindows(source, strata), deviations)
        n_take_all = int(sizes[0]) if self.strata.n_take_all else 0
        details = self.rows.detail, f"{words_on_strata(strata, n_take_all)}."
        return about.plan(function, source, sampling, *filter(None, details))

    def _stored(self) -> tuple[Store, NDArray[np.int64], NDArray[np.float64]]:
        """All rows by their strata; number of rows and sum of squared scores of each stratum."""
        about, labels, n_strata = self.rows.about, self._labels, self._n_strata
        squares = np.zeros(n_strata)

        def add(labels: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
            squares[:] += np.bincount(labels, np.minimum(scores, self.highest) ** 2, n_strata)

        sizes, rng = np.bincount(labels, minlength=n_strata), about.problem.prepared.rng
        rows, kept = about.problem.prepared.from_sources, about.kept
        if rows is None:
            add(labels, self.scores)
            order = in_random_order(labels, rng)
            if kept is not None:
                order = np.delete(np.arange(self.rows.scores.size), kept.which)[order]
            return SharedRows(about.residuals.arrays, order), sizes, squares
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
        return *rows.stored(labeled(), sizes / labels.size, rng), squares


def of_best_order(second: ScoredRows) -> ScoredRows:
    """The same rows with an expansion of third order, where it is requested or saves time.

    Raises
    ------
    NotThirdOrderError
        A third-order expansion is requested, and there is none.
    """
    if second.about.settings.order == 3:
        return _of_third_order(second)
    if not _may_save_time(second):
        return second
    try:
        third = _of_third_order(second)
    except NotThirdOrderError:
        return second
    return third if second.expected_rows - third.expected_rows >= _FEWEST_SAVED else second


def _may_save_time(second: ScoredRows) -> bool:
    """Whether third-order terms should be tried on the pilot pairs."""
    settings = second.about.settings
    if settings.control_variates != "auto" or settings.test != "auto" or settings.is_exact:
        return False
    is_small = second.about.anchor.point.size <= _MOST_ENTRIES
    return is_small and second.expected_rows >= FEWEST_FIRST_ROWS + _FEWEST_SAVED


def _of_third_order(second: ScoredRows) -> ScoredRows:
    """The same rows, with third-order terms for those with the most influence."""
    which = _most_influential(second.scores, second.about.anchor.point.size)
    cubic = cubic_rows_of(second.about, which)
    about = with_third_order(second.about, cubic)
    function, arrays = about.residuals.function, about.residuals.arrays
    some = ArrayRows([*cubic.rows.window(0, which.size), arrays[-1][which]])
    influence = second.influence.of(function)
    scores, checked = second.scores.copy(), [values.copy() for values in second.checked]
    scores[which] = np.minimum(influence.of_all(some), scores.max())
    for values, pair in zip(checked, influence.pairs, strict=False):
        values[which] = differences_of_all(function, *pair, some)
    detail = f"The {which.size:,} rows with the most influence have terms of third order."
    return ScoredRows(about, influence, scores, checked, detail)


def _most_influential(scores: NDArray[np.float64], size: int) -> NDArray[np.intp]:
    """The fewest rows with nearly all the influence, or as many as set-up can afford."""
    falling = np.argsort(-scores)
    held = np.cumsum(scores[falling])
    n_rows = int(np.searchsorted(held, _SHARE * held[-1])) + 1
    each = size * size * (size + 1) // 2 + _OPERATIONS_OF_A_ROW
    return np.sort(falling[: min(n_rows, int(_OPERATIONS / each))])
