"""Strata, and rows that are sampled from them by influence, in memory or elsewhere."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import (
    FirstLookSizes,
    Influence,
    LargestScores,
    cheapest_first_look,
    differences_of_all,
    influence_of_all,
)
from pymc_austerity.deciding.sampling import StratifiedSampling
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.design import NormalityCheck, first_look_statistics
from pymc_austerity.model import OneAtATime
from pymc_austerity.rows import (
    ArrayRows,
    Block,
    SharedRows,
    Store,
    StratifiedWindows,
    equal_total_score,
    in_random_order,
)
from pymc_austerity.setup.source_rows import Labeled, NumberedBlocks
from pymc_austerity.setup.target import About, Target
from pymc_austerity.strata import Strata

_STRATA = 32
FEWEST_PER_STRATUM = 10
"""Many narrow strata with few rows each: rows of a stratum are similar, so that a few represent it.
Together they are 320 rows. With fewer strata the t-test is wrong several times as often as nominal
where residuals are skewed; with 8 strata, more decisions go on to tens of thousands of rows."""

STRATA_IF_NORMAL = 16
"""Half of the rows and four fifths of the time, where the t statistic is distributed as assumed."""

FEWEST_FIRST_ROWS = STRATA_IF_NORMAL * FEWEST_PER_STRATUM
"""Fewest rows of a first look, unless the user requests fewer."""

_SAMPLES = 3_000
_TOLERATED = 1.3
"""Largest probability of a tail of the t statistic with half of the strata, relative to that of
Student's t; sampling error alone leads to 1.1 in two pairs of points."""

_FEWEST_STRATA = 4
"""With fewer there is little to gain over uniform samples."""

_MOST_FIRST_ROWS = 20_000


_TIMES_AS_MANY = 3
"""Fewest rows of a sample in each stratum, relative to a first look, that represent all rows."""


class ByScore(NamedTuple):
    """Strata as ranges of scores.

    Attributes
    ----------
    ascending : float array, shape (H - 1,)
        Nats; a stratum has the rows above one of them, and not above the next.
    first_counts : int array, shape (H,)
        Rows of each that the first look reads; of the first one all, if `n_take_all` is not 0.
    n_take_all : int
        Rows above the last threshold, or more if scores tie; 0 if these are not always read.
    """

    ascending: NDArray[np.float64]
    first_counts: NDArray[np.int64]
    n_take_all: int

    def labels(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """The stratum of each row; the first one has the highest scores."""
        return self.ascending.size - np.searchsorted(self.ascending, scores)

    def strata(self, sizes: NDArray[np.int64]) -> Strata:
        """The strata that have rows, from the number of rows in each, shape (H,)."""
        counts = np.minimum(sizes, self.first_counts)
        if self.n_take_all:
            counts[0] = sizes[0]
        return Strata(sizes[sizes > 0], counts[sizes > 0])


def has_room_for_strata(settings: Settings) -> bool:
    """Whether a first look of the user's size can be divided among some strata."""
    return most_strata(settings) >= _FEWEST_STRATA


def strata_by_score(
    largest: LargestScores,
    scores: NDArray[np.float64],
    differences: Sequence[NDArray[np.float64]],
    settings: Settings,
    rng: np.random.Generator,
) -> ByScore:
    """Strata by influence, fewer than usual if these suffice for the t-test.

    The rows with the highest scores are always read; the others are in strata of the same total
    score. These need the same number of rows (Neyman's allocation, as far as the scores are the
    standard deviations). Any scores give a valid test; good ones a cheap one.

    Parameters
    ----------
    largest : LargestScores
        Those of all rows.
    scores : float array, shape (n,)
        Influence of all rows, or of rows drawn at random.
    differences : sequence of float arrays, shape (n,), nats
        Their differences, or residuals, between some pairs of points.
    settings : Settings
        What the user chose.
    rng : numpy.random.Generator
        Draws first looks to test.
    """
    most = most_strata(settings)
    if most > STRATA_IF_NORMAL:
        few = _divided(largest, scores, STRATA_IF_NORMAL, settings)
        if _suffices(few, largest.n_rows, scores, differences, settings.tail, rng):
            return few
    return _divided(largest, scores, most, settings)


def cheapest_sizes(largest: LargestScores, settings: Settings, n_strata: int) -> FirstLookSizes:
    """First look that the settings determine for a number of strata."""
    return cheapest_first_look(
        largest,
        epsilon=settings.tail,
        n_strata=n_strata,
        fewest_per_stratum=FEWEST_PER_STRATUM,
        most=most_first_rows(settings, largest.n_rows),
    )


def expected_first_look(
    scores: NDArray[np.float64], n_rows: int, settings: Settings
) -> FirstLookSizes:
    """First look to expect if all rows are like some of them, and half as many strata suffice."""
    most = most_first_rows(settings, n_rows) + 1
    return cheapest_sizes(LargestScores.of_sample(scores, most, n_rows), settings, STRATA_IF_NORMAL)


def words_on_strata(strata: Strata, n_take_all: int) -> str:
    """How rows are sampled, as a sentence without its full stop."""
    always = f", {n_take_all:,} of them always the same" if n_take_all else ""
    return (
        f"{strata.n_rows:,} rows sampled by influence in {strata.sizes.size} strata, "
        f"{strata.n_first:,} at the first look{always}"
    )


def most_first_rows(settings: Settings, n_rows: int) -> int:
    """Largest number of rows of a first look."""
    return min(settings.batch_size or _MOST_FIRST_ROWS, n_rows // 2)


def most_strata(settings: Settings) -> int:
    """Largest number of strata that the user's first look can fill."""
    if settings.batch_size is None:
        return _STRATA
    return min(_STRATA, settings.batch_size // FEWEST_PER_STRATUM)


def _divided(
    largest: LargestScores, scores: NDArray[np.float64], n_strata: int, settings: Settings
) -> ByScore:
    n_take_all, _, per_stratum, _ = cheapest_sizes(largest, settings, n_strata)
    top = largest.falling[n_take_all] if n_take_all else np.inf
    others = np.sort(scores[scores <= top])[::-1]
    edges = others[equal_total_score(others, n_strata)]
    ascending = np.unique(np.append(edges, top) if n_take_all else edges)
    # where scores tie, a stratum has the total score of several, and is sampled as often
    totals = np.bincount(
        ascending.size - np.searchsorted(ascending, others), others, ascending.size + 1
    )
    shares = totals / max(totals.sum(), np.finfo(float).tiny)
    times = np.maximum(np.rint(n_strata * shares).astype(np.int64), 1)
    return ByScore(ascending, np.maximum(per_stratum * times, 2), n_take_all)


def _suffices(
    few: ByScore,
    n_rows: int,
    scores: NDArray[np.float64],
    differences: Sequence[NDArray[np.float64]],
    tail: float,
    rng: np.random.Generator,
) -> bool:
    """Whether first looks at some rows, or all, have a t statistic with the tails of Student's."""
    labels = few.labels(scores)
    order = in_random_order(labels, rng)
    order = order[np.searchsorted(labels[order], 1 if few.n_take_all else 0) :]
    present, sizes = np.unique(labels[order], return_counts=True)
    counts = few.first_counts[present]
    if scores.size < n_rows and (sizes < _TIMES_AS_MANY * counts).any():
        return False
    stored = [values[order] for values in differences]
    if not all(np.isfinite(values).all() for values in stored):
        return False
    strata = Strata(sizes, np.minimum(counts, sizes))
    samples = first_look_statistics(stored, strata, n_samples=_SAMPLES, rng=rng)
    check = NormalityCheck(*samples, epsilon=tail)
    return max(check.tail_shares) <= _TOLERATED * check.tail


# ------------------------------------------------------------------ their rows

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
