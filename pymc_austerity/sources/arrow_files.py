"""Rows of columns in Parquet and Arrow files, a row group or record batch at a time."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from pymc_austerity.errors import DataError
from pymc_austerity.sources.chunks import ChunkedSource, library, overlapping, readable
from pymc_austerity.sources.columns import Columns, numbers, refuse_missing_columns, refuse_nulls

_ROWS_AT_ONCE = 16_384
_BYTES_AT_ONCE = 2**16


class _BatchesSource(ChunkedSource):
    """Rows of columns of files, one file after the other, each in groups of rows.

    Parameters
    ----------
    what : str
        What messages call the rows.
    paths : sequence of Path
    columns : Columns
        Their names.

    Raises
    ------
    DataError, SettingError, StorageError
        A column is missing, is not of numbers or has nulls; files differ or cannot be read.
    """

    def __init__(self, what: str, paths: Sequence[Path], columns: Columns) -> None:
        self._listed, self._groups = columns.listed, list[tuple[str, int]]()
        lengths, dtypes_of = list[int](), dict[str, list[np.dtype]]()
        for path in map(str, paths):
            named = f"{what} in {path}"
            with readable(named):
                schema, of_groups = self._facts(path)
            refuse_missing_columns(named, columns, schema.names)
            empty = [schema.empty_table()[name] for name in self._listed]
            dtypes_of[path] = [
                numbers(*one).dtype for one in zip(columns.called(named), empty, strict=True)
            ]
            _refuse_other_dtypes(what, dtypes_of, path)
            lengths += of_groups
            self._groups += [(path, number) for number in range(len(of_groups))]
        dtype = np.result_type(*dtypes_of[path])
        names, place = columns.called(what), str(self._listed)
        super().__init__(what, names, lengths or [0], columns.row_shape, dtype, place=place)

    @abstractmethod
    def _facts(self, path: str) -> tuple[Any, list[int]]:
        """Schema of a file, and the numbers of rows of its groups."""

    @abstractmethod
    def _batches(self, path: str, number: int) -> Iterator[Any]:
        """Record batches of a group."""

    def _files(self, start: int, stop: int) -> Iterable[str]:
        return dict.fromkeys(path for path, _ in self._groups_of(start, stop))

    def _pieces(self, start: int, stop: int) -> Iterator[Sequence[Any]]:
        for path, number in self._groups_of(start, stop):
            for batch in self._batches(path, number):
                yield [batch.column(name) for name in self._listed]

    def _groups_of(self, start: int, stop: int) -> list[tuple[str, int]]:
        return [self._groups[number] for number in overlapping(self._starts, start, stop)]


class ParquetSource(_BatchesSource):
    """Rows of Parquet files.

    Memory is that of a few pages of these columns while they are decoded.
    """

    def __init__(self, what: str, paths: Sequence[Path], columns: Columns) -> None:
        self._n_nulls = dict.fromkeys(columns.listed, 0)
        super().__init__(what, paths, columns)
        for name, count in zip(self._names, self._n_nulls.values(), strict=True):
            refuse_nulls(name, count)

    def _facts(self, path: str) -> tuple[Any, list[int]]:
        with _parquet(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        for group in groups:  # without a count of nulls, they are found when they are read
            for place in range(group.num_columns):
                column = group.column(place)
                if column.path_in_schema in self._n_nulls and column.is_stats_set:
                    self._n_nulls[column.path_in_schema] += column.statistics.null_count or 0
        return schema, [group.num_rows for group in groups]

    def _batches(self, path: str, number: int) -> Iterator[Any]:
        # each call has a file of its own, so that threads and forked processes share no position
        metadata = _metadata(path, self._stamps[path])
        with _parquet(path, metadata=metadata) as file:
            yield from file.iter_batches(_ROWS_AT_ONCE, [number], self._listed)
        library("pyarrow").default_memory_pool().release_unused()


class ArrowSource(_BatchesSource):
    """Rows of Arrow files (Feather). Memory is that of a record batch, of all its columns."""

    def _facts(self, path: str) -> tuple[Any, list[int]]:
        arrow = library("pyarrow")
        with arrow.memory_map(path) as file:  # only the headers of the batches are read
            reader = arrow.ipc.open_file(file)
            groups = range(reader.num_record_batches)
            return reader.schema, [reader.get_batch(k).num_rows for k in groups]

    def _batches(self, path: str, number: int) -> Iterator[Any]:
        arrow = library("pyarrow")
        with arrow.OSFile(path) as file:
            yield arrow.ipc.open_file(file).get_batch(number)


def _parquet(path: str, **settings: Any) -> Any:
    # nothing but the pages that are being decoded is in memory
    return library("pyarrow.parquet").ParquetFile(
        path, pre_buffer=False, buffer_size=_BYTES_AT_ONCE, **settings
    )


@lru_cache(maxsize=4)
def _metadata(path: str, stamp: Any) -> Any:
    with _parquet(path) as file:
        return file.metadata


def _refuse_other_dtypes(what: str, dtypes_of: dict[str, list[np.dtype]], path: str) -> None:
    first = next(iter(dtypes_of))
    if dtypes_of[path] != dtypes_of[first]:
        described = [f"{one} has {', '.join(map(str, dtypes_of[one]))}" for one in (first, path)]
        raise DataError(f"{what} is in files that differ: {', '.join(described)}.")
