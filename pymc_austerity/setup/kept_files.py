"""Files of results of passes: complete or absent, however the process that writes them ends."""

import contextlib
import hashlib
import os
import pickle
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pymc_austerity.errors import StorageError

__all__ = ["Part", "is_own", "make_folder", "parts_in", "read", "remove_left_over", "write"]

_END, _UNFINISHED = ".pass", ".unfinished"
_MAGIC, _CHECKSUM = b"pass-1\n\0", 32

_SECONDS_OF_A_WRITE = 3_600.0


class Part(NamedTuple):
    """A file with the results of some consecutive pieces of a pass.

    Attributes
    ----------
    start, stop : int
        The pieces.
    path : Path
    written_at : float
        Seconds since the epoch.
    """

    start: int
    stop: int
    path: Path
    written_at: float


def parts_in(folder: Path, key: str) -> list[Part]:
    """Parts of a pass that were written, in the order of their first pieces."""
    parts = []
    for path in sorted(folder.glob(f"{key}-*{_END}")):
        start, stop = path.name.removesuffix(_END).split("-")[1:]
        with contextlib.suppress(FileNotFoundError):  # another process has removed it
            parts.append(Part(int(start), int(stop), path, path.stat().st_mtime))
    return parts


def write(folder: Path, key: str, start: int, results: Sequence[bytes]) -> None:
    """Write pickled results of consecutive pieces; the folder is made if necessary."""
    folder.mkdir(mode=0o700, exist_ok=True)
    name = f"{key}-{start:08d}-{start + len(results):08d}{_END}"
    _write_whole(folder / name, pickle.dumps(list(results)))


def read(part: Part) -> list[bytes] | None:
    """The pickled results of a part; None if it cannot be read. A damaged file is removed."""
    try:
        content = part.path.read_bytes()
    except OSError:
        return None
    begin = len(_MAGIC) + _CHECKSUM
    head, content = content[:begin], content[begin:]
    if head != _MAGIC + _checksum(content):
        part.path.unlink(missing_ok=True)
        return None
    results: list[bytes] = pickle.loads(content)
    return results


def make_folder(folder: Path) -> None:
    """Make a folder that the user named, and try to write there.

    Raises
    ------
    StorageError
        The folder cannot be made or written to.
    """
    trial = folder / f"trial-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_whole(trial, b"")
        trial.unlink()
    except OSError as error:
        raise StorageError(
            f"setup_folder={str(folder)!r} cannot be used ({error.strerror}): name a folder that "
            "this process may write to."
        ) from error


def is_own(folder: Path) -> bool:
    """Whether a folder belongs to this user: files of others must not be unpickled."""
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return False
    is_users = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return is_users and folder.is_dir() and not folder.is_symlink()


def remove_left_over(folders: Sequence[Path], seconds: float) -> None:
    """Remove folders that nobody has written to for a long time, and unfinished files in others."""
    now = time.time()
    for folder in folders:
        with contextlib.suppress(OSError):
            if is_own(folder) and now - folder.stat().st_mtime > seconds:
                shutil.rmtree(folder, ignore_errors=True)
        for path in folder.glob("*" + _UNFINISHED):
            with contextlib.suppress(OSError):
                if now - path.stat().st_mtime > _SECONDS_OF_A_WRITE:
                    path.unlink()


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file that gets its name only when all of it is on disk."""
    unfinished = path.with_name(f"{path.name}-{os.getpid()}{_UNFINISHED}")
    with unfinished.open("wb") as file:
        file.write(_MAGIC + _checksum(content) + content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECKSUM).digest()
