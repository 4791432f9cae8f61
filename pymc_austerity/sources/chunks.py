"""Rows in chunks that a store decodes as a whole."""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.sources.checks import checked_indices, checked_range, refuse_no_rows

__all__ = ["ChunkedSource", "even_lengths"]


class ChunkedSource(ABC):
    """Rows in chunks; the last chunk that was read in part is kept.

    If blocks are read in order, every chunk is decoded once, also with several threads: those that
    need the same chunk wait for it. Memory is that of one chunk and of the returned rows.

    Parameters
    ----------
    what : str
        What messages call it.
    lengths : sequence of int
        Number of rows of each chunk.
    row_shape : tuple of int
    dtype : dtype
    """

    reads_any_row = False
    _kept: dict[int, NDArray]

    def __init__(
        self, what: str, lengths: Sequence[int], row_shape: tuple[int, ...], dtype: np.dtype
    ) -> None:
        self._what = what
        self._starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        self.n_rows = int(self._starts[-1])
        self.row_shape = row_shape
        self.dtype = dtype
        refuse_no_rows(what, (self.n_rows, *row_shape))
        self.block_length: int | None = int(max(lengths))
        self._begin()

    @abstractmethod
    def _fill(self, out: NDArray, first: int, stop: int) -> None:
        """Write the rows of chunks ``first`` to ``stop`` into an array that is C-contiguous."""

    @abstractmethod
    def refuse_if_changed(self) -> None:
        """Raise StorageError where the store was changed or removed since it was opened."""

    def read(self, start: int, stop: int) -> NDArray:
        """Rows ``start`` to ``stop``; only chunks that overlap with them are decoded."""
        checked_range(start, stop, self.n_rows)
        out = np.empty((stop - start, *self.row_shape), self.dtype)
        while start < stop:
            begin = len(out) - (stop - start)
            first = int(np.searchsorted(self._starts, start, "right")) - 1
            # chunks first to end lie within the range as a whole
            end = int(np.searchsorted(self._starts, stop, "right")) - 1
            if self._starts[first] == start and end > first:
                self._fill(out[begin : begin + self._starts[end] - start], first, end)
                start = int(self._starts[end])
            else:
                part = self._rows_of(first, start, stop)
                out[begin : begin + len(part)] = part
                start += len(part)
        return out

    def take(self, indices: NDArray[np.intp]) -> NDArray:
        """Rows at the given positions; each chunk with one of them is decoded as a whole."""
        indices = checked_indices(indices, self.n_rows)
        out = np.empty((indices.size, *self.row_shape), self.dtype)
        numbers = np.searchsorted(self._starts, indices, "right") - 1
        for number in np.unique(numbers):
            places = np.flatnonzero(numbers == number)
            out[places] = self._chunk(int(number))[indices[places] - self._starts[number]]
        return out

    def close(self) -> None:
        """Release the chunk that is kept."""
        self._begin()

    def _rows_of(self, number: int, start: int, stop: int) -> NDArray:
        offset = int(self._starts[number])
        return self._chunk(number)[start - offset : stop - offset]

    def _chunk(self, number: int) -> NDArray:
        if os.getpid() != self._process:  # the lock may have been held when a process was forked
            self._begin()
        with self._lock:
            if number not in self._kept:
                self._kept = {}
                length = int(self._starts[number + 1] - self._starts[number])
                chunk = np.empty((length, *self.row_shape), self.dtype)
                self._fill(chunk, number, number + 1)
                self._kept = {number: chunk}
            return self._kept[number]

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._kept = {}

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in {"_process", "_lock", "_kept"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()


def even_lengths(n_rows: int, length: int) -> list[int]:
    """Numbers of rows of chunks of one length, of which the last may be shorter."""
    return [min(length, n_rows - start) for start in range(0, n_rows, length)]
