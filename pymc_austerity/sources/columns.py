"""Columns of tables: selecting them, as numbers, and side by side in one array."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.arguments import choice_among
from pymc_austerity.errors import DataError, SettingError, SettingTypeError

_ROWS_AT_ONCE = 4_096
"""Rows that are written column by column should stay in the cache."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a table as rows of a model's data.

    Parameters
    ----------
    table : path or table
        A path to a Parquet file, a folder of Parquet files, an Arrow file, a zarr group or an HDF5
        file; a table of Arrow, pandas, polars or dask; an xarray ``Dataset``; a zarr or h5py group.
    names : str or sequence of str
        A single name gives a vector of data, shape (n_rows,); a sequence of k names, even of one,
        gives a matrix, shape (n_rows, k), with these columns in this order.

    Raises
    ------
    SettingError
        No name is given, or a name is given twice.
    SettingTypeError
        A name is not a str.

    Notes
    -----
    A matrix has the dtype to which NumPy promotes the dtypes of its columns. Integers above 2 ** 53
    beside floating columns are rejected, because they would be rounded.

    Examples
    --------
    >>> import pandas as pd
    >>> from pymc_austerity.sources import Columns, open_source
    >>> table = pd.DataFrame({"age": [31, 45], "income": [2.5, 4.0], "bought": [True, False]})
    >>> open_source(Columns(table, ["age", "income"]), "x").read(0, 2)
    array([[31. ,  2.5],
           [45. ,  4. ]])
    >>> open_source(table, "bought").read(0, 2)
    array([ True, False])
    """

    table: Any = field(repr=False)
    names: str | Sequence[str]

    def __post_init__(self) -> None:
        for name in self.listed:
            if not isinstance(name, str):
                raise SettingTypeError(f"names={self.names!r} is not text: give names of columns.")
        if not self.listed or len(set(self.listed)) < len(self.listed):
            raise SettingError(
                f"names={self.names!r} is not a list of columns: give at least one name, and each "
                "once."
            )

    @property
    def listed(self) -> list[str]:
        """The names as a list."""
        if isinstance(self.names, str):
            return [self.names]
        if not isinstance(self.names, Iterable) or isinstance(self.names, Set):
            raise SettingTypeError(
                f"names={self.names!r} is not a list of names: give one, in order."
            )
        return list(self.names)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of a row."""
        return () if isinstance(self.names, str) else (len(self.listed),)

    def called(self, what: str) -> list[str]:
        """What messages call the columns."""
        return [f"column {name!r} of {what}" for name in self.listed]


def refuse_missing_columns(what: str, columns: Columns, there: Iterable[Any]) -> None:
    """Refuse columns that are not in the table, and names of several columns."""
    there = list(there)
    for name in columns.listed:
        if name not in there:
            raise SettingError(
                f"{what} has no column {name!r}: {choice_among(name, there)}; "
                "Columns(table, names) names columns."
            )
        if there.count(name) > 1:
            raise DataError(f"{what} has {there.count(name)} columns {name!r}: rename all but one.")


def numbers(what: str, column: Any, first_row: int = 0) -> NDArray:
    """The values of an array, or of a column of Arrow or pandas, without a copy where possible.

    Parameters
    ----------
    what : str
        What messages call it.
    column : array, pyarrow.Array, pyarrow.ChunkedArray or pandas.Series
    first_row : int
        Row of the data at which it begins.

    Raises
    ------
    DataError
        Values are not bool, integer or floating, or some are missing. NaN in a column of NumPy's
        own is a number.
    """
    if hasattr(column, "null_count"):
        if hasattr(column.type, "index_type"):  # codes may mean other values in other chunks
            column = column.cast(column.type.value_type)
        dtype, missing = column.type, np.asarray(column.is_null()) if column.null_count else None
        present = column if missing is None else column.drop_null()
        values = present.to_numpy(zero_copy_only=False)
    elif hasattr(column, "isna") and not isinstance(column.dtype, np.dtype):
        dtype, missing = column.dtype, column.isna().to_numpy()
        values = column.dropna().to_numpy()
    else:
        values = np.asarray(column)
        dtype, missing = values.dtype, None
    if str(dtype) == "null":
        raise DataError(f"{what} has only nulls: name another column.")
    native_dtype(what, values.dtype, called=dtype)
    if missing is not None and missing.any():
        refuse_nulls(what, int(missing.sum()), first_row + int(missing.argmax()))
    return values


def native_dtype(what: str, dtype: np.dtype, called: Any = None) -> np.dtype:
    """The dtype in native byte order, if it is bool, integer or floating.

    Raises
    ------
    DataError
        It is anything else: object, text, complex numbers, dates.
    """
    if dtype.kind in "biuf":
        return dtype.newbyteorder("=")
    remedy = (
        "give real and imaginary part as two columns"
        if dtype.kind == "c"
        else "convert it, text and categories to integer codes for example"
    )
    raise DataError(f"{what} has dtype {called or dtype}, not bool, integer or floating: {remedy}.")


def refuse_nulls(what: str, count: int, first: int | None = None) -> None:
    """Refuse nulls: they are not numbers, and no row is left out silently.

    Parameters
    ----------
    what : str
        What messages call the column.
    count : int
        Of nulls.
    first : int, optional
        Row of the first one, where only a part of the rows was counted.
    """
    if count:
        nulls = "1 null" if count == 1 else f"{count:,} nulls"
        found = nulls if first is None else f"nulls, the first in row {first:,}"
        raise DataError(f"{what} has {found}: drop or fill these rows in the store.")


def fill_columns(what: str, out: NDArray, columns: Sequence[NDArray]) -> None:
    """Write an array, or columns side by side, into one whose dtype holds them.

    Raises
    ------
    DataError
        An integer is too large for a floating number to be equal to it.
    """
    for column in columns:
        if out.dtype.kind == "f" and column.dtype.kind in "iu" and column.dtype.itemsize == 8:
            _refuse_rounding(what, column)
    if columns[0].shape == out.shape:
        out[...] = columns[0]
        return
    for start in range(0, len(out), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        for place, column in enumerate(columns):
            out[rows, place] = column[rows]


def _refuse_rounding(what: str, integers: NDArray) -> None:
    if integers.size and max(-int(integers.min()), int(integers.max())) > 2**53:
        raise DataError(
            f"{what} has integers above 2 ** 53 beside floating columns, which cannot hold them: "
            "give the two kinds as two sources."
        )
