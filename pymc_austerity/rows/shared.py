"""One copy of the rows per machine, whatever number of processes reads it."""

import multiprocessing.util
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.rows.protocols import Block
from pymc_austerity.rows.tenancy import Tenancy

__all__ = ["SharedRows"]

_PREFIX = "pymc_austerity-rows-"
_ROWS_PER_WRITE = 65_536


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

    Examples
    --------
    >>> import numpy as np
    >>> rows = SharedRows([np.arange(4.0), np.eye(4)], order=np.array([3, 2, 1, 0]))
    >>> y, x = rows.window(0, 2)
    >>> y
    array([3., 2.])
    >>> rows.close()
    """

    def __init__(self, arrays: Sequence[NDArray], order: NDArray[np.intp]) -> None:
        self._n_rows = int(order.size)
        n_bytes = sum(array.nbytes for array in arrays)
        _remove_abandoned()
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_temporary_folder(n_bytes)))
        self._attach(folder)
        for number, array in enumerate(arrays):
            _store(array, order, folder / f"{number}.npy")
        self._arrays = _open(folder, len(arrays))

    def _attach(self, folder: Path) -> None:
        self._folder = folder
        self._tenancy = Tenancy(folder)
        self._finalizer = weakref.finalize(self, self._tenancy.leave)
        if multiprocessing.parent_process() is not None:  # workers skip what atexit would do
            multiprocessing.util.Finalize(None, self._tenancy.leave, exitpriority=0)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._n_rows

    @property
    def n_bytes(self) -> int:
        """Size of the stored rows in bytes."""
        return sum(array.nbytes for array in self._arrays)

    def window(self, start: int, stop: int) -> Block:
        """Rows ``start`` to ``stop`` in storage order, as views."""
        return tuple([array[start:stop] for array in self._arrays])

    def take(self, indices: NDArray[np.intp]) -> Block:
        """Copies of the rows at the given positions in storage order."""
        return tuple([array.take(indices, 0) for array in self._arrays])

    def close(self) -> None:
        """Leave the files; the last one to leave removes them. The rows can't be read after."""
        self._arrays = []
        self._finalizer()

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self._folder, "n_rows": self._n_rows, "n_arrays": len(self._arrays)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._n_rows = state["n_rows"]
        self._attach(state["folder"])
        self._arrays = _open(state["folder"], state["n_arrays"])


def _store(array: NDArray, order: NDArray[np.intp], path: Path) -> None:
    """Write the array in the given order; in pieces, so that no second copy is in between."""
    header = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": False,
        "shape": array.shape,
    }
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, order.size, _ROWS_PER_WRITE):
            array.take(order[start : start + _ROWS_PER_WRITE], axis=0).tofile(file)


def _open(folder: Path, n_arrays: int) -> list[NDArray]:
    # Mode "c" maps the file privately: pages are shared until written, which never happens, and
    # the arrays are flagged writable like those that `take` returns. Compiled functions are
    # specialised on that flag. The plain ndarray view slices several times faster than a memmap.
    return [
        np.load(folder / f"{number}.npy", mmap_mode="c").view(np.ndarray)
        for number in range(n_arrays)
    ]


def _temporary_folder(n_bytes: int) -> str:
    if "TMPDIR" not in os.environ:
        try:
            if shutil.disk_usage("/dev/shm").free > 2 * n_bytes and os.access("/dev/shm", os.W_OK):
                return "/dev/shm"
        except OSError:
            pass
    return tempfile.gettempdir()


def _remove_abandoned() -> None:
    """Remove what processes left behind that were killed before they could."""
    for place in {tempfile.gettempdir(), _temporary_folder(0)}:
        for folder in Path(place).glob(_PREFIX + "*"):
            Tenancy.evict(folder)
