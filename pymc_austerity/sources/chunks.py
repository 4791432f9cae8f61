"""Rows in chunks that a store decodes as a whole, and files that must not change meanwhile."""

import contextlib
import importlib
import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import DataError, SettingError, StorageError
from pymc_austerity.sources.columns import fill_columns, native_dtype, numbers

_BYTES_KEPT = 2**24
"""Rows of a chunk that are kept for other threads, in bytes, or one piece."""

Stamp: TypeAlias = tuple[int, int]
"""Size of a file in bytes and time of its last change in nanoseconds."""


class ChunkedSource(ABC):
    """Rows of a store; the last pieces of a chunk that was read in part are kept.

    If blocks are read in order, every chunk is decoded once, also with several threads: those that
    need the same chunk wait for it. Memory is that of some pieces, of a chunk at most, and of the
    returned rows. A new kind of store gives pieces of consecutive rows, and the files that they
    are in.

    Parameters
    ----------
    what : str
        What messages call the rows.
    names : sequence of str
        What messages call the columns.
    lengths : sequence of int
        Number of rows of each chunk.
    row_shape : tuple of int
    dtype : dtype
        As stored; rows are in native byte order.
    place : str, optional
        Which rows of its files they are; None if files do not identify them.
    reads_any_row : bool
        Whether parts of a chunk are read without decoding all of it.

    Raises
    ------
    DataError
        There are no rows.
    """

    _decoded: "_Decoded | None"

    def __init__(
        self,
        what: str,
        names: Sequence[str],
        lengths: Sequence[int],
        row_shape: tuple[int, ...],
        dtype: np.dtype,
        *,
        place: str | None = None,
        reads_any_row: bool = False,
    ) -> None:
        self._what, self._names, self._place = what, list(names), place
        self._starts = starts_of(lengths)
        self.n_rows = int(self._starts[-1])
        self.row_shape = tuple(row_shape)
        self.dtype = native_dtype(what, dtype)
        if 0 in (self.n_rows, *row_shape):
            missing = "values in its rows" if self.n_rows else "rows"
            raise DataError(f"{what} has no {missing}: give at least one.")
        self.block_length = None if reads_any_row else int(max(lengths))
        self._stamps = {path: _stamp_of(path) for path in self._files(0, self.n_rows)}
        self._begin()

    @abstractmethod
    def _pieces(self, start: int, stop: int) -> Iterator[Sequence[Any]]:
        """Rows of whole chunks in order: columns side by side, or one array in a list."""

    def _files(self, start: int, stop: int) -> Iterable[str]:
        """Files with these rows, of which one that is not there has none of them."""
        return ()

    @property
    def identity(self) -> str | None:
        """Identifies these rows: the files, their sizes and times, and the place in them."""
        if not self._stamps or self._place is None:
            return None
        return f"{self._stamps} {self._place} {self.row_shape} {self.dtype}"

    def refuse_if_changed(self) -> None:
        """Compare sizes and times of the files with those when they were opened."""
        self._refuse_changed(self._stamps)

    def read(self, start: int, stop: int) -> NDArray:
        """Rows ``start`` to ``stop``; only chunks that overlap with them are decoded."""
        if not 0 <= start <= stop <= self.n_rows:
            raise IndexError(f"rows {start} to {stop} are not among {self.n_rows} rows")
        out = np.empty((stop - start, *self.row_shape), self.dtype)
        begin = start
        while begin < stop:
            left = out[begin - start :]
            first, last = (np.searchsorted(self._starts, [begin, stop], "right") - 1).tolist()
            if self.block_length is None:
                end = stop
                self._fill_unchanged(out, begin)
            elif self._starts[first] == begin and last > first:
                end = int(self._starts[last])  # of the chunks that lie within the range as a whole
                self._fill_unchanged(left[: end - begin], begin)
            else:
                end = min(int(self._starts[first + 1]), stop)
                self._fill_in_part(left[: end - begin], begin, first)
            begin = end
        return out

    def _fill_in_part(self, out: NDArray, start: int, number: int) -> None:
        """Write some rows of a chunk, which is decoded as far as that takes."""
        if os.getpid() != self._process:  # the lock may have been held when a process was forked
            self._begin()
        with self._lock, self._unchanged(start, start + len(out)):
            decoded, self._decoded = self._decoded, None  # an error leaves nothing half-way
            if decoded is None or decoded.number != number or start < decoded.start:
                first, end = self._starts[number : number + 2].tolist()
                decoded = _Decoded(number, first, self._arrays(first, end))
            decoded.fill(out, start, int(self._starts[number + 1]))
            self._decoded = decoded

    def _fill_unchanged(self, out: NDArray, start: int) -> None:
        with self._unchanged(start, start + len(out)):
            self._fill(out, start)

    @contextlib.contextmanager
    def _unchanged(self, start: int, stop: int) -> Iterator[None]:
        self._refuse_changed(self._files(start, stop))
        with readable(self._what):
            yield

    def _fill(self, out: NDArray, start: int) -> None:
        """Write rows from ``start`` on into a C-contiguous array."""
        for begin, end, columns in self._in_columns(start, start + len(out)):
            fill_columns(self._what, out[begin - start : end - start], columns)

    def _arrays(self, start: int, stop: int) -> Iterator[NDArray]:
        """The same rows, piece by piece."""
        for begin, end, columns in self._in_columns(start, stop):
            array = np.empty((end - begin, *self.row_shape), self.dtype)
            fill_columns(self._what, array, columns)
            yield array

    def _in_columns(self, start: int, stop: int) -> Iterator[tuple[int, int, list[NDArray]]]:
        """First row, end and columns of each piece.

        Raises
        ------
        ValueError
            There are more rows, or fewer.
        """
        end = start
        for piece in self._pieces(start, stop):
            columns = [
                numbers(name, column, end) for name, column in zip(self._names, piece, strict=True)
            ]
            begin, end = end, end + len(columns[0])
            if end > stop:
                break
            yield begin, end, columns
        if end != stop:
            n_rows = stop - start
            raise ValueError(f"not {n_rows:,} but {end - start:,} rows from {start:,} on are there")

    def _refuse_changed(self, paths: Iterable[str]) -> None:
        for path in paths:
            now = _stamp_of(path)
            if now is None and self._stamps[path] is not None:
                raise StorageError(
                    f"{self._what} cannot be read any more, because there is no {path}: put the "
                    "store back, or open it where it is now."
                )
            if now != self._stamps[path]:
                raise StorageError(
                    f"{self._what} was changed while it was in use ({path}): construct the step "
                    "method again."
                )

    def _begin(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()
        self._decoded = None

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in {"_process", "_lock", "_decoded"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()


class _Decoded:
    """Rows of a chunk as far as they are decoded; the last of them are kept.

    Parameters
    ----------
    number : int
        Of the chunk.
    start : int
        Its first row.
    arrays : iterator of arrays
        Its rows, piece by piece.

    Attributes
    ----------
    start, stop : int
        Rows that are there.
    """

    def __init__(self, number: int, start: int, arrays: Iterator[NDArray]) -> None:
        self.number, self.start, self.stop = number, start, start
        self._arrays = arrays
        self._kept: deque[NDArray] = deque()

    def fill(self, out: NDArray, start: int, end: int) -> None:
        """Write rows from ``start`` on into an array; ``end`` is that of the chunk."""
        begin = self.start
        for piece in self._kept:
            _copy(piece, begin, out, start)
            begin += len(piece)
        while self.stop < start + len(out):
            piece = next(self._arrays)
            _copy(piece, self.stop, out, start)
            self._kept.append(piece)
            self.stop += len(piece)
            while sum(kept.nbytes for kept in self._kept) > max(_BYTES_KEPT, piece.nbytes):
                self.start += len(self._kept.popleft())
        if self.stop == end:
            next(self._arrays, None)  # there must not be more


def _copy(piece: NDArray, begin: int, out: NDArray, start: int) -> None:
    """The rows of a piece that are among those of an array."""
    first, last = max(begin, start), min(begin + len(piece), start + len(out))
    if first < last:
        out[first - start : last - start] = piece[first - begin : last - begin]


def starts_of(lengths: Sequence[int]) -> NDArray[np.int64]:
    """First rows of chunks of these lengths, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def overlapping(starts: NDArray[np.int64], start: int, stop: int) -> range:
    """Numbers of the chunks with rows ``start`` to ``stop``."""
    first = int(np.searchsorted(starts, start, "right")) - 1
    return range(first, int(np.searchsorted(starts, stop, "left")))


def even_lengths(n_rows: int, length: int) -> list[int]:
    """Numbers of rows of chunks of one length, of which the last may be shorter."""
    return [min(length, n_rows - start) for start in range(0, n_rows, length)]


def library(name: str) -> Any:
    """A library that reads a format.

    Raises
    ------
    ImportError
        It is not installed; the message names it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"{package} is needed: pip install {package}.") from error


@contextlib.contextmanager
def readable(what: str) -> Iterator[None]:
    """Name the data in a library's error."""
    try:
        yield
    except (DataError, SettingError, StorageError):
        raise
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        raise StorageError(
            f"{what} cannot be read ({type(error).__name__}: {reason}): write the data again."
        ) from error


def _stamp_of(path: str) -> Stamp | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns
