"""Rows of xarray's variables, loaded or not."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import StorageError
from pymc_austerity.sources.arrays import ArraySource
from pymc_austerity.sources.changes import Stamp, refuse_changed_files, stamps_of
from pymc_austerity.sources.checks import native_dtype, refuse_no_rows
from pymc_austerity.sources.chunks import ChunkedSource, even_lengths
from pymc_austerity.sources.columns import Columns, ColumnsSource, refuse_missing_columns
from pymc_austerity.sources.dask_collections import open_dask_array
from pymc_austerity.sources.protocols import Source

__all__ = ["LazySource", "open_data_array", "open_dataset"]

_BYTES_AT_ONCE = 2**23
"""Read together where a file has no chunks."""


class LazySource(ChunkedSource):
    """Rows of a variable that xarray has not loaded; they are read from its file in chunks.

    Parameters
    ----------
    variable : xarray.Variable
    what : str
        What messages call the rows.
    """

    def __init__(self, variable: Any, what: str) -> None:
        dtype = native_dtype(what, variable.dtype)
        n_rows, row_shape = variable.shape[0], tuple(variable.shape[1:])
        row_bytes = max(dtype.itemsize * int(np.prod(row_shape)), 1)
        preferred = variable.encoding.get("preferred_chunks", {})
        length = preferred.get(variable.dims[0]) or max(_BYTES_AT_ONCE // row_bytes, 1)
        super().__init__(what, even_lengths(n_rows, length), row_shape, dtype)
        self._variable = variable
        self._stamps = _stamps(variable.encoding.get("source"))

    def refuse_if_changed(self) -> None:
        """Compare size and time of the file with those when it was opened."""
        refuse_changed_files(self._what, self._stamps)

    def _fill(self, out: NDArray, first: int, stop: int) -> None:
        self.refuse_if_changed()
        start, end = int(self._starts[first]), int(self._starts[stop])
        try:
            out[...] = self._variable[start:end].to_numpy()
        except (OSError, RuntimeError, ValueError) as error:
            raise StorageError(
                f"{self._what} cannot be read by xarray ({error}): open it again."
            ) from error


def open_data_array(given: Any, what: str) -> Source:
    """Rows of an ``xarray.DataArray``, which are along its first dimension."""
    variable = given.variable
    if variable.chunks is not None:
        return open_dask_array(variable.data, what)
    refuse_no_rows(what, variable.shape)
    # where xarray no longer tells what is loaded, reading in chunks is right, and slower
    if getattr(variable, "_in_memory", False):
        return ArraySource(variable.to_numpy(), what)
    return LazySource(variable, what)


def open_dataset(given: Any, columns: Columns, what: str) -> Source:
    """Rows of variables of an ``xarray.Dataset``."""
    refuse_missing_columns(what, columns.listed, given.variables)
    named = [(given[name], f"variable {name!r} of {what}") for name in columns.listed]
    sources = [open_data_array(*one) for one in named]
    return ColumnsSource(sources, what) if columns.row_shape else sources[0]


def _stamps(path: Any) -> dict[str, Stamp]:
    """Stamps of a file; none for a folder or an address."""
    try:
        return stamps_of([path]) if isinstance(path, str) else {}
    except OSError:
        return {}
