"""The contracts between rows, ways of drawing them, and their consumers."""

from collections.abc import Iterator
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

LARGEST_BLOCK = 8_192
"""Number of rows that are handed out together: results for a block should stay in the cache."""

Block: TypeAlias = tuple[NDArray, ...]
"""Some rows: one array per leaf of the likelihood, rows on axis 0, C-contiguous and writable.

All blocks of a source have the same layout and flags, because compiled functions are specialised
on them.
"""


class RowSource(Protocol):
    """Rows that can be read; no other code may assume where they are."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    def window(self, start: int, stop: int) -> Block:
        """Rows ``start`` to ``stop`` in storage order, without a copy where possible."""
        ...

    def take(self, indices: NDArray[np.intp]) -> Block:
        """Rows at the given positions in storage order."""
        ...


@runtime_checkable
class SampledRows(RowSource, Protocol):
    """Rows that are read in passes, and a sample of them that is available immediately."""

    def some(self, n_rows: int, rng: np.random.Generator) -> RowSource:
        """A number of rows, or fewer, drawn at random without replacement."""
        ...


class RowStream(Protocol):
    """Rows for one decision, each provided at most once."""

    def read(self, n_rows: int) -> Iterator[Block]:
        """Blocks that together hold the next ``n_rows`` rows."""
        ...


class RowDraw(Protocol):
    """A way of sampling rows without replacement."""

    def begin(self, rng: np.random.Generator) -> RowStream:
        """Start a new sample, independent of all earlier ones."""
        ...
