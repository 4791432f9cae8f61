"""Columns of tables: selecting them, and combining them into one array."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.arguments import choice_among
from pymc_austerity.errors import DataError, SettingError, SettingTypeError
from pymc_austerity.sources.checks import checked_range, common_dtype
from pymc_austerity.sources.protocols import Source, identity_of

__all__ = ["Columns", "ColumnsSource", "fill_columns", "refuse_missing_columns"]

_ROWS_AT_ONCE = 4_096
"""Rows that are written column by column should stay in the cache."""
_ROWS_COPIED = 16_384


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a table as rows of a model's data.

    Parameters
    ----------
    table : path or table
        A path to a Parquet file, a folder of Parquet files or a zarr group; a table of Arrow,
        pandas or dask; an xarray ``Dataset``; a zarr group.
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


def refuse_missing_columns(what: str, wanted: Sequence[str], there: Iterable[Any]) -> None:
    """Refuse columns that are not in the table, and names of several columns."""
    there = list(there)
    for name in wanted:
        if name not in there:
            raise SettingError(
                f"{what} has no column {name!r}: {choice_among(name, there)}; "
                "Columns(table, names) names columns."
            )
        if there.count(name) > 1:
            raise DataError(f"{what} has {there.count(name)} columns {name!r}: rename all but one.")


def fill_columns(what: str, out: NDArray, columns: Sequence[NDArray]) -> None:
    """Write columns side by side into a vector or matrix whose dtype holds them.

    Raises
    ------
    DataError
        An integer is too large for a floating number to be equal to it.
    """
    for column in columns:
        if out.dtype.kind == "f" and column.dtype.kind in "iu" and column.dtype.itemsize == 8:
            _refuse_rounding(what, column)
    matrix = out.reshape(len(out), len(columns))
    for start in range(0, len(out), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        for place, column in enumerate(columns):
            matrix[rows, place] = column[rows]


def _refuse_rounding(what: str, integers: NDArray) -> None:
    if integers.size and max(-int(integers.min()), int(integers.max())) > 2**53:
        raise DataError(
            f"{what} has integers above 2 ** 53 beside floating columns, which cannot hold them: "
            "give the two kinds as two sources."
        )


class ColumnsSource:
    """Vectors of data side by side, as one matrix.

    Parameters
    ----------
    sources : sequence of Source
        Each with rows of shape ``()``.
    what : str
        What messages call the matrix.
    """

    def __init__(self, sources: Sequence[Source], what: str) -> None:
        self._sources, self._what = list(sources), what
        for source in sources:
            if source.row_shape or source.n_rows != sources[0].n_rows:
                raise DataError(
                    f"{what} has columns that are not vectors of one length: give them one by one."
                )
        self.n_rows = sources[0].n_rows
        self.row_shape = (len(self._sources),)
        self.dtype = common_dtype([source.dtype for source in sources])
        lengths = [source.block_length for source in sources if source.block_length]
        self.block_length = max(lengths, default=None)
        self.reads_any_row = all(source.reads_any_row for source in sources)

    def read(self, start: int, stop: int) -> NDArray:
        """Rows ``start`` to ``stop``."""
        checked_range(start, stop, self.n_rows)
        out = np.empty((stop - start, *self.row_shape), self.dtype)
        # copies of columns are kept small where they cost nothing but memory
        step = _ROWS_COPIED if self.reads_any_row else max(stop - start, 1)
        for begin in range(start, stop, step):
            end = min(begin + step, stop)
            columns = [source.read(begin, end) for source in self._sources]
            fill_columns(self._what, out[begin - start : end - start], columns)
        return out

    def take(self, indices: NDArray[np.intp]) -> NDArray:
        """Rows at the given positions."""
        columns = [source.take(indices) for source in self._sources]
        out = np.empty((len(columns[0]), *self.row_shape), self.dtype)
        fill_columns(self._what, out, columns)
        return out

    @property
    def identity(self) -> str | None:
        """Identifies these rows; None if a column has no identity."""
        known = [identity_of(source) for source in self._sources]
        return None if None in known else str(known)

    def refuse_if_changed(self) -> None:
        """As for each of the columns."""
        for source in self._sources:
            source.refuse_if_changed()

    def close(self) -> None:
        """Close each of the columns."""
        for source in self._sources:
            source.close()
