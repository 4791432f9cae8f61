"""One copy of the rows per machine, whatever number of processes reads it."""

import contextlib
import mmap
import multiprocessing.util
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import StorageError
from pymc_austerity.rows.protocols import LARGEST_BLOCK, Block
from pymc_austerity.rows.tenancy import Tenancy

__all__ = ["SharedRows", "in_words", "write_header"]

_ROWS_PER_WRITE = 65_536

_BYTES_OF_PAGES = 2**26
"""Pages of a store that are mapped before they are dropped, in bytes."""

_BYTES_AROUND = 2**16
"""What the system maps around a row that is read, in bytes."""

_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
"""Named since Python 3.13; the number is that of Linux on most processors, and ignored on others.
"""


class SharedRows:
    """Rows in memory maps that processes share through the operating system's page cache.

    Pickling sends the path of the files, not the rows. The files are removed when the last
    process that uses them is gone, also if it crashed.

    Parameters
    ----------
    arrays : sequence of arrays, each of shape (n_rows, ...)
        One array per leaf of the likelihood.
    order : int array, shape (n_rows,)
        Row ``order[i]`` of the arrays is stored at position ``i``.

    Notes
    -----
    The files lie in the folder that ``TMPDIR`` names; without one, in shared memory where there is
    room for them (twice their size), else in the system's folder for temporary files.

    Raises
    ------
    StorageError
        There is no room for the files, or they may not be written, or they are gone.

    Examples
    --------
    >>> import numpy as np
    >>> rows = SharedRows([np.arange(4.0), np.eye(4)], order=np.array([3, 2, 1, 0]))
    >>> y, x = rows.window(0, 2)
    >>> y
    array([3., 2.])
    >>> rows.close()
    """

    _drops_pages = False

    def __init__(self, arrays: Sequence[NDArray], order: NDArray[np.intp]) -> None:
        self._n_rows = int(order.size)
        self._arrays: list[NDArray] = []
        n_bytes = sum(array.nbytes for array in arrays)
        place = _temporary_folder(n_bytes)
        with in_words(place, n_bytes):
            Tenancy.evict(place)
            self._attach(Tenancy.of_new_folder(place))
            try:
                for number, array in enumerate(arrays):
                    _store(array, order, self._folder / f"{number}.npy")
                self._arrays = _open(self._folder, len(arrays))
            except OSError:
                self.close()
                raise

    @classmethod
    def in_folder(cls, tenancy: Tenancy, n_rows: int, n_arrays: int) -> "SharedRows":
        """Rows that were written before, as ``0.npy``, ``1.npy``, ... in the tenancy's folder.

        They may be larger than the memory: pages are dropped again after a while.
        """
        rows = cls.__new__(cls)
        rows._n_rows, rows._drops_pages, rows._n_mapped = n_rows, True, 0
        rows._attach(tenancy)
        rows._arrays = _open(tenancy.folder, n_arrays)
        return rows

    def extend(self, function: Callable[[Block], NDArray]) -> None:
        """Store one more array: what a function makes of each block of rows as they are stored."""
        path, place = self._folder / f"{len(self._arrays)}.npy", str(self._folder.parent)
        first = function(self.window(0, 1))
        with in_words(place, self._n_rows * first.nbytes), path.open("wb") as file:
            write_header(file, first.dtype, (self._n_rows, *first.shape[1:]))
            for start in range(0, self._n_rows, LARGEST_BLOCK):
                function(self.window(start, start + LARGEST_BLOCK)).tofile(file)
        self._arrays.append(_mapped(path))

    def split(self, n_arrays: int) -> "SharedRows":
        """Keep the first `n_arrays` arrays; the others become a store of their own."""
        place = str(self._folder.parent)
        with in_words(place, self.n_bytes):
            others = SharedRows.in_folder(Tenancy.of_new_folder(place), self.n_rows, 0)
            for number in range(n_arrays, len(self._arrays)):
                (self._folder / f"{number}.npy").rename(others.folder / f"{number - n_arrays}.npy")
        self._arrays, others._arrays = self._arrays[:n_arrays], self._arrays[n_arrays:]
        return others

    def _attach(self, tenancy: Tenancy) -> None:
        self._folder = tenancy.folder
        self._finalizer = weakref.finalize(self, tenancy.leave)
        if multiprocessing.parent_process() is not None:  # workers skip what atexit would do
            multiprocessing.util.Finalize(None, tenancy.leave, exitpriority=0)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._n_rows

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self._folder

    @property
    def n_arrays(self) -> int:
        """Number of arrays."""
        return len(self._arrays)

    @property
    def n_bytes(self) -> int:
        """Size of the stored rows in bytes."""
        return sum(array.nbytes for array in self._arrays)

    def window(self, start: int, stop: int) -> Block:
        """Rows ``start`` to ``stop`` in storage order, as views."""
        if self._drops_pages:
            self._count((stop - start) * self.n_bytes // max(self._n_rows, 1))
        return tuple([array[start:stop] for array in self._arrays])

    def take(self, indices: NDArray[np.intp]) -> Block:
        """Copies of the rows at the given positions in storage order."""
        if self._drops_pages:
            self._count(indices.size * _BYTES_AROUND * len(self._arrays))
        # any mode but the default reads straight into the result, twice as fast
        return tuple([array.take(indices, 0, mode="clip") for array in self._arrays])

    def release(self) -> None:
        """Drop the pages of a store that may be larger than the memory; the file keeps them."""
        if self._drops_pages and hasattr(mmap, "MADV_DONTNEED"):
            self._n_mapped = 0
            for array in self._arrays:
                if isinstance(array.base, mmap.mmap):
                    array.base.madvise(mmap.MADV_DONTNEED)

    def _count(self, n_bytes: int) -> None:
        self._n_mapped += n_bytes + _BYTES_AROUND * len(self._arrays)
        if self._n_mapped > _BYTES_OF_PAGES:
            self.release()

    def close(self) -> None:
        """Leave the files; the last one to leave removes them. The rows can't be read after."""
        self._arrays = []
        self._finalizer()

    def __getstate__(self) -> dict[str, Any]:
        if not self._folder.exists():
            raise StorageError(_gone(self._folder))
        known = {"folder": self._folder, "n_rows": self._n_rows, "n_arrays": len(self._arrays)}
        return known | {"drops_pages": self._drops_pages}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._n_rows, self._drops_pages = state["n_rows"], state["drops_pages"]
        self._n_mapped = 0
        try:
            self._attach(Tenancy(state["folder"]))
            self._arrays = _open(state["folder"], state["n_arrays"])
        except OSError as error:
            raise StorageError(_gone(state["folder"])) from error


def _store(array: NDArray, order: NDArray[np.intp], path: Path) -> None:
    """Write the array in the given order, in pieces, without a second copy."""
    with path.open("wb") as file:
        write_header(file, array.dtype, (order.size, *array.shape[1:]))
        for start in range(0, order.size, _ROWS_PER_WRITE):
            array.take(order[start : start + _ROWS_PER_WRITE], axis=0).tofile(file)


def write_header(file: BinaryIO, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """Begin an ``.npy`` file of an array in C order."""
    descr = np.lib.format.dtype_to_descr(dtype)
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def _open(folder: Path, n_arrays: int) -> list[NDArray]:
    return [_mapped(folder / f"{number}.npy") for number in range(n_arrays)]


def _mapped(path: Path) -> NDArray:
    """The array of a file, mapped privately.

    Pages are shared until written, which never happens, and the array is flagged writable like
    those that `take` returns: compiled functions are specialised on that flag. As nothing is
    written, no memory need be set aside for it; else the system refuses files that are larger than
    its memory.
    """
    if not hasattr(mmap, "MAP_PRIVATE"):  # pragma: no cover - not a POSIX system
        return np.load(path, mmap_mode="c").view(np.ndarray)
    with path.open("rb") as file:
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        offset = file.tell()
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        pages = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE | _NORESERVE, prot=protection)
    return np.ndarray(shape, dtype, pages, offset)


def _temporary_folder(n_bytes: int) -> str:
    named = os.environ.get("TMPDIR")
    if named:
        return named
    try:
        if shutil.disk_usage("/dev/shm").free > 2 * n_bytes and os.access("/dev/shm", os.W_OK):
            return "/dev/shm"
    except OSError:
        pass
    return tempfile.gettempdir()


@contextlib.contextmanager
def in_words(place: str, n_bytes: int) -> Iterator[None]:
    """Say where there is no room for the rows, how much they need, and what to do."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"the rows of the data, {n_bytes:,} bytes, cannot be stored in {place} "
            f"({error.strerror or 'it is full'}): set the environment variable TMPDIR to a folder "
            "with room for them that this process may write to."
        ) from error


def _gone(folder: Path) -> str:
    return (
        f"the rows that were stored in {folder} are gone or cannot be read: construct the step "
        "method again, and keep this folder for as long as it is in use, or set the environment "
        "variable TMPDIR to a folder that is not cleaned."
    )
