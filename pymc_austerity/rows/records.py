"""Rows in files of records: all numbers of a row together, in types no wider than needed."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import StorageError
from pymc_austerity.rows.files import RowFiles, Tenancy, errors_in_words, gone
from pymc_austerity.rows.passes import blocks_of
from pymc_austerity.rows.protocols import Block
from pymc_austerity.rows.reading import callable_reader, widening
from pymc_austerity.rows.shared import SharedRows

FILE_NAME = "{}.rows"
"""Of the files of a store, by their numbers."""

_SCRATCH = 2**18
"""Bytes that are read at once."""

_ALIGNED = 64


class Field(NamedTuple):
    """An array of rows that lies in the records of a file, its type narrower there or the same."""

    file: int
    name: str
    dtype: np.dtype


class Reading(NamedTuple):
    """What the compiled reader needs; see `pymc_austerity.rows.reading.reader`.

    Attributes
    ----------
    counts, files, facts : int arrays
    scratch, out : byte arrays
    block : tuple of arrays
        Views of `out`: where rows are after the call.
    """

    counts: NDArray[np.int64]
    files: NDArray[np.int64]
    facts: NDArray[np.int64]
    scratch: NDArray[np.uint8]
    out: NDArray[np.uint8]
    block: Block

    @property
    def failed(self) -> bool:
        """Whether some rows could not be read."""
        return bool(self.counts[3])


class StoredRows(RowFiles):
    """Rows in files of records, which may be larger than the memory.

    Records hold numbers in narrow types, and are read one by one: what was read is not kept in
    memory by this process. Pickling sends the path of the files, as for `SharedRows`.
    """

    def __init__(
        self,
        tenancy: Tenancy,
        n_rows: int,
        records: Sequence[np.dtype],
        fields: Sequence[Field],
    ) -> None:
        self._n_rows, self._records, self._fields = n_rows, list(records), list(fields)
        self._opened: list[_File] = []
        self._attach(tenancy, partial(_close, self._opened))
        self._open()

    def window(self, start: int, stop: int) -> Block:
        """Copies of rows ``start`` to ``stop`` in storage order."""
        return self.take(np.arange(start, min(stop, self._n_rows)))

    def take(self, indices: NDArray[np.intp]) -> Block:
        """Copies of the rows at the given positions in storage order."""
        rows = np.ascontiguousarray(indices, dtype=np.int64)
        if rows.size and not 0 <= rows.min() <= rows.max() < self._n_rows:
            raise IndexError(f"rows {rows.min()} to {rows.max()} are not among {self._n_rows}")
        reading = self.reading(rows.size)
        counts, files, facts, scratch, out, block = reading
        known = [array.ctypes.data for array in (counts, files, facts, scratch, rows)]
        callable_reader()(*known, rows.size, out.ctypes.data)
        self.refuse_if_failed(reading)
        return block

    def reading(self, n_rows: int) -> Reading:
        """What is needed to read some rows at a time."""
        used = sorted({field.file for field in self._fields})
        files = [(self._opened[number].known_as, self._records[number].itemsize) for number in used]
        facts, shapes, begin = [], [], 0
        for number, name, dtype in self._fields:
            record = self._records[number]
            assert record.fields is not None
            stored, offset = record.fields[name][:2]
            kind, is_real = widening(stored.base, dtype)
            n_bytes = stored.itemsize // stored.base.itemsize * dtype.itemsize
            n_items = n_bytes // (dtype.itemsize if kind else 1)
            facts.append((used.index(number), offset, n_items, kind, is_real, begin))
            shapes.append((begin, n_bytes * n_rows, dtype, (n_rows, *stored.shape)))
            begin += -(-n_bytes * n_rows // _ALIGNED) * _ALIGNED
        out = np.empty(begin, dtype=np.uint8)
        block = tuple([out[a : a + n].view(dtype).reshape(shape) for a, n, dtype, shape in shapes])
        largest = max(size for _, size in files)
        n_scratch = max(largest, min(_SCRATCH, largest * n_rows))
        scratch = np.empty(-(-n_scratch // _ALIGNED) * _ALIGNED, dtype=np.uint8)
        counts, of_files, of_facts = (
            np.array(numbers, dtype=np.int64)
            for numbers in ([len(files), len(facts), scratch.size, 0], files, facts)
        )
        return Reading(counts, of_files, of_facts, scratch, out, block)

    def refuse_if_failed(self, reading: Reading) -> None:
        """Raise StorageError where rows could not be read."""
        if reading.failed:
            raise StorageError(gone(self._folder))

    def extend(self, function: Callable[[Block], NDArray]) -> None:
        """Store one more array: what a function makes of each block of rows as they are stored."""
        first = function(self.window(0, 1))
        record = np.dtype([("0", first.dtype, first.shape[1:])])
        path = self._path(len(self._records))
        place, n_bytes = str(self._folder.parent), self._n_rows * record.itemsize
        with errors_in_words(place, n_bytes), path.open("wb") as file:
            for block in blocks_of(self):
                function(block).tofile(file)
        self._fields.append(Field(len(self._records), "0", first.dtype))
        self._records.append(record)
        self._open()

    def split(self, n_arrays: int) -> "StoredRows":
        """Keep the first `n_arrays` arrays; the others are read as a store of their own."""
        self._fields, others = self._fields[:n_arrays], self._fields[n_arrays:]
        return StoredRows(Tenancy(self._folder), self._n_rows, self._records, others)

    @property
    def n_arrays(self) -> int:
        """Number of arrays."""
        return len(self._fields)

    @property
    def n_bytes(self) -> int:
        """Size of the files in bytes."""
        return self._n_rows * sum(record.itemsize for record in self._records)

    def _path(self, number: int) -> Path:
        return self._folder / FILE_NAME.format(number)

    def _open(self) -> None:
        """Open the files that are not open yet."""
        for number in range(len(self._opened), len(self._records)):
            self._opened.append(_File.of(self._path(number)))

    def __getstate__(self) -> dict[str, Any]:
        self._refuse_if_gone()
        return {
            "folder": self._folder,
            "n_rows": self._n_rows,
            "records": self._records,
            "fields": self._fields,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        folder = state.pop("folder")
        try:
            self.__init__(Tenancy(folder), **state)  # type: ignore[misc]
        except OSError as error:
            raise StorageError(gone(folder)) from error


Store: TypeAlias = SharedRows | StoredRows
"""Rows in sampling order."""


class _File(NamedTuple):
    """An open file, as the reader calls it, or its pages where files have no numbers."""

    known_as: int
    pages: NDArray[np.uint8] | None = None

    @classmethod
    def of(cls, path: Path) -> "_File":
        if hasattr(os, "pread"):
            return cls(os.open(path, os.O_RDONLY))
        pages = np.memmap(path, np.uint8, mode="r")  # pragma: no cover - not a POSIX system
        return cls(pages.ctypes.data, pages)


def _close(files: list[_File]) -> None:
    for file in files:
        if file.pages is None:
            os.close(file.known_as)
    files.clear()
