"""How the rows are divided into strata, and how many of each the first look reads."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import FirstLookSizes, LargestScores, cheapest_first_look
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.design import NormalityCheck, first_look_statistics
from pymc_austerity.rows import equal_total_score, in_random_order
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
