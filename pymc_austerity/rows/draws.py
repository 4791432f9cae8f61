"""Sampling rows without replacement: fresh at random, as windows, or simply all."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.rows.protocols import LARGEST_BLOCK, Block, RowSource

__all__ = ["AllRows", "FreshRows", "Windows"]


@dataclass(frozen=True)
class Windows:
    """Consecutive rows from a random start, wrapping around at the end.

    Where the rows were stored in random order this is a simple random sample of the rows for any
    parameters chosen without regard to that order, and it is read at the speed of memory.
    Windows of different decisions overlap like other samples do, but share their order.

    Parameters
    ----------
    source : RowSource
        Rows in random order.
    """

    source: RowSource

    def begin(self, rng: np.random.Generator) -> "_WindowStream":
        """Start at a uniformly random row."""
        return _WindowStream(self.source, int(rng.integers(self.source.n_rows)))


@dataclass(frozen=True)
class AllRows:
    """All rows in storage order; uses no random number.

    Parameters
    ----------
    source : RowSource
        Rows in any order.
    """

    source: RowSource

    def begin(self, rng: np.random.Generator) -> "_WindowStream":
        """Start at the first row."""
        return _WindowStream(self.source, 0)


class _WindowStream:
    __slots__ = ("position", "source")

    def __init__(self, source: RowSource, position: int) -> None:
        self.source = source
        self.position = position

    def read(self, n_rows: int) -> Iterator[Block]:
        end = self.source.n_rows
        while n_rows > 0:
            start = self.position
            stop = min(start + min(n_rows, LARGEST_BLOCK), end)
            yield self.source.window(start, stop)
            n_rows -= stop - start
            self.position = stop if stop < end else 0


@dataclass(frozen=True)
class FreshRows:
    """Rows drawn uniformly at random without replacement at every look, as in the paper.

    Parameters
    ----------
    source : RowSource
        Rows in any order.

    Notes
    -----
    Positions are drawn with replacement and those that came before are dropped, which gives each
    ordered sample without replacement the same probability at a cost of the rows drawn, not of
    the rows there are. Past half of the rows, the remaining ones are listed and shuffled.
    """

    source: RowSource

    def begin(self, rng: np.random.Generator) -> "_FreshStream":
        """Start with no row seen."""
        return _FreshStream(self.source, rng)


class _FreshStream:
    __slots__ = ("drawn", "n_drawn", "rest", "rng", "source")

    def __init__(self, source: RowSource, rng: np.random.Generator) -> None:
        self.source = source
        # its own, so that rows read for an audit do not change the random numbers of the chain
        self.rng = np.random.default_rng(rng.integers(2**63))
        self.drawn: list[NDArray[np.intp]] = []
        self.n_drawn = 0
        self.rest: NDArray[np.intp] | None = None

    def read(self, n_rows: int) -> Iterator[Block]:
        indices = self._draw(n_rows)
        for start in range(0, n_rows, LARGEST_BLOCK):
            yield self.source.take(indices[start : start + LARGEST_BLOCK])

    def _draw(self, n_rows: int) -> NDArray[np.intp]:
        total = self.source.n_rows
        if self.rest is None and 2 * (self.n_drawn + n_rows) > total:
            left = np.ones(total, dtype=bool)
            for indices in self.drawn:
                left[indices] = False
            self.rest = self.rng.permutation(np.flatnonzero(left))
        if self.rest is not None:
            indices, self.rest = self.rest[:n_rows], self.rest[n_rows:]
        else:
            indices = self._draw_unseen(n_rows, total)
            self.drawn.append(indices)
        self.n_drawn += n_rows
        return indices

    def _draw_unseen(self, n_rows: int, total: int) -> NDArray[np.intp]:
        seen = np.concatenate(self.drawn) if self.drawn else np.empty(0, dtype=np.intp)
        fresh = np.empty(0, dtype=np.intp)
        while fresh.size < n_rows:
            candidates = self.rng.integers(total, size=n_rows - fresh.size)
            merged = np.concatenate([seen, fresh, candidates])
            _, first = np.unique(merged, return_index=True)
            first = np.sort(first[first >= seen.size])
            fresh = merged[first]
        return fresh
