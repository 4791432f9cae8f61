"""Rows of Parquet files, a row group at a time."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import DataError
from pymc_austerity.sources.arrow import dtype_of_field, in_words, numbers_of_column
from pymc_austerity.sources.changes import refuse_changed_files, stamps_of
from pymc_austerity.sources.checks import common_dtype, refuse_nulls
from pymc_austerity.sources.chunks import ChunkedSource
from pymc_austerity.sources.columns import Columns, fill_columns, refuse_missing_columns

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["ParquetSource"]

_ROWS_AT_ONCE = 65_536
_BYTES_AT_ONCE = 2**20


class ParquetSource(ChunkedSource):
    """Rows of columns of Parquet files, one file after the other.

    Memory is that of a row group of these columns, and of a few pages while it is decoded.

    Parameters
    ----------
    paths : sequence of Path
    columns : Columns
        Their names.
    what : str
        What messages call the rows.

    Raises
    ------
    DataError, SettingError, StorageError
        A column is missing, is not of numbers or has nulls; files differ or cannot be read.
    """

    def __init__(self, paths: Sequence[Path], columns: Columns, what: str) -> None:
        self._names = columns.listed
        self._groups: list[tuple[str, int]] = []
        lengths: list[int] = []
        n_nulls = dict.fromkeys(self._names, 0)
        dtypes_of: dict[str, list[np.dtype]] = {}
        self._stamps = stamps_of(map(str, paths))
        for path in self._stamps:
            with _opened(what, path) as file:
                dtypes_of[path] = self._dtypes_in(f"{what} in {path}", file)
                _refuse_other_dtypes(what, dtypes_of, path)
                for number in range(file.metadata.num_row_groups):
                    group = file.metadata.row_group(number)
                    self._groups.append((path, number))
                    lengths.append(group.num_rows)
                    _count_nulls(group, n_nulls)
        for name, count in n_nulls.items():
            refuse_nulls(_column(name, what), count)
        self._metadata: tuple[str, pq.FileMetaData] | None = None
        dtype = common_dtype(next(iter(dtypes_of.values())))
        super().__init__(what, lengths, columns.row_shape, dtype)

    @property
    def identity(self) -> str:
        """Identifies these rows: the files, their sizes and times, and the columns."""
        return f"{self._stamps} {self._names} {self.row_shape}"

    def refuse_if_changed(self) -> None:
        """Compare sizes and times of the files with those when they were opened."""
        refuse_changed_files(self._what, self._stamps)

    def _fill(self, out: NDArray, first: int, stop: int) -> None:
        for group in range(first, stop):
            begin, end = self._starts[group : group + 2] - self._starts[first]
            self._decode(out[begin:end], group)

    def _decode(self, out: NDArray, group: int) -> None:
        path, number = self._groups[group]
        refuse_changed_files(self._what, {path: self._stamps[path]})
        kept = self._metadata
        # each call has a file of its own, so that threads and forked processes share no position
        file = _opened(self._what, path, kept[1] if kept and kept[0] == path else None)
        self._metadata = path, file.metadata
        begin = 0
        with file, in_words(self._what, path):
            for batch in file.iter_batches(_ROWS_AT_ONCE, [number], self._names):
                first_row = int(self._starts[group]) + begin
                columns = [
                    numbers_of_column(_column(name, self._what), batch.column(name), first_row)
                    for name in self._names
                ]
                fill_columns(self._what, out[begin : begin + len(batch)], columns)
                begin += len(batch)
            if begin < len(out):
                raise ValueError(f"row group {number} ends after {begin:,} of {len(out):,} rows")

    def _dtypes_in(self, what: str, file: "pq.ParquetFile") -> list[np.dtype]:
        schema = file.schema_arrow
        refuse_missing_columns(what, self._names, schema.names)
        return [dtype_of_field(what, schema.field(name)) for name in self._names]

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_metadata": None}


def _opened(what: str, path: str, metadata: "pq.FileMetaData | None" = None) -> "pq.ParquetFile":
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install 'pymc-austerity[rows]'.") from error
    with in_words(what, path):
        # nothing but the pages that are being decoded is in memory
        return pq.ParquetFile(path, metadata=metadata, pre_buffer=False, buffer_size=_BYTES_AT_ONCE)


def _column(name: str, what: str) -> str:
    return f"column {name!r} of {what}"


def _refuse_other_dtypes(what: str, dtypes_of: dict[str, list[np.dtype]], path: str) -> None:
    first, expected = next(iter(dtypes_of.items()))
    if dtypes_of[path] != expected:
        raise DataError(
            f"{what} is in files that differ: {first} has {_listed(expected)}, {path} has "
            f"{_listed(dtypes_of[path])}."
        )


def _listed(dtypes: Sequence[np.dtype]) -> str:
    return ", ".join(map(str, dtypes))


def _count_nulls(group: "pq.RowGroupMetaData", n_nulls: dict[str, int]) -> None:
    """Add the footer's count of nulls; without one they are found when they are read."""
    for place in range(group.num_columns):
        column = group.column(place)
        if column.path_in_schema in n_nulls and column.is_stats_set:
            n_nulls[column.path_in_schema] += column.statistics.null_count or 0
