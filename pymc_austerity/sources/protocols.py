"""The contract between rows that stay where they are and their readers."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Source", "identity_of"]


class Source(Protocol):
    """One named piece of data, with rows on axis 0, that is read where it is stored.

    Any number of threads may call ``read`` and ``take``. A pickled source contains rows only if
    they are in memory: the process that unpickles it opens the store again.

    A source may have an ``identity``, a text that changes whenever the rows do and is the same in
    every process. ``setup_folder=`` needs one.
    """

    @property
    def n_rows(self) -> int:
        """Number of rows, at least 1."""
        ...

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of one row: ``()`` for a vector of data, ``(k,)`` for a matrix."""
        ...

    @property
    def dtype(self) -> np.dtype:
        """Type of the values: bool, integer or floating, in native byte order."""
        ...

    @property
    def block_length(self) -> int | None:
        """Number of rows that the store reads together (a chunk, a row group); None for any."""
        ...

    @property
    def reads_any_row(self) -> bool:
        """Whether ``take`` is fast for rows at random positions."""
        ...

    def read(self, start: int, stop: int) -> NDArray:
        """Rows ``start`` to ``stop`` in order, a C-contiguous writable copy."""
        ...

    def take(self, indices: NDArray[np.intp]) -> NDArray:
        """Rows at the given positions, in the order given, a C-contiguous writable copy."""
        ...

    def refuse_if_changed(self) -> None:
        """Raise StorageError if the store was changed or removed since it was opened."""
        ...

    def close(self) -> None:
        """Release files and memory; the next read opens them again."""
        ...


def identity_of(source: Source) -> str | None:
    """Identifies the rows of a source in any process; None if that is not possible."""
    identity: str | None = getattr(source, "identity", None)
    return identity
