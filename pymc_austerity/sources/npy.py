"""Rows in NumPy's own files and memory maps; rows in order are not mapped into memory."""

import mmap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import DataError, StorageError
from pymc_austerity.sources.chunks import overlapping, readable, starts_of


@dataclass(frozen=True)
class FileArray:
    """Where the values of an array are in a file.

    Attributes
    ----------
    path : str
    offset : int
        Of the first value, in bytes.
    shape, strides : tuple of int
    dtype : dtype
        As stored; its byte order may be foreign.
    in_order : bool
        Whether consecutive rows are one piece of the file.
    """

    path: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    in_order: bool

    @classmethod
    def of(cls, array: NDArray) -> "FileArray | None":
        """Where a memory map, or a view of one, is in its file; None for arrays in memory.

        Maps that copy on write count as arrays in memory: the file need not have their values.
        """
        owner: Any = array
        mapped: np.memmap | None = None
        while owner is not None and not isinstance(owner, mmap.mmap):
            mapped = owner if isinstance(owner, np.memmap) else mapped
            owner = getattr(owner, "base", None)
        if mapped is None or owner is None or mapped.filename is None or mapped.mode == "c":
            return None
        begin = np.frombuffer(owner, np.uint8).__array_interface__["data"][0]
        # views keep the offset of the whole map, which begins on a border of pages
        begin -= mapped.offset - mapped.offset % mmap.ALLOCATIONGRANULARITY
        offset = array.__array_interface__["data"][0] - begin
        path, in_order = str(mapped.filename), array.flags.c_contiguous
        return cls(path, offset, array.shape, array.strides, array.dtype, in_order)

    @property
    def told(self) -> str:
        """What messages say of it."""
        return f"{self.path} has {self.dtype} rows of shape {self.shape[1:]}"

    def read_into(self, out: NDArray, start: int) -> None:
        """Rows from ``start`` on, as many as fit into a C-contiguous array."""
        if not self.in_order:
            with open(self.path, "rb") as file:
                memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            mapped = np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)
            out[...] = mapped[start : start + len(out)]
            return
        stored = out if out.dtype == self.dtype else np.empty(out.shape, self.dtype)
        with open(self.path, "rb") as file:
            file.seek(self.offset + start * (stored.nbytes // len(stored)))
            n_bytes = file.readinto(stored.reshape(-1).view(np.uint8).data)
        if n_bytes < stored.nbytes:
            raise StorageError(
                f"{self.path} is shorter than its array of shape {self.shape}: it was "
                "truncated, or is still being written."
            )
        if stored is not out:
            out[...] = stored


class NpyFiles:
    """Arrays in files, one after the other.

    Parameters
    ----------
    what : str
        What messages call the rows.
    arrays : sequence of FileArray
        Of one dtype and row shape.
    """

    def __init__(self, what: str, arrays: Sequence[FileArray]) -> None:
        self.arrays, first = list(arrays), arrays[0]
        for array in arrays:
            if (array.dtype, array.shape[1:]) != (first.dtype, first.shape[1:]):
                raise DataError(f"{what} is in files that differ: {first.told}, {array.told}.")
        lengths = [array.shape[0] for array in arrays if array.shape]
        self.shape = (sum(lengths), *first.shape[1:]) if lengths else ()
        self.dtype, self._starts = first.dtype, starts_of(lengths)

    @classmethod
    def of_paths(cls, what: str, paths: Iterable[Path]) -> "NpyFiles":
        """Those in ``.npy`` files."""
        found = []
        for path in paths:
            with readable(f"{what} in {path}"):
                found.append(FileArray.of(np.lib.format.open_memmap(path, mode="r")))
        return cls(what, [place for place in found if place is not None])

    @classmethod
    def of_memory_map(cls, what: str, array: NDArray) -> "NpyFiles | None":
        """That of a memory map, to be read from its file; None for other arrays.

        Raises
        ------
        StorageError
            The file was removed or replaced after it was mapped.
        """
        place = FileArray.of(array)
        if place is None or not array.size or not array.ndim:
            return None
        ends = np.empty_like(array[[0, -1]], order="C", subok=False)
        try:
            place.read_into(ends[:1], 0)
            place.read_into(ends[1:], len(array) - 1)
            same = ends.tobytes() == array[[0, -1]].tobytes()
        except (OSError, ValueError, TypeError):
            same = False
        if not same:
            raise StorageError(
                f"{what} is a memory map of {place.path}, which was removed or replaced: map it "
                "again."
            )
        return cls(what, [place])

    def parts(self, start: int, stop: int) -> Iterator[tuple[FileArray, int, int]]:
        """Files with these rows, and the first row and the end in each of them."""
        for number in overlapping(self._starts, start, stop):
            begin, end = self._starts[number : number + 2].tolist()
            yield self.arrays[number], max(start - begin, 0), min(stop, end) - begin

    def files(self, start: int, stop: int) -> Iterable[str]:
        """Paths of those files."""
        return (array.path for array, _, _ in self.parts(start, stop))

    def read_into(self, out: NDArray, start: int) -> None:
        """Rows from ``start`` on, as many as fit into a C-contiguous array."""
        filled = 0
        for array, begin, end in self.parts(start, start + len(out)):
            array.read_into(out[filled : filled + end - begin], begin)
            filled += end - begin
