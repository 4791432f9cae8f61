"""Rows of dask collections, computed a chunk at a time."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pymc_austerity.errors import DataError, StorageError
from pymc_austerity.sources.chunks import ChunkedSource
from pymc_austerity.sources.columns import Columns, numbers, refuse_missing_columns


class _Chunks:
    """Chunks of a collection, computed with the scheduler that dask is configured for.

    The files that a collection reads are not known here, so changes to them are not detected.

    Parameters
    ----------
    what : str
        What messages call the rows.
    chunks : sequence of dask.delayed.Delayed
    lengths : sequence of int
        Number of rows of each chunk.
    """

    def __init__(self, what: str, chunks: Sequence[Any], lengths: Sequence[int]) -> None:
        self._what, self._chunks, self.lengths = what, list(chunks), list(lengths)
        self._starts = np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)])
        self._made_in: int | None = os.getpid()

    def of_rows(self, start: int, stop: int) -> Iterator[Any]:
        """Those with these rows, each without the rows that are not asked for."""
        first = int(np.searchsorted(self._starts, start, "right")) - 1
        last = int(np.searchsorted(self._starts, stop, "left"))
        for number, chunk in enumerate(self._computed(first, last), first):
            begin, end = self._starts[number : number + 2].tolist()
            if len(chunk) != end - begin:
                raise DataError(
                    f"chunk {number} of {self._what} has {len(chunk):,} rows and is declared "
                    f"with {end - begin:,}: correct the chunks of the dask collection."
                )
            yield chunk[max(start - begin, 0) : stop - begin]

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

        return vars(self) | {"_chunks": cloudpickle.dumps(self._chunks), "_made_in": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        import cloudpickle

        vars(self).update(state | {"_chunks": cloudpickle.loads(state["_chunks"])})


class DaskArray(_Chunks):
    """A ``dask.array.Array``, of which slices are computed.

    Parameters
    ----------
    what : str
        What messages call it.
    array : dask.array.Array
        Unknown lengths of its chunks are computed, which is a pass.
    """

    def __init__(self, what: str, array: Any) -> None:
        if array.ndim and np.isnan(array.chunks[0]).any():
            array = array.copy().compute_chunk_sizes()
        self.shape, self.dtype = array.shape, array.dtype
        array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
        super().__init__(what, array.to_delayed().reshape(-1), (*array.chunks, (0,))[0])

    def __getitem__(self, rows: slice) -> NDArray:
        parts = [np.asarray(chunk) for chunk in self.of_rows(rows.start, rows.stop)]
        for part in parts:
            if part.dtype != self.dtype:
                raise DataError(
                    f"{self._what} has a chunk of dtype {part.dtype} and is declared as "
                    f"{self.dtype}: correct the dtype (meta) of the dask collection."
                )
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


class DaskFrameSource(ChunkedSource):
    """Rows of columns of a ``dask.dataframe.DataFrame``; a pass over them counts the rows.

    Parameters
    ----------
    what : str
        What messages call the rows.
    frame : dask.dataframe.DataFrame
    columns : Columns
        Their names.
    """

    def __init__(self, what: str, frame: Any, columns: Columns) -> None:
        import dask

        refuse_missing_columns(what, columns, frame.columns)
        names = columns.called(what)
        # dask may join partitions where few columns are read, so that those of others differ
        chunks = frame[columns.listed].to_delayed()
        lengths = dask.compute(*[dask.delayed(len)(chunk) for chunk in chunks])
        self._listed, self._chunks = columns.listed, _Chunks(what, chunks, lengths)
        empty = [pd.Series(dtype=frame.dtypes[name]) for name in self._listed]
        dtypes = [numbers(*one).dtype for one in zip(names, empty, strict=True)]
        super().__init__(what, names, lengths, columns.row_shape, np.result_type(*dtypes))

    def _pieces(self, start: int, stop: int) -> Iterator[Sequence[Any]]:
        for table in self._chunks.of_rows(start, stop):
            yield [table[name] for name in self._listed]
