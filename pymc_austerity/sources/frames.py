"""Columns of pandas tables as arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.sources.arrays import ArraySource
from pymc_austerity.sources.checks import native_dtype, refuse_nulls
from pymc_austerity.sources.columns import Columns, ColumnsSource, refuse_missing_columns
from pymc_austerity.sources.protocols import Source

__all__ = ["dtype_of_series", "numbers_of_series", "open_pandas_frame"]


def open_pandas_frame(frame: Any, columns: Columns, what: str) -> Source:
    """Rows of columns of a ``pandas.DataFrame``."""
    refuse_missing_columns(what, columns.listed, frame.columns)
    sources = []
    for name in columns.listed:
        named = f"column {name!r} of {what}"
        sources.append(ArraySource(numbers_of_series(named, frame[name]), named))
    return ColumnsSource(sources, what) if columns.row_shape else sources[0]


def dtype_of_series(what: str, dtype: Any) -> np.dtype:
    """The dtype of a column's values as NumPy has it.

    Raises
    ------
    DataError
        They are not numbers.
    """
    if hasattr(dtype, "categories"):
        if dtype.categories is None:
            return native_dtype(what, dtype)
        return native_dtype(what, dtype.categories.dtype)
    plain = getattr(dtype, "numpy_dtype", dtype)  # of nullable and Arrow columns
    plain = getattr(dtype, "subtype", plain)  # of sparse columns
    number = isinstance(plain, np.dtype) and plain.kind in "biuf"
    return native_dtype(what, plain if number else dtype)


def numbers_of_series(what: str, series: Any) -> NDArray:
    """The values of a ``pandas.Series`` as an array, without a copy where possible.

    Raises
    ------
    DataError
        They are not numbers, or a value is missing in a column that is not a NumPy one.
    """
    dtype = dtype_of_series(what, series.dtype)
    if isinstance(series.dtype, np.dtype):
        return series.to_numpy()
    missing = series.isna().to_numpy()
    if missing.any():
        refuse_nulls(what, int(missing.sum()), int(missing.argmax()))
    return np.asarray(series.to_numpy(dtype=dtype))
