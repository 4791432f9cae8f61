"""One copy of the rows per machine, in a folder that the last process that uses it removes."""

import contextlib
import mmap
import multiprocessing.util
import os
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import StorageError
from pymc_austerity.rows.passes import ArrayRows, Block, ReorderedRows, RowSource, blocks_of

try:
    import fcntl
except ImportError:  # pragma: no cover - not a POSIX system
    fcntl = None  # type: ignore[assignment]

_LOCK = "in-use"
_PREFIX = "pymc_austerity-rows-"
_UNFINISHED = "pymc_austerity-new-"
_SECONDS_TO_MOVE_IN = 60.0


class Tenancy:
    """A shared lock on a folder, held as long as this process uses it.

    The operating system releases the lock when a process ends, for whatever reason, so that other
    processes can tell whether the folder is still in use. Processes forked
    from this one have no tenancy: what they opened stays open for them when the folder is gone.

    Parameters
    ----------
    folder : Path
        An existing folder.

    Notes
    -----
    Where the system has no such locks (Windows), the process that created the folder removes it. No
    file is open in a folder then while it is renamed or removed, which that system would refuse.
    """

    def __init__(self, folder: Path, *, created: bool = False) -> None:
        self.folder = folder
        self._creator = created
        self._lock: int | None = None
        if fcntl is not None:
            self._lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_SH)
        _tenancies.add(self)

    @classmethod
    def of_new_folder(cls, place: str) -> "Tenancy":
        """Create a folder, and name it once the lock is held: no other process removes it."""
        unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=place))
        tenancy = cls(unfinished, created=True)
        tenancy.folder = unfinished.with_name(unfinished.name.replace(_UNFINISHED, _PREFIX, 1))
        unfinished.rename(tenancy.folder)
        return tenancy

    def leave(self) -> None:
        """End the tenancy, and remove the folder if nobody else has one."""
        if self._creator if self._lock is None else _is_alone(self._lock):
            shutil.rmtree(self.folder, ignore_errors=True)
        self.forget()

    def forget(self) -> None:
        """End the tenancy, and leave the folder to others."""
        if self._lock is not None:
            os.close(self._lock)
        self._lock, self._creator = None, False

    @staticmethod
    def evict(place: str) -> None:
        """Remove the folders of this user in which nobody has a tenancy any more."""
        if fcntl is None:
            return
        for folder in Path(place).glob(_PREFIX + "*"):
            if _is_own(folder):
                _remove_if_abandoned(folder)
        for folder in Path(place).glob(_UNFINISHED + "*"):  # its process ended within microseconds
            if _is_own(folder):
                _remove_if_old(folder)


_tenancies: "weakref.WeakSet[Tenancy]" = weakref.WeakSet()


def _forget_all() -> None:
    for tenancy in _tenancies:
        tenancy.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def _remove_if_abandoned(folder: Path) -> None:
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR)
    except FileNotFoundError:  # it is being removed, or whoever did so was killed
        shutil.rmtree(folder, ignore_errors=True)
        return
    except OSError:  # too many open files, say: somebody may live there
        _remove_if_old(folder)
        return
    try:
        if _is_alone(lock):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _is_own(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _remove_if_old(folder: Path) -> None:
    try:
        age = time.time() - folder.stat().st_mtime
    except OSError:
        return
    if age > _SECONDS_TO_MOVE_IN:
        shutil.rmtree(folder, ignore_errors=True)


def _is_alone(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


class RowFiles:
    """What stores of rows have in common: a folder, and its end.

    Pickling sends the path of the folder, not the rows. The folder is removed when the last
    process that uses it is gone, also if it crashed.
    """

    n_rows: int

    def _attach(self, tenancy: Tenancy, then: Callable[[], object] = str) -> None:
        """Use the folder of a tenancy; `then` is called when this use ends."""

        def leave() -> None:
            then()
            tenancy.leave()

        self.folder = tenancy.folder
        self._finalizer = weakref.finalize(self, leave)
        if multiprocessing.parent_process() is not None:  # workers skip what atexit would do
            multiprocessing.util.Finalize(None, leave, exitpriority=0)

    def close(self) -> None:
        """Leave the files; the last one to leave removes them. The rows can't be read after."""
        self._finalizer()

    def _refuse_if_gone(self) -> None:
        if not self.folder.exists():
            raise StorageError(gone(self.folder))


@contextlib.contextmanager
def errors_in_words(place: str, n_bytes: int) -> Iterator[None]:
    """Say where there is no room for the rows, how much they need, and what to do."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"the rows of the data, {n_bytes:,} bytes, cannot be stored in {place} "
            f"({error.strerror or 'it is full'}): set the environment variable TMPDIR to a folder "
            "with room for them that this process may write to."
        ) from error


def gone(folder: Path) -> str:
    """What to say of rows that are no longer there."""
    return (
        f"the rows that were stored in {folder} are gone or cannot be read: construct the step "
        "method again, and keep this folder for as long as it is in use, or set the environment "
        "variable TMPDIR to a folder that is not cleaned."
    )


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
        self.n_rows, self._arrays = source.n_rows, list[NDArray]()
        with errors_in_words(place, source.n_rows * sum(array.nbytes for array in first)):
            Tenancy.evict(place)
            self._attach(Tenancy.of_new_folder(place))
            try:
                self._write(first, blocks_of(source))
            except BaseException:
                self.close()
                raise

    def _write(self, first: Block, blocks: Iterable[Block]) -> None:
        """Store arrays, each in a file of its own, from blocks of their rows, and map them."""
        number = len(self._arrays)
        paths = [self._path(number + k) for k in range(len(first))]
        with ExitStack() as opened:
            files = [opened.enter_context(path.open("wb")) for path in paths]
            for file, array in zip(files, first, strict=True):
                _write_header(file, array.dtype, (self.n_rows, *array.shape[1:]))
            for block in blocks:
                for file, array in zip(files, block, strict=True):
                    array.tofile(file)
        self._arrays += map(_mapped, paths)

    def extend(self, function: Callable[[Block], NDArray]) -> None:
        """Store one more array: what a function makes of each block of rows as they are stored."""
        first = function(self.window(0, 1))
        with errors_in_words(str(self.folder.parent), self.n_rows * first.nbytes):
            self._write((first,), ((function(block),) for block in blocks_of(self)))

    def truncate(self, n_arrays: int) -> None:
        """Forget all arrays but the first ones."""
        del self._arrays[n_arrays:]

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.npy"

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
        return {"folder": self.folder, "n_rows": self.n_rows, "n_arrays": len(self._arrays)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.n_rows = state["n_rows"]
        try:
            self._attach(Tenancy(state["folder"]))
            self._arrays = [_mapped(self._path(k)) for k in range(state["n_arrays"])]
        except OSError as error:
            raise StorageError(gone(state["folder"])) from error


def _write_header(file: BinaryIO, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """Begin an ``.npy`` file of an array in C order."""
    descr = np.lib.format.dtype_to_descr(dtype)
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


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
