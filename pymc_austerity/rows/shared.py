"""One copy of the rows per machine, whatever number of processes reads it."""

import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import StorageError
from pymc_austerity.rows.files import RowFiles, Tenancy, errors_in_words, gone
from pymc_austerity.rows.passes import ArrayRows, ReorderedRows, blocks_of
from pymc_austerity.rows.protocols import Block, RowSource

_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
"""Named since Python 3.13; the number is that of Linux on most processors, and ignored on others.
"""


class SharedRows(RowFiles):
    """Rows in memory maps that processes share through the operating system's page cache.

    Pickling sends the path of the files, not the rows. The files are removed when the last
    process that uses them is gone, also if it crashed.

    Parameters
    ----------
    arrays : sequence of arrays, each of shape (n_rows, ...)
        One array per leaf of the likelihood.
    order : int array, shape (n_rows,), optional
        Row ``order[i]`` of the arrays is stored at position ``i``; by default, row ``i``.

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

    def __init__(self, arrays: Sequence[NDArray], order: NDArray[np.intp] | None = None) -> None:
        rows = ArrayRows(arrays)
        place = _temporary_folder(sum(array.nbytes for array in arrays))
        self._fill(rows if order is None else ReorderedRows(rows, order), place)

    @classmethod
    def of(cls, source: RowSource) -> "SharedRows":
        """The rows of a source in its order, in the system's folder for temporary files."""
        rows = cls.__new__(cls)
        rows._fill(source, tempfile.gettempdir())
        return rows

    def _fill(self, source: RowSource, place: str) -> None:
        """Write all rows of a source, block by block."""
        first = source.window(0, 1)
        self._n_rows, self._arrays = source.n_rows, list[NDArray]()
        with errors_in_words(place, source.n_rows * sum(array.nbytes for array in first)):
            Tenancy.evict(place)
            self._attach(Tenancy.of_new_folder(place))
            try:
                with ExitStack() as opened:
                    paths = map(self._path, range(len(first)))
                    files = [opened.enter_context(path.open("wb")) for path in paths]
                    for file, array in zip(files, first, strict=True):
                        _write_header(file, array.dtype, (source.n_rows, *array.shape[1:]))
                    for block in blocks_of(source):
                        for file, array in zip(files, block, strict=True):
                            array.tofile(file)
                self._arrays = _open(self._folder, len(first))
            except BaseException:
                self.close()
                raise

    def extend(self, function: Callable[[Block], NDArray]) -> None:
        """Store one more array: what a function makes of each block of rows as they are stored."""
        path, place = self._path(len(self._arrays)), str(self._folder.parent)
        first = function(self.window(0, 1))
        with errors_in_words(place, self._n_rows * first.nbytes), path.open("wb") as file:
            _write_header(file, first.dtype, (self._n_rows, *first.shape[1:]))
            for block in blocks_of(self):
                function(block).tofile(file)
        self._arrays.append(_mapped(path))

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.npy"

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
        return tuple([array[start:stop] for array in self._arrays])

    def take(self, indices: NDArray[np.intp]) -> Block:
        """Copies of the rows at the given positions in storage order."""
        # any mode but the default reads straight into the result, twice as fast
        return tuple([array.take(indices, 0, mode="clip") for array in self._arrays])

    def close(self) -> None:
        """Leave the files; the last one to leave removes them. The rows can't be read after."""
        self._arrays = []
        super().close()

    def __getstate__(self) -> dict[str, Any]:
        self._refuse_if_gone()
        return {"folder": self._folder, "n_rows": self._n_rows, "n_arrays": len(self._arrays)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._n_rows = state["n_rows"]
        try:
            self._attach(Tenancy(state["folder"]))
            self._arrays = _open(state["folder"], state["n_arrays"])
        except OSError as error:
            raise StorageError(gone(state["folder"])) from error


def _write_header(file: BinaryIO, dtype: np.dtype, shape: tuple[int, ...]) -> None:
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
