"""Rows of dask collections, computed a chunk at a time."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import DataError, StorageError
from pymc_austerity.sources.checks import common_dtype, native_dtype, refuse_no_rows
from pymc_austerity.sources.chunks import ChunkedSource
from pymc_austerity.sources.columns import Columns, fill_columns, refuse_missing_columns
from pymc_austerity.sources.frames import dtype_of_series, numbers_of_series

__all__ = ["DaskSource", "open_dask_array", "open_dask_frame"]


class DaskSource(ChunkedSource):
    """Rows of a dask collection, computed with the scheduler that dask is configured for.

    The files that a collection reads are not known here, so changes to them are not detected.

    Parameters
    ----------
    what : str
        What messages call the rows.
    chunks : sequence of dask.delayed.Delayed
    lengths : sequence of int
        Number of rows of each chunk.
    row_shape : tuple of int
    dtype : dtype
    columns_of : callable
        From a computed chunk to arrays side by side, or to a single one in a list.
    """

    def __init__(
        self,
        what: str,
        chunks: Sequence[Any],
        lengths: Sequence[int],
        row_shape: tuple[int, ...],
        dtype: np.dtype,
        columns_of: Callable[[Any], list[NDArray]],
    ) -> None:
        super().__init__(what, lengths, row_shape, dtype)
        self._chunks, self._columns_of = list(chunks), columns_of
        self._made_in: int | None = os.getpid()

    def refuse_if_changed(self) -> None:
        """Nothing to check: the files that a collection reads are not known."""

    def _fill(self, out: NDArray, first: int, stop: int) -> None:
        for number, chunk in enumerate(self._computed(first, stop), first):
            begin, end = self._starts[number : number + 2] - self._starts[first]
            columns = self._columns_of(chunk)
            if any(len(column) != end - begin for column in columns):
                raise DataError(
                    f"chunk {number} of {self._what} has {len(columns[0]):,} rows and is declared "
                    f"with {end - begin:,}: correct the chunks of the dask collection."
                )
            if columns[0].ndim == 1:
                fill_columns(self._what, out[begin:end], columns)
            else:
                out[begin:end] = columns[0]

    def _computed(self, first: int, stop: int) -> Sequence[Any]:
        import dask

        # Threads of a pool, and the client of a cluster, do not survive a fork; and a worker of a
        # cluster reads its chunks itself.
        settings = {} if os.getpid() == self._made_in else {"scheduler": "synchronous"}
        try:
            return dask.compute(*self._chunks[first:stop], **settings)
        except OSError as error:
            raise StorageError(
                f"{self._what} cannot be computed by dask ({type(error).__name__}: {error}): check "
                "the files that the collection reads."
            ) from error

    def __getstate__(self) -> dict[str, Any]:
        import cloudpickle  # which dask needs, too; a graph may have lambdas in it

        return super().__getstate__() | {"_chunks": cloudpickle.dumps(self._chunks)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        import cloudpickle

        super().__setstate__(state | {"_chunks": cloudpickle.loads(state["_chunks"])})
        self._made_in = None


def open_dask_array(array: Any, what: str) -> DaskSource:
    """Rows of a ``dask.array.Array``; unknown lengths of chunks are computed, which is a pass."""
    dtype = native_dtype(what, array.dtype)
    if not array.ndim:
        refuse_no_rows(what, ())
    if np.isnan(array.chunks[0]).any():
        array = array.copy().compute_chunk_sizes()
    array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    lengths, row_shape = array.chunks[0], array.shape[1:]
    chunks = array.to_delayed().reshape(-1)
    return DaskSource(what, chunks, lengths, row_shape, dtype, partial(_as_list, what, array.dtype))


def open_dask_frame(frame: Any, columns: Columns, what: str) -> DaskSource:
    """Rows of columns of a ``dask.dataframe.DataFrame``; a pass over them counts the rows."""
    import dask

    names = columns.listed
    refuse_missing_columns(what, names, frame.columns)
    named = {name: f"column {name!r} of {what}" for name in names}
    dtype = common_dtype([dtype_of_series(named[name], frame.dtypes[name]) for name in names])
    # dask may join partitions where few columns are read, so that those of others are not the same
    chunks = frame[names].to_delayed()
    lengths = dask.compute(*[dask.delayed(len)(chunk) for chunk in chunks])
    return DaskSource(what, chunks, lengths, columns.row_shape, dtype, partial(_columns, named))


def _as_list(what: str, dtype: np.dtype, chunk: Any) -> list[NDArray]:
    array = np.asarray(chunk)
    if array.dtype != dtype:
        raise DataError(
            f"{what} has a chunk of dtype {array.dtype} and is declared as {dtype}: correct the "
            "dtype (meta) of the dask collection."
        )
    return [array]


def _columns(named: dict[str, str], frame: Any) -> list[NDArray]:
    return [numbers_of_series(what, frame[name]) for name, what in named.items()]
