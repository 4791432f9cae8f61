"""Arrays in files; rows that are read in order are not mapped into memory."""

import mmap
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import StorageError

__all__ = ["FileArray", "array_in_npy", "array_of_memory_map"]


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
    """

    path: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype

    @property
    def end(self) -> int:
        """The smallest possible size of the file, in bytes."""
        if 0 in self.shape:
            return self.offset
        reach = sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))
        return self.offset + max(reach, 0) + self.dtype.itemsize

    @property
    def has_rows_in_order(self) -> bool:
        """Whether consecutive rows are one piece of the file."""
        return self.strides == _strides_in_order(self.shape, self.dtype)

    def read_into(self, out: NDArray, start: int) -> None:
        """Rows from ``start`` on, as many as fit into a C-contiguous array."""
        if not self.has_rows_in_order:
            out[...] = self.mapped()[start : start + len(out)]
            return
        stored = out if out.dtype == self.dtype else np.empty(out.shape, self.dtype)
        left = stored.data.cast("B")
        with open(self.path, "rb", buffering=0) as file:
            file.seek(self.offset + start * self.strides[0])
            while left:
                n_bytes = file.readinto(left)
                if not n_bytes:
                    raise StorageError(_truncated(self))
                left = left[n_bytes:]
        if stored is not out:
            out[...] = stored

    def mapped(self) -> NDArray:
        """The array as a read-only memory map, for rows at random positions."""
        self.refuse_if_truncated()
        with open(self.path, "rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if hasattr(memory, "madvise"):
            memory.madvise(mmap.MADV_RANDOM)
        return np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)

    def refuse_if_truncated(self) -> None:
        """Refuse a file that is too short: reading a map beyond its end would kill the process."""
        if os.stat(self.path).st_size < self.end:
            raise StorageError(_truncated(self))


def array_in_npy(path: str) -> FileArray:
    """Where the array of an ``.npy`` file is.

    Raises
    ------
    StorageError
        The file cannot be read, is not of that format or is shorter than its header says.
    """
    try:
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            read_header = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, columns_first, dtype = read_header(file)
            offset = file.tell()
    except OSError as error:
        raise StorageError(f"{path} cannot be read ({error.strerror}).") from error
    except ValueError as error:
        raise StorageError(
            f"{path} is not a readable .npy file ({str(error).rstrip('.')}): write it again with "
            "numpy.save."
        ) from error
    strides = _strides_in_order(shape[::-1] if columns_first else shape, dtype)
    array = FileArray(path, offset, shape, strides[::-1] if columns_first else strides, dtype)
    array.refuse_if_truncated()
    return array


def array_of_memory_map(array: NDArray) -> FileArray | None:
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
    return FileArray(str(mapped.filename), offset, array.shape, array.strides, array.dtype)


def _strides_in_order(shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, ...]:
    sizes = [dtype.itemsize]
    for length in shape[:0:-1]:
        sizes.append(sizes[-1] * length)
    return tuple(sizes[::-1])[: len(shape)]


def _truncated(array: FileArray) -> str:
    return (
        f"{array.path} is shorter than its array of shape {array.shape}: it was truncated, or is "
        "still being written."
    )
