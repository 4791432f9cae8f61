"""The rows on which a test is tried: all, or a limited number from each stratum."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.rows import LARGEST_BLOCK, ArrayRows, Block, RowSource
from pymc_austerity.strata import Strata
from pymc_austerity.time_limit import end_if_late

_MOST = 2_000_000
_TIMES_AS_MANY = 10
"""Fewest rows of a stratum, as a multiple of those of a first look."""


@dataclass(frozen=True, eq=False)
class RowsToCheck:
    """The first rows of each stratum; the order is random, so they represent the whole stratum.

    Attributes
    ----------
    source : RowSource
        Rows stratum by stratum.
    strata : Strata
    counts : int array, shape (H,)
        Rows of each stratum that are used.
    """

    source: RowSource
    strata: Strata
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, source: RowSource, strata: Strata) -> "RowsToCheck":
        """All rows, unless there are too many."""
        if strata.n_rows <= _MOST:
            return cls(source, strata, strata.sizes)
        shares = np.ceil(strata.sizes * (_MOST / strata.n_rows)).astype(np.int64)
        wanted = np.maximum(shares, _TIMES_AS_MANY * strata.first_counts)
        return cls(source, strata, np.minimum(strata.sizes, wanted))

    @property
    def n_rows(self) -> int:
        """Number of rows that are used."""
        return int(self.counts.sum())

    def differences(
        self, function: Callable[..., NDArray], proposed: NDArray, current: NDArray
    ) -> NDArray[np.float64]:
        """Differences between two points, stratum by stratum, nats."""
        found = []
        for first, end in self._ranges:
            for start in range(first, end, LARGEST_BLOCK):
                end_if_late()
                block = self.source.window(start, min(start + LARGEST_BLOCK, end))
                found.append(function(proposed, current, *block))
        return np.concatenate(found)

    def total(self, differences: NDArray[np.float64]) -> float:
        """Sum of the differences over all rows, or an estimate from those that are used, nats."""
        each = self.strata.sizes / self.counts
        return float(np.add.reduceat(differences, self._begins).dot(each))

    def everywhere(self, differences: NDArray[np.float64]) -> RowSource:
        """The differences, repeated in each stratum up to its number of rows."""
        if self.n_rows == self.strata.n_rows:
            return ArrayRows([differences])
        return _Repeated(differences, self)

    @cached_property
    def _ranges(self) -> list[tuple[int, int]]:
        """Ends of the rows without a gap; there may be thousands of strata."""
        ends = self.strata.offsets + self.counts
        is_gap = ends[:-1] < self.strata.offsets[1:]
        firsts = self.strata.offsets[np.r_[True, is_gap]]
        return list(zip(firsts.tolist(), ends[np.r_[is_gap, True]].tolist(), strict=True))

    @cached_property
    def _begins(self) -> NDArray[np.int64]:
        return np.cumsum(self.counts) - self.counts

    def places(self, indices: NDArray[np.intp]) -> NDArray[np.int64]:
        """Positions, among the rows that are used, of those that represent some rows."""
        own = np.searchsorted(self.strata.offsets, indices, side="right") - 1
        return self._begins[own] + (indices - self.strata.offsets[own]) % self.counts[own]


@dataclass(frozen=True, eq=False)
class _Repeated:
    differences: NDArray[np.float64]
    rows: RowsToCheck

    @property
    def n_rows(self) -> int:
        return self.rows.strata.n_rows

    def window(self, start: int, stop: int) -> Block:
        return self.take(np.arange(start, stop))

    def take(self, indices: NDArray[np.intp]) -> Block:
        return (self.differences[self.rows.places(indices)],)
