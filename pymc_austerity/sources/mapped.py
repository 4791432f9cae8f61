"""Rows in NumPy's own files and memory maps."""

import contextlib
import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import DataError, StorageError
from pymc_austerity.sources.changes import refuse_changed_files, stamps_of
from pymc_austerity.sources.checks import (
    checked_indices,
    checked_range,
    native_dtype,
    refuse_no_rows,
)
from pymc_austerity.sources.files import FileArray, array_in_npy, array_of_memory_map

__all__ = ["FileSource", "open_memory_map", "open_npy"]

_MOST_MAPS = 256
_MOST_RESIDENT = 2**28
"""Bytes of pages that random rows may leave in this process."""
_PAGES_AROUND = 16
"""Pages that the system maps with the one that is asked for, if they are cached."""


class FileSource:
    """Rows of arrays in files, one array after the other.

    Rows in order are read by system calls, so that they do not stay in the process like pages of a
    map. Rows at random positions are read through memory maps, which are made when needed.

    Parameters
    ----------
    arrays : sequence of FileArray
        Of one dtype and row shape.
    what : str
        What messages call the rows.
    """

    block_length = None
    reads_any_row = True

    def __init__(self, arrays: Sequence[FileArray], what: str) -> None:
        self._arrays, self._what = list(arrays), what
        self.dtype = native_dtype(what, arrays[0].dtype)
        for array in arrays:
            if (array.dtype, array.shape[1:]) != (arrays[0].dtype, arrays[0].shape[1:]):
                raise DataError(
                    f"{what} is in files that differ: {_described(arrays[0])}, {_described(array)}."
                )
        self.row_shape = arrays[0].shape[1:]
        lengths = [array.shape[0] for array in arrays if array.shape]
        refuse_no_rows(what, (sum(lengths), *self.row_shape) if lengths else ())
        self._starts = np.concatenate([[0], np.cumsum(lengths)])
        self.n_rows = int(self._starts[-1])
        self._stamps = stamps_of(array.path for array in arrays)
        self._begin()

    def read(self, start: int, stop: int) -> NDArray:
        """Rows ``start`` to ``stop``."""
        checked_range(start, stop, self.n_rows)
        out = np.empty((stop - start, *self.row_shape), self.dtype)
        number, begin = int(np.searchsorted(self._starts, start, "right")) - 1, 0
        while begin < len(out):
            array, offset = self._arrays[number], start + begin - int(self._starts[number])
            end = min(begin + array.shape[0] - offset, len(out))
            if begin < end:
                with self._unchanged(array):
                    array.read_into(out[begin:end], offset)
            number, begin = number + 1, end
        return out

    def take(self, indices: NDArray[np.intp]) -> NDArray:
        """Rows at the given positions."""
        indices = checked_indices(indices, self.n_rows)
        if len(self._arrays) == 1:
            return self._taken(0, indices)
        out = np.empty((indices.size, *self.row_shape), self.dtype)
        numbers = np.searchsorted(self._starts, indices, "right") - 1
        for number in np.unique(numbers):
            places = np.flatnonzero(numbers == number)
            out[places] = self._taken(int(number), indices[places] - self._starts[number])
        return out

    @property
    def identity(self) -> str:
        """Identifies these rows: the files, their sizes and times."""
        return f"{self._arrays} {self._stamps}"

    def refuse_if_changed(self) -> None:
        """Compare sizes and times of the files with those when they were opened."""
        refuse_changed_files(self._what, self._stamps)

    def close(self) -> None:
        """Drop the memory maps."""
        self._begin()

    def _taken(self, number: int, indices: NDArray[np.intp]) -> NDArray:
        array = self._arrays[number]
        with self._unchanged(array):  # a read beyond the end of a mapped file ends the process
            mapped = self._maps.get(number)
            if mapped is None:
                if len(self._maps) >= _MOST_MAPS:
                    self._maps.clear()
                mapped = self._maps[number] = array.mapped()
            # any mode but the default writes straight into the result, twice as fast
            taken = np.require(mapped.take(indices, 0, mode="clip"), self.dtype, ["C", "W"])
        self._resident += indices.size * max(taken[:1].nbytes, _PAGES_AROUND * mmap.PAGESIZE)
        if self._resident > _MOST_RESIDENT:
            self._forget_pages()
        return taken

    @contextlib.contextmanager
    def _unchanged(self, array: FileArray) -> Iterator[None]:
        refuse_changed_files(self._what, {array.path: self._stamps[array.path]})
        try:
            yield
        except OSError as error:
            raise StorageError(
                f"{self._what} cannot be read from {array.path} ({error}): check the disk."
            ) from error

    def _forget_pages(self) -> None:
        """Give the pages back; the system keeps them cached as long as it has room."""
        self._resident = 0
        for mapped in list(self._maps.values()):
            if isinstance(mapped.base, mmap.mmap) and hasattr(mapped.base, "madvise"):
                mapped.base.madvise(mmap.MADV_DONTNEED)

    def _begin(self) -> None:
        self._maps: dict[int, NDArray] = {}
        self._resident = 0

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in {"_maps", "_resident"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()


def open_npy(paths: Sequence[Path], what: str) -> FileSource:
    """Rows of ``.npy`` files, one after the other."""
    return FileSource([array_in_npy(str(path)) for path in paths], what)


def open_memory_map(array: NDArray, what: str) -> FileSource | None:
    """Rows of a memory map, read from its file; None for other arrays.

    Raises
    ------
    StorageError
        The file was removed or replaced after it was mapped.
    """
    place = array_of_memory_map(array)
    if place is None or not array.size:
        return None
    ends = np.array([0, len(array) - 1])
    try:
        found = FileSource([place], what)
        same = found.take(ends).tobytes() == array[ends].astype(found.dtype).tobytes()
    except FileNotFoundError:
        same = False
    if not same:
        raise StorageError(
            f"{what} is a memory map of {place.path}, which was removed or replaced: map it again."
        )
    return found


def _described(array: FileArray) -> str:
    return f"{array.path} has {array.dtype} rows of shape {array.shape[1:]}"
