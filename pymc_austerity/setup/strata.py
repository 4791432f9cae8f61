"""How the rows are divided into strata, and how many of each a decision looks at first."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import (
    LargestScores,
    first_look_sizes,
    sizes_of_largest,
)
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.design import NormalityCheck, first_look_statistics
from pymc_austerity.rows import equal_total_score, strata_by_score
from pymc_austerity.strata import Strata

__all__ = [
    "FEWEST_FIRST_ROWS",
    "Stratification",
    "Thresholds",
    "first_look_of_sample",
    "has_room_for_strata",
    "most_first_rows",
    "stratify",
    "thresholds_of_sample",
    "words_on_strata",
]

_STRATA = 32
_FEWEST_PER_STRATUM = 10
"""Many narrow strata with few rows each: rows of a stratum are alike, and one hides little. All
together are 320 rows. With fewer the t-test errs several times as often as it says where
residuals are skewed; in 8 strata, more decisions go on to tens of thousands of rows."""

_STRATA_IF_NORMAL = 16
"""Half of the rows and four fifths of the time, where the t statistic is as it should be."""

FEWEST_FIRST_ROWS = _STRATA_IF_NORMAL * _FEWEST_PER_STRATUM
"""Rows of a first look where the user does not ask for fewer."""

_SAMPLES = 3_000
_TOLERATED = 1.3
"""A tail of the t statistic that is so many times as heavy as it should be, with half of the
strata; sampling error alone leads to 1.1 in two pairs of points."""

_FEWEST_STRATA = 4
"""With fewer there is little to gain over uniform samples."""

_MOST_FIRST_ROWS = 20_000

_TIMES_AS_MANY = 3
"""Rows of a sample in each stratum, next to a first look, from which on it stands for all rows."""


class Stratification(NamedTuple):
    """Rows divided into strata.

    Attributes
    ----------
    order : int array, shape (N,)
        Rows in the order in which to store them.
    strata : Strata
        Stretches of the stored rows.
    n_take_all : int
        Rows of the first stretch, which every decision sees; 0 for none.
    """

    order: NDArray[np.intp]
    strata: Strata
    n_take_all: int


def has_room_for_strata(settings: Settings) -> bool:
    """Whether a first look as small as the user wants it can be spread over some strata."""
    return _most_strata(settings) >= _FEWEST_STRATA


def stratify(
    scores: NDArray[np.float64],
    differences: Sequence[NDArray[np.float64]],
    settings: Settings,
    rng: np.random.Generator,
) -> Stratification:
    """Strata of influence, as few as the t-test can do with.

    Parameters
    ----------
    scores : float array, shape (N,)
        Influence of each row.
    differences : sequence of float arrays, shape (N,), nats
        Differences of all rows, or their residuals, between some pairs of points.
    settings : Settings
        What the user chose.
    rng : numpy.random.Generator
        Source of the order within strata.
    """
    most = _most_strata(settings)
    if most > _STRATA_IF_NORMAL:
        few = _divided(scores, _STRATA_IF_NORMAL, settings, rng)
        if _is_normal(few, differences, settings.tail, rng):
            return few
    return _divided(scores, most, settings, rng)


def words_on_strata(strata: Strata, n_take_all: int) -> str:
    """How rows are sampled, as a sentence without its full stop."""
    always = f", {n_take_all:,} of them always the same" if n_take_all else ""
    return (
        f"{strata.n_rows:,} rows sampled by influence in {strata.sizes.size} strata, "
        f"{strata.n_first:,} at the first look{always}"
    )


def most_first_rows(settings: Settings, n_rows: int) -> int:
    """Rows of a first look at most."""
    return min(settings.batch_size or _MOST_FIRST_ROWS, n_rows // 2)


def _most_strata(settings: Settings) -> int:
    """As many as the rows that the user allows for can fill."""
    if settings.batch_size is None:
        return _STRATA
    return min(_STRATA, settings.batch_size // _FEWEST_PER_STRATUM)


def _divided(
    scores: NDArray[np.float64], n_strata: int, settings: Settings, rng: np.random.Generator
) -> Stratification:
    n_take_all, per_stratum = first_look_sizes(
        scores,
        epsilon=settings.tail,
        n_strata=n_strata,
        fewest_per_stratum=_FEWEST_PER_STRATUM,
        most=most_first_rows(settings, scores.size),
    )
    order, strata = strata_by_score(
        scores, n_take_all=n_take_all, n_strata=n_strata, per_stratum=per_stratum, rng=rng
    )
    return Stratification(order, strata, n_take_all)


def _is_normal(
    stratification: Stratification,
    differences: Sequence[NDArray[np.float64]],
    tail: float,
    rng: np.random.Generator,
) -> bool:
    """Whether first looks at these differences have a t statistic with the tails of Student's."""
    order, strata, _ = stratification
    return _has_usual_tails([values[order] for values in differences], strata, tail, rng)


def _has_usual_tails(
    stored: list[NDArray[np.float64]],
    strata: Strata,
    tail: float,
    rng: np.random.Generator,
) -> bool:
    if not all(np.isfinite(values).all() for values in stored):
        return False
    samples = first_look_statistics(stored, strata, n_samples=_SAMPLES, rng=rng)
    check = NormalityCheck(*samples, epsilon=tail)
    return max(check.tail_shares) <= _TOLERATED * check.tail


# ------------------------------------------------------------------ rows that are elsewhere


class Thresholds(NamedTuple):
    """Scores between which the strata lie.

    Attributes
    ----------
    ascending : float array, shape (H - 1,)
        Nats; a stratum has the rows above one of them, and not above the next.
    n_take_all : int
        Rows above the last one, or fewer; 0 if these are not always read.
    per_stratum : int
        Rows of each of the other strata that the first look sees.
    """

    ascending: NDArray[np.float64]
    n_take_all: int
    per_stratum: int

    def labels(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """The stratum of each row; the first one has the highest scores."""
        return self.ascending.size - np.searchsorted(self.ascending, scores)

    def strata(self, sizes: NDArray[np.int64]) -> Strata:
        """The strata that have rows, from the number of rows in each, shape (H,)."""
        counts = np.minimum(sizes, max(2, self.per_stratum))
        if self.n_take_all:
            counts[0] = sizes[0]
        return Strata(sizes[sizes > 0], counts[sizes > 0])


def thresholds_of_sample(
    largest: LargestScores,
    scores: NDArray[np.float64],
    differences: Sequence[NDArray[np.float64]],
    settings: Settings,
    rng: np.random.Generator,
) -> Thresholds:
    """Strata as `stratify` makes them, from a sample of the rows and the largest scores of all.

    The rows that are always read are the same. There are fewer strata only if the sample is large
    enough to tell that they suffice.

    Parameters
    ----------
    largest : LargestScores
        Of all rows.
    scores : float array, shape (n,)
        Influence of rows drawn at random.
    differences : sequence of float arrays, shape (n,), nats
        Their differences, or residuals, between some pairs of points.
    settings, rng
        As for `stratify`.
    """
    most = _most_strata(settings)
    if most > _STRATA_IF_NORMAL:
        few = _between(largest, scores, _STRATA_IF_NORMAL, settings)
        if _suffices(few, scores, differences, settings.tail, rng):
            return few
    return _between(largest, scores, most, settings)


def first_look_of_sample(scores: NDArray[np.float64], n_rows: int, settings: Settings) -> int:
    """Rows of a first look, if all rows are like those of a sample.

    Parameters
    ----------
    scores : float array, shape (n,)
        Influence of rows drawn at random.
    n_rows : int
        Number of all rows.
    settings : Settings
        What the user chose.
    """
    known = LargestScores(scores.size)
    known.add(scores)
    each = n_rows / scores.size
    most = most_first_rows(settings, n_rows)
    places = (np.arange(min(most + 1, n_rows)) / each).astype(np.int64)
    n_take_all, per_stratum = sizes_of_largest(
        known.falling[places],
        each * known.total,
        n_rows,
        epsilon=settings.tail,
        n_strata=_STRATA_IF_NORMAL,
        fewest_per_stratum=_FEWEST_PER_STRATUM,
        most=most,
    )
    return n_take_all + _STRATA_IF_NORMAL * per_stratum


def _between(
    largest: LargestScores, scores: NDArray[np.float64], n_strata: int, settings: Settings
) -> Thresholds:
    """Thresholds of about the same total score, below the rows that are always read."""
    falling = largest.falling
    n_take_all, per_stratum = sizes_of_largest(
        falling,
        largest.total,
        largest.n_rows,
        epsilon=settings.tail,
        n_strata=n_strata,
        fewest_per_stratum=_FEWEST_PER_STRATUM,
        most=most_first_rows(settings, largest.n_rows),
    )
    top = falling[n_take_all] if n_take_all else np.inf
    others = np.sort(scores[scores <= top])[::-1]
    edges = others[equal_total_score(others, n_strata)]
    ascending = np.unique(np.append(edges, top) if n_take_all else edges)
    return Thresholds(ascending, n_take_all, per_stratum)


def _suffices(
    few: Thresholds,
    scores: NDArray[np.float64],
    differences: Sequence[NDArray[np.float64]],
    tail: float,
    rng: np.random.Generator,
) -> bool:
    """Whether first looks at a sample have a t statistic with the tails of Student's."""
    labels = few.labels(scores)
    order = np.argsort(labels, kind="stable")
    order = order[np.searchsorted(labels[order], 1 if few.n_take_all else 0) :]
    sizes = np.unique(labels[order], return_counts=True)[1]
    counts = np.full(sizes.size, max(2, few.per_stratum))
    if (sizes < _TIMES_AS_MANY * counts).any():
        return False
    stored = [values[order] for values in differences]
    return _has_usual_tails(stored, Strata(sizes, counts), tail, rng)
