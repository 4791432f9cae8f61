"""Columns of Arrow tables, and how they become NumPy arrays."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import DataError, SettingError, StorageError
from pymc_austerity.sources.checks import (
    checked_indices,
    checked_range,
    native_dtype,
    refuse_no_rows,
    refuse_nulls,
)
from pymc_austerity.sources.columns import Columns, ColumnsSource, refuse_missing_columns
from pymc_austerity.sources.protocols import Source

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["dtype_of_field", "in_words", "numbers_of_column", "open_arrow_table"]


class ArrowColumnSource:
    """Rows of one column of an Arrow table, which pickles contain.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    dtype : dtype
        Of its values.
    what : str
        What messages call it.
    """

    block_length = None
    reads_any_row = True
    row_shape = ()

    def __init__(self, column: "pa.ChunkedArray", dtype: np.dtype, what: str) -> None:
        refuse_no_rows(what, (len(column),))
        _refuse_nulls_in(what, column, 0)
        self.n_rows = len(column)
        self.dtype = dtype
        self._column, self._what = column, what

    def read(self, start: int, stop: int) -> NDArray:
        """Rows ``start`` to ``stop``."""
        checked_range(start, stop, self.n_rows)
        return self._numbers(self._column.slice(start, stop - start))

    def take(self, indices: NDArray[np.intp]) -> NDArray:
        """Rows at the given positions."""
        return self._numbers(self._column.take(checked_indices(indices, self.n_rows)))

    def refuse_if_changed(self) -> None:
        """Nothing to check: Arrow tables do not change."""

    def close(self) -> None:
        """Nothing to release."""

    def _numbers(self, column: "pa.ChunkedArray") -> NDArray:
        return np.array(numbers_of_column(self._what, column.combine_chunks()), self.dtype)


def open_arrow_table(table: "pa.Table", columns: Columns, what: str) -> Source:
    """Rows of columns of a table."""
    refuse_missing_columns(what, columns.listed, table.column_names)
    sources = []
    for name in columns.listed:
        dtype = dtype_of_field(what, table.schema.field(name))
        named = f"column {name!r} of {what}"
        sources.append(ArrowColumnSource(_decoded(table.column(name)), dtype, named))
    return ColumnsSource(sources, what) if columns.row_shape else sources[0]


def dtype_of_field(what: str, field: "pa.Field") -> np.dtype:
    """The dtype of a column's values.

    Raises
    ------
    DataError
        They are not numbers.
    """
    named = f"column {field.name!r} of {what}"
    kind = field.type.value_type if hasattr(field.type, "index_type") else field.type
    if str(kind) == "null":
        raise DataError(f"{named} has only nulls: name another column.")
    try:
        dtype = np.dtype(kind.to_pandas_dtype())
    except NotImplementedError:
        dtype = np.dtype(object)
    return native_dtype(named, dtype if dtype.kind in "biuf" else field.type)


def numbers_of_column(what: str, column: "pa.Array", first_row: int = 0) -> NDArray:
    """The values of a column as an array, without a copy where possible.

    Parameters
    ----------
    what : str
        What messages call the column.
    column : pyarrow.Array
    first_row : int
        Row of the data at which it begins.

    Raises
    ------
    DataError
        One of them is null.
    """
    column = _decoded(column)
    _refuse_nulls_in(what, column, first_row)
    return column.to_numpy(zero_copy_only=False)


def _refuse_nulls_in(what: str, column: Any, first_row: int) -> None:
    if column.null_count:
        first = column.is_null().index(True).as_py()
        refuse_nulls(what, column.null_count, first_row + first)


def _decoded(column: Any) -> Any:
    """Values of a dictionary: its codes may mean other values in other chunks."""
    kind = column.type
    return column.cast(kind.value_type) if hasattr(kind, "index_type") else column


@contextlib.contextmanager
def in_words(what: str, path: str) -> Iterator[None]:
    """Name the data in Arrow's error about a file."""
    try:
        yield
    except (DataError, SettingError, StorageError):
        raise
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise StorageError(
            f"{what} cannot be read from {path} ({reason}): write the file again."
        ) from error
