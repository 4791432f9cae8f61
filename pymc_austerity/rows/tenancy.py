"""Who still uses a temporary folder: the last one to leave removes it."""

import os
import shutil
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - not a POSIX system
    fcntl = None  # type: ignore[assignment]

__all__ = ["Tenancy"]

_LOCK = "in-use"
_SECONDS_TO_MOVE_IN = 60.0


class Tenancy:
    """A shared lock on a folder, held as long as this process uses it.

    The operating system gives the lock back when a process ends, however it ends, so that the
    next one to leave, or the next one to look, can tell that nobody is left. Processes forked
    from this one share its tenancy and don't end it.

    Parameters
    ----------
    folder : Path
        An existing folder.

    Notes
    -----
    Where the system has no such locks (Windows), the process that created the folder removes it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = os.getpid()
        path = folder / _LOCK
        self._creator = not path.exists()
        self._lock: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if fcntl is not None:
            fcntl.flock(self._lock, fcntl.LOCK_SH)

    def leave(self) -> None:
        """End the tenancy, and remove the folder if nobody else has one."""
        if self._lock is None or os.getpid() != self._process:
            return
        alone = _is_alone(self._lock) if fcntl is not None else self._creator
        if alone:
            shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)
        self._lock = None

    @staticmethod
    def evict(folder: Path) -> None:
        """Remove a folder in which nobody has a tenancy any more."""
        if fcntl is None:
            return
        try:
            if time.time() - folder.stat().st_mtime < _SECONDS_TO_MOVE_IN:
                return  # somebody may be about to take the lock
            lock = os.open(folder / _LOCK, os.O_RDWR)
        except OSError:
            return
        try:
            if _is_alone(lock):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _is_alone(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
