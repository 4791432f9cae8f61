"""Rows in a folder of this machine, which the last process that uses them removes."""

import contextlib
import multiprocessing.util
import os
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

from pymc_austerity.errors import StorageError

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
    Where the system has no such locks (Windows), the process that created the folder removes it.
    """

    def __init__(self, folder: Path, *, created: bool = False) -> None:
        self.folder = folder
        self._creator = created
        self._lock: int | None = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        if fcntl is not None:
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
        if self._lock is None:
            return
        alone = _is_alone(self._lock) if fcntl is not None else self._creator
        if alone:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.forget()

    def forget(self) -> None:
        """End the tenancy, and leave the folder to others."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

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

    _n_rows: int

    def _attach(self, tenancy: Tenancy, then: Callable[[], object] = str) -> None:
        """Use the folder of a tenancy; `then` is called when this use ends."""

        def leave() -> None:
            then()
            tenancy.leave()

        self._folder = tenancy.folder
        self._finalizer = weakref.finalize(self, leave)
        if multiprocessing.parent_process() is not None:  # workers skip what atexit would do
            multiprocessing.util.Finalize(None, leave, exitpriority=0)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._n_rows

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self._folder

    def close(self) -> None:
        """Leave the files; the last one to leave removes them. The rows can't be read after."""
        self._finalizer()

    def _refuse_if_gone(self) -> None:
        if not self._folder.exists():
            raise StorageError(gone(self._folder))


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
