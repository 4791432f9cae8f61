"""Rows in the order of their labels, strata for example, and drawing them stratum by stratum."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.rows.protocols import LARGEST_BLOCK, Block, RowSource
from pymc_austerity.strata import Strata


def in_order(labels: NDArray[np.integer]) -> NDArray[np.intp]:
    """Rows label by label; short integers are sorted in time proportional to their number."""
    is_short = labels.max(initial=0) < 2**16
    return np.argsort(labels.astype(np.uint16) if is_short else labels, kind="stable")


def in_random_order(labels: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows label by label, in uniformly random order within each."""
    order = rng.permutation(labels.size)
    return order[in_order(labels[order])]


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
