"""The contracts between rows and what reads them, and passes over all rows as sums over blocks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.time_limit import end_if_late

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

    def window(self, start: int, stop: int) -> Block:
        """Rows ``start`` to ``stop`` in storage order, without a copy where possible."""

    def take(self, indices: NDArray[np.intp]) -> Block:
        """Rows at the given positions in storage order."""


@runtime_checkable
class SampledRows(RowSource, Protocol):
    """Rows that are read in passes, and a sample of them that is available immediately."""

    def some(self, n_rows: int, rng: np.random.Generator) -> RowSource:
        """A number of rows, or fewer, drawn at random without replacement."""


class RowStream(Protocol):
    """Rows for one decision, each provided at most once."""

    def read(self, n_rows: int) -> Iterator[Block]:
        """Blocks that together hold the next ``n_rows`` rows."""


class RowDraw(Protocol):
    """A way of sampling rows without replacement."""

    def begin(self, rng: np.random.Generator) -> RowStream:
        """Start a new sample, independent of all earlier ones."""


class ArrayRows:
    """Rows in arrays, read in their own order.

    Windows are views where the arrays have the layout and flags that all blocks have: those of
    arrays in C order that may be written to.

    Parameters
    ----------
    arrays : sequence of arrays, each of shape (n_rows, ...)
        One array per leaf of the likelihood.
    """

    def __init__(self, arrays: Sequence[NDArray]) -> None:
        self._arrays = list(arrays)
        self.n_rows = int(self._arrays[0].shape[0])

    def window(self, start: int, stop: int) -> Block:
        """Consecutive rows."""
        return tuple(
            [np.require(a[start:stop], requirements=["C", "A", "W"]) for a in self._arrays]
        )

    def take(self, indices: NDArray[np.intp]) -> Block:
        """Copies of the rows at the given positions."""
        return tuple([np.ascontiguousarray(array.take(indices, 0)) for array in self._arrays])


@dataclass(frozen=True)
class ReorderedRows:
    """Rows in another order than that of their source.

    Attributes
    ----------
    source : ArrayRows
    order : int array, shape (n_rows,)
    """

    source: ArrayRows
    order: NDArray[np.intp]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.order.size

    def window(self, start: int, stop: int) -> Block:
        """Copies of consecutive rows in this order."""
        return self.source.take(self.order[start:stop])

    def take(self, indices: NDArray[np.intp]) -> Block:
        """Copies of the rows at the given positions in this order."""
        return self.source.take(self.order[indices])


def blocks_of(source: RowSource, length: int = LARGEST_BLOCK) -> Iterator[Block]:
    """All rows, in storage order, in blocks of so many rows; by default they fit the cache.

    A source that has ``blocks()`` reads ahead by itself, in blocks of its own length.
    """
    if hasattr(source, "blocks"):
        yield from source.blocks()
        return
    for start in range(0, source.n_rows, length):
        end_if_late()
        yield source.window(start, min(start + length, source.n_rows))


def sum_over_rows(
    function: Callable[[Block], NDArray[np.float64]],
    source: RowSource,
    arguments: Sequence[Any] | None = None,
    length: int = LARGEST_BLOCK,
) -> NDArray[np.float64]:
    """Sum of what a function makes of each block of rows, one after the other.

    Parameters
    ----------
    function : callable
    source : RowSource
        One that has ``summed()`` calls the function in several threads.
    arguments : sequence, optional
        What the sum depends on beside the rows and the model, for a source that keeps results.
    length : int
        Rows of a block, for a source that has no ``summed()``.

    Examples
    --------
    >>> import numpy as np
    >>> rows = ArrayRows([np.arange(20_000.0)])
    >>> float(sum_over_rows(lambda block: block[0].sum(), rows))
    199990000.0
    """
    if hasattr(source, "summed"):
        summed: NDArray[np.float64] = source.summed(function, arguments)
        return summed
    total: NDArray[np.float64] = np.zeros(())
    for part in map(function, blocks_of(source, length)):
        total = total + part
    return total
