"""Rows of Arrow files (Feather), a record batch at a time."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.typing import NDArray

from pymc_austerity.sources.arrow import dtype_of_field, in_words, numbers_of_column
from pymc_austerity.sources.changes import refuse_changed_files, stamps_of
from pymc_austerity.sources.checks import common_dtype
from pymc_austerity.sources.chunks import ChunkedSource
from pymc_austerity.sources.columns import Columns, fill_columns, refuse_missing_columns

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ArrowFileSource"]


class ArrowFileSource(ChunkedSource):
    """Rows of columns of an Arrow file.

    Memory is that of a record batch, of all its columns.

    Parameters
    ----------
    path : Path
    columns : Columns
        Their names.
    what : str
        What messages call the rows.

    Raises
    ------
    DataError, SettingError, StorageError
        A column is missing or is not of numbers; the file cannot be read.
    """

    def __init__(self, path: Path, columns: Columns, what: str) -> None:
        self._what, self._path = what, str(path)
        self._names = columns.listed
        self._stamps = stamps_of([self._path])
        with self._opened(mapped=True) as reader:
            refuse_missing_columns(what, self._names, reader.schema.names)
            fields = [reader.schema.field(name) for name in self._names]
            # of a mapped file only the headers of the batches are read
            numbers = range(reader.num_record_batches)
            lengths = [reader.get_batch(number).num_rows for number in numbers]
        dtype = common_dtype([dtype_of_field(what, field) for field in fields])
        super().__init__(what, lengths or [0], columns.row_shape, dtype)

    @property
    def identity(self) -> str:
        """Identifies these rows: the file, its size and time, and the columns."""
        return f"{self._stamps} {self._names} {self.row_shape}"

    def refuse_if_changed(self) -> None:
        """Compare size and time of the file with those when it was opened."""
        refuse_changed_files(self._what, self._stamps)

    def _fill(self, out: NDArray, first: int, stop: int) -> None:
        self.refuse_if_changed()
        with self._opened() as reader:
            for number in range(first, stop):
                begin, end = self._starts[number : number + 2] - self._starts[first]
                batch = reader.get_batch(number)
                if len(batch) != end - begin:
                    raise ValueError(f"batch {number} has {len(batch):,} rows")
                columns = [
                    numbers_of_column(
                        f"column {name!r} of {self._what}",
                        batch.column(name),
                        int(self._starts[number]),
                    )
                    for name in self._names
                ]
                fill_columns(self._what, out[begin:end], columns)

    @contextlib.contextmanager
    def _opened(self, *, mapped: bool = False) -> "Iterator[pa.ipc.RecordBatchFileReader]":
        """The file, opened anew by each call, so that threads share no position."""
        try:
            import pyarrow as pa
        except ImportError as error:
            raise ImportError(
                "Arrow files need pyarrow: pip install 'pymc-austerity[rows]'."
            ) from error
        opened = pa.memory_map if mapped else pa.OSFile
        with in_words(self._what, self._path), opened(self._path) as file:
            yield pa.ipc.open_file(file)
