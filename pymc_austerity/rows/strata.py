"""Rows grouped by influence: which stratum each belongs to, and drawing them stratum by stratum."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.rows.protocols import LARGEST_BLOCK, Block, RowSource
from pymc_austerity.strata import Strata

__all__ = ["StratifiedWindows", "equal_total_score", "strata_by_score"]


def strata_by_score(
    scores: NDArray[np.float64],
    *,
    n_take_all: int,
    n_strata: int,
    per_stratum: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.intp], Strata]:
    """Order in which to store rows, and the strata this makes, from the influence of each row.

    The rows with the highest scores form the take-all stratum; the others are cut, in the order
    of their scores, into strata of the same total score and put in random order within each.
    Strata of the same total score need the same number of rows (Neyman's allocation, as far as
    the scores are the standard deviations).

    Parameters
    ----------
    scores : float array, shape (N,)
        Influence of each row, not negative. Any scores give a valid test; good ones a cheap one.
    n_take_all : int
        Rows that every decision reads; 0 for none.
    n_strata : int
        Strata besides the take-all one, at most.
    per_stratum : int
        Rows of each of them that the first look reads.
    rng : numpy.random.Generator
        Source of the order within strata.

    Returns
    -------
    order : int array, shape (N,)
        Rows in the order in which to store them.
    strata : Strata
    """
    n_rows = scores.size
    ranked = np.argsort(scores, kind="stable")[::-1]
    edges = n_take_all + equal_total_score(scores[ranked[n_take_all:]], n_strata)
    bounds = np.unique(np.concatenate([[0, n_take_all], edges, [n_rows]]))
    order = np.concatenate([rng.permutation(ranked[a:b]) for a, b in itertools.pairwise(bounds)])
    sizes = np.diff(bounds)
    counts = np.minimum(sizes, max(2, per_stratum))
    if n_take_all > 0:
        counts[0] = sizes[0]
    return order, Strata(sizes, counts)


def equal_total_score(scores: NDArray[np.float64], n_strata: int) -> NDArray[np.int64]:
    """Where to cut falling scores into strata of about the same total."""
    total = np.cumsum(scores)
    if not total.size or not total[-1] > 0.0:
        return np.empty(0, dtype=np.int64)
    shares = np.arange(1, n_strata) / n_strata * total[-1]
    return np.searchsorted(total, shares) + 1


@dataclass(frozen=True, eq=False)
class StratifiedWindows:
    """Consecutive rows of each stratum from random starts, wrapping around within the stratum.

    Parameters
    ----------
    source : RowSource
        Rows stored stratum by stratum, in random order within each.
    strata : Strata
        Where they are.
    """

    source: RowSource
    strata: Strata

    def begin(self, rng: np.random.Generator) -> "_StratifiedWindowStream":
        """Start at a uniformly random row of each stratum."""
        return _StratifiedWindowStream(self, rng)

    @cached_property
    def first_places(self) -> "_Places":
        """Where the rows of the first look lie, the same for every decision but for the starts."""
        return _Places.of(self.strata, self.strata.first_counts)


class _Places(NamedTuple):
    """Where the rows of a look lie: rank, size of the stratum and its start, for each row."""

    owners: NDArray[np.intp]
    ranks: NDArray[np.int64]
    sizes: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def of(
        cls, strata: Strata, counts: NDArray[np.int64], start: int = 0, stop: int | None = None
    ) -> "_Places":
        """Places of the rows, or of some of them, that stand one stratum after another."""
        ends = np.cumsum(counts)
        rows = np.arange(start, int(ends[-1]) if stop is None else stop)
        owners = np.searchsorted(ends, rows, side="right")
        ranks = rows - (ends - counts)[owners]
        return cls(owners, ranks, strata.sizes[owners], strata.offsets[owners])

    def indices(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Storage positions of windows that start at the given rows of each stratum."""
        return (positions[self.owners] + self.ranks) % self.sizes + self.offsets


def _places_in_blocks(strata: Strata, counts: NDArray[np.int64]) -> Iterator[_Places]:
    """The same block by block: a look may see most of more rows than fit into memory."""
    n_rows = int(counts.sum())
    for start in range(0, n_rows, LARGEST_BLOCK):
        yield _Places.of(strata, counts, start, min(start + LARGEST_BLOCK, n_rows))


class _StratifiedWindowStream:
    __slots__ = ("positions", "windows")

    def __init__(self, windows: StratifiedWindows, rng: np.random.Generator) -> None:
        self.windows = windows
        sizes = windows.strata.sizes
        self.positions = (rng.random(sizes.size) * sizes).astype(np.int64)

    def read_first(self) -> Iterator[Block]:
        """The rows of the first look, one stratum after another, in blocks."""
        return self._read([self.windows.first_places], self.windows.strata.first_counts)

    def read(self, counts: NDArray[np.int64]) -> Iterator[Block]:
        """The next ``counts[h]`` rows of each stratum, one stratum after another, in blocks."""
        return self._read(_places_in_blocks(self.windows.strata, counts), counts)

    def _read(self, places: Iterable[_Places], counts: NDArray[np.int64]) -> Iterator[Block]:
        positions = self.positions
        self.positions = positions + counts  # each stratum is a ring
        for some in places:
            indices = some.indices(positions)
            for start in range(0, indices.size, LARGEST_BLOCK):
                yield self.windows.source.take(indices[start : start + LARGEST_BLOCK])
