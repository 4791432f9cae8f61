"""Refusals of all sources, in the same words."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import DataError

__all__ = [
    "checked_indices",
    "checked_range",
    "common_dtype",
    "native_dtype",
    "refuse_no_rows",
    "refuse_nulls",
]


def native_dtype(what: str, dtype: Any) -> np.dtype:
    """The dtype in native byte order, if it is bool, integer or floating.

    Raises
    ------
    DataError
        It is anything else: object, text, complex numbers, dates.
    """
    kind = dtype.kind if isinstance(dtype, np.dtype) else ""
    if kind in set("biuf"):
        return dtype.newbyteorder("=")
    remedy = (
        "give real and imaginary part as two columns"
        if kind == "c"
        else "convert it, text and categories to integer codes for example"
    )
    raise DataError(f"{what} has dtype {dtype}, not bool, integer or floating: {remedy}.")


def refuse_no_rows(what: str, shape: Sequence[int]) -> None:
    """Refuse data without rows on axis 0."""
    if not shape:
        raise DataError(f"{what} is a single number, and rows are on axis 0: give an array.")
    if 0 in shape:
        missing = "values in its rows" if shape[0] else "rows"
        raise DataError(f"{what} has no {missing}: give at least one.")


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


def common_dtype(dtypes: Sequence[np.dtype]) -> np.dtype:
    """The dtype of a matrix whose columns have these dtypes."""
    return np.result_type(*dtypes)


def checked_range(start: int, stop: int, n_rows: int) -> None:
    """A range of rows, which must lie within the rows."""
    if not 0 <= start <= stop <= n_rows:
        raise IndexError(f"rows {start} to {stop} are not among {n_rows} rows")


def checked_indices(indices: NDArray[np.intp], n_rows: int) -> NDArray[np.intp]:
    """Positions of rows, which must lie within the rows; negative ones are refused."""
    indices = np.asarray(indices, dtype=np.intp)
    if indices.size and (indices.min() < 0 or indices.max() >= n_rows):
        raise IndexError(f"positions are not among {n_rows} rows")
    return indices
