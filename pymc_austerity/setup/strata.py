"""How the rows are divided into strata, and how many of each the first look reads."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import FirstLookLimits, first_look_sizes, rows_of_decisions
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.design import NormalityCheck, first_look_statistics
from pymc_austerity.rows import strata_by_score
from pymc_austerity.strata import Strata

__all__ = [
    "FEWEST_FIRST_ROWS",
    "FEWEST_PER_STRATUM",
    "STRATA_IF_NORMAL",
    "Stratification",
    "expected_rows_of",
    "first_look",
    "has_room_for_strata",
    "has_usual_tails",
    "most_first_rows",
    "most_strata",
    "stratify",
    "words_on_strata",
]

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


class Stratification(NamedTuple):
    """Rows divided into strata.

    Attributes
    ----------
    order : int array, shape (N,)
        Rows in the order in which to store them.
    strata : Strata
        Consecutive ranges of the stored rows.
    n_take_all : int
        Rows of the first stratum if every decision reads all of it; otherwise 0.
    """

    order: NDArray[np.intp]
    strata: Strata
    n_take_all: int


def has_room_for_strata(settings: Settings) -> bool:
    """Whether a first look of the user's size can be divided among some strata."""
    return most_strata(settings) >= _FEWEST_STRATA


def stratify(
    scores: NDArray[np.float64],
    differences: Sequence[NDArray[np.float64]],
    settings: Settings,
    rng: np.random.Generator,
) -> Stratification:
    """Strata by influence, fewer than usual if these suffice for the t-test.

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
    most = most_strata(settings)
    if most > STRATA_IF_NORMAL:
        few = _divided(scores, STRATA_IF_NORMAL, settings, rng)
        if _is_normal(few, differences, settings.tail, rng):
            return few
    return _divided(scores, most, settings, rng)


def expected_rows_of(scores: NDArray[np.float64], settings: Settings) -> float:
    """Expected rows of a decision, where half as many strata are enough."""
    return rows_of_decisions(scores, **first_look(STRATA_IF_NORMAL, settings, scores.size))


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
    scores: NDArray[np.float64], n_strata: int, settings: Settings, rng: np.random.Generator
) -> Stratification:
    n_take_all, per_stratum = first_look_sizes(
        scores, **first_look(n_strata, settings, scores.size)
    )
    order, strata = strata_by_score(
        scores, n_take_all=n_take_all, n_strata=n_strata, per_stratum=per_stratum, rng=rng
    )
    return Stratification(order, strata, n_take_all)


def first_look(n_strata: int, settings: Settings, n_rows: int) -> FirstLookLimits:
    """First look that the settings determine, for a number of strata and of rows."""
    return FirstLookLimits(
        epsilon=settings.tail,
        n_strata=n_strata,
        fewest_per_stratum=FEWEST_PER_STRATUM,
        most=most_first_rows(settings, n_rows),
    )


def _is_normal(
    stratification: Stratification,
    differences: Sequence[NDArray[np.float64]],
    tail: float,
    rng: np.random.Generator,
) -> bool:
    """Whether first looks at these differences have a t statistic with the tails of Student's."""
    order, strata, _ = stratification
    return has_usual_tails([values[order] for values in differences], strata, tail, rng)


def has_usual_tails(
    stored: list[NDArray[np.float64]],
    strata: Strata,
    tail: float,
    rng: np.random.Generator,
) -> bool:
    """Whether first looks at differences in storage order have the tails of Student's t."""
    if not all(np.isfinite(values).all() for values in stored):
        return False
    samples = first_look_statistics(stored, strata, n_samples=_SAMPLES, rng=rng)
    check = NormalityCheck(*samples, epsilon=tail)
    return max(check.tail_shares) <= _TOLERATED * check.tail
