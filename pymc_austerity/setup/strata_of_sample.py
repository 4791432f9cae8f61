"""How rows that are elsewhere are divided into strata, from a sample of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import LargestScores, sizes_of_largest
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.rows import equal_total_score
from pymc_austerity.setup.strata import (
    STRATA_IF_NORMAL,
    first_look,
    has_usual_tails,
    most_first_rows,
    most_strata,
)
from pymc_austerity.strata import Strata

__all__ = ["Thresholds", "first_look_of_sample", "thresholds_of_sample"]

_TIMES_AS_MANY = 3
"""Fewest rows of a sample in each stratum, relative to a first look, that represent all rows."""


class Thresholds(NamedTuple):
    """Scores that separate the strata.

    Attributes
    ----------
    ascending : float array, shape (H - 1,)
        Nats; a stratum has the rows above one of them, and not above the next.
    n_take_all : int
        Rows above the last threshold, or more if scores tie; 0 if these are not always read.
    per_stratum : int
        Rows of each of the other strata that the first look reads.
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
    """Strata like those of `stratify`, from a sample of the rows and the largest scores of all.

    The rows that are always read are the same. There are fewer strata than usual only if the sample
    is large enough to show that they suffice.

    Parameters
    ----------
    largest : LargestScores
        Those of all rows.
    scores : float array, shape (n,)
        Influence of rows drawn at random.
    differences : sequence of float arrays, shape (n,), nats
        Their differences, or residuals, between some pairs of points.
    settings, rng
        As for `stratify`.
    """
    most = most_strata(settings)
    if most > STRATA_IF_NORMAL:
        few = _between(largest, scores, STRATA_IF_NORMAL, settings)
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
        **first_look(STRATA_IF_NORMAL, settings, n_rows),
    )
    return n_take_all + STRATA_IF_NORMAL * per_stratum


def _between(
    largest: LargestScores, scores: NDArray[np.float64], n_strata: int, settings: Settings
) -> Thresholds:
    """Thresholds of strata with about equal total scores, below the rows that are always read."""
    falling = largest.falling
    n_take_all, per_stratum = sizes_of_largest(
        falling, largest.total, largest.n_rows, **first_look(n_strata, settings, largest.n_rows)
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
    return has_usual_tails(stored, Strata(sizes, counts), tail, rng)
