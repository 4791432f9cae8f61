"""Whether files have changed since they were opened, by their sizes and times."""

import hashlib
import os
from collections.abc import Iterable
from typing import TypeAlias

from pymc_austerity.errors import StorageError

__all__ = ["Stamp", "refuse_changed_files", "stamps_of"]

Stamp: TypeAlias = tuple[int, int | str]
"""Size in bytes and time of the last change in nanoseconds; for a folder, a digest of its files."""


def stamps_of(paths: Iterable[str]) -> dict[str, Stamp]:
    """Stamps of files and folders, by path.

    Raises
    ------
    OSError
        One of them is not there, or cannot be read.
    """
    return {path: _stamp_of(path) for path in paths}


def refuse_changed_files(what: str, stamps: dict[str, Stamp]) -> None:
    """Raise StorageError for the first file or folder whose stamp has changed."""
    for path, stamp in stamps.items():
        try:
            now = _stamp_of(path)
        except OSError as error:
            raise StorageError(
                f"{what} cannot be read any more ({error.strerror}: {path}): put the store "
                "back, or open it where it is now."
            ) from error
        if now != stamp:
            raise StorageError(
                f"{what} was changed while it was in use ({path}): construct the step method again."
            )


def _stamp_of(path: str) -> Stamp:
    status = os.stat(path)
    if not os.path.isdir(path):
        return status.st_size, status.st_mtime_ns
    digest, size = hashlib.blake2b(digest_size=16), 0
    for folder, subfolders, names in os.walk(path, onerror=_raise):
        subfolders.sort()
        for name in sorted(names):
            status = os.stat(os.path.join(folder, name))
            size += status.st_size
            relative = os.path.relpath(os.path.join(folder, name), path)
            digest.update(f"{relative}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return size, digest.hexdigest()


def _raise(error: OSError) -> None:
    raise error
