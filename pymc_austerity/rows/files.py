"""Rows in a folder of this machine, which the last process that uses them removes."""

import contextlib
import multiprocessing.util
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

from pymc_austerity.errors import StorageError
from pymc_austerity.rows.tenancy import Tenancy


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


def gone(folder: Path) -> str:
    """What to say of rows that are no longer there."""
    return (
        f"the rows that were stored in {folder} are gone or cannot be read: construct the step "
        "method again, and keep this folder for as long as it is in use, or set the environment "
        "variable TMPDIR to a folder that is not cleaned."
    )
