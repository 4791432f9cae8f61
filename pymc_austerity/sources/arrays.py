"""Rows of arrays that are read by slices, of any library, and of dask's tables, chunk by chunk."""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pymc_austerity.errors import DataError, SettingTypeError, StorageError
from pymc_austerity.sources.chunks import (
    ChunkedSource,
    even_lengths,
    library,
    overlapping,
    starts_of,
)
from pymc_austerity.sources.columns import Columns, native_dtype, numbers, refuse_missing_columns
from pymc_austerity.sources.npy import NpyFiles


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
        self._starts = starts_of(self.lengths)
        self._made_in: int | None = os.getpid()

    def of_rows(self, start: int, stop: int) -> Iterator[Any]:
        """Those with these rows, each without the rows that are not asked for."""
        numbers = overlapping(self._starts, start, stop)
        for number, chunk in zip(numbers, self._computed(numbers), strict=True):
            begin, end = self._starts[number : number + 2].tolist()
            if len(chunk) != end - begin:
                raise DataError(
                    f"chunk {number} of {self._what} has {len(chunk):,} rows and is declared "
                    f"with {end - begin:,}: correct the chunks of the dask collection."
                )
            yield chunk[max(start - begin, 0) : stop - begin]

    def _computed(self, numbers: range) -> Sequence[Any]:
        import dask

        # Threads of a pool, and the client of a cluster, do not survive a fork; and a worker of a
        # cluster reads its chunks itself.
        settings = {} if os.getpid() == self._made_in else {"scheduler": "synchronous"}
        try:
            return dask.compute(*[self._chunks[k] for k in numbers], **settings)
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


_REMEDY = (
    "give a NumPy array or memory map, a path to .npy, zarr, Parquet, Arrow or HDF5, an Arrow "
    "table, a zarr or h5py array, or a dask, pandas, polars or xarray object"
)

_BYTES_AT_ONCE = 2**23
"""Read together where a file has no chunks."""
_ROWS_COPIED = 16_384
"""Copies of columns are kept small where they cost nothing but memory."""


def _no_files(start: int, stop: int) -> Iterable[str]:
    return ()


@dataclass(frozen=True, eq=False)
class Sliced:
    """An array of any library, of which slices are rows.

    Attributes
    ----------
    array : array
        It has a shape, and slices that are arrays or columns.
    lengths : sequence of int, optional
        Number of rows of each chunk; None if any rows can be read.
    files : callable
        From a range of rows to the files that they are in.
    place : str, optional
        What tells it from others in the same files; None if files do not identify its rows.
    """

    array: Any
    lengths: Sequence[int] | None = None
    files: Callable[[int, int], Iterable[str]] = _no_files
    place: str | None = None


class SlicedSource(ChunkedSource):
    """Rows of an array, or of vectors side by side.

    Parameters
    ----------
    what : str
        What messages call the rows.
    given : dict of str to array
        By what messages call them.
    is_table : bool
        Whether they are columns of a matrix.
    """

    def __init__(self, what: str, given: dict[str, Any], *, is_table: bool) -> None:
        self._columns = [sliced(name, array) for name, array in given.items()]
        shapes = [_shape_of(column.array) for column in self._columns]
        if () in shapes:
            raise DataError(f"{what} is a single number, and rows are on axis 0: give an array.")
        if is_table and set(shapes) != {shapes[0][:1]}:
            raise DataError(
                f"{what} has columns that are not vectors of one length: give them one by one."
            )
        dtypes = [
            _dtype_of(name, column.array) for name, column in zip(given, self._columns, strict=True)
        ]
        chunks = [column.lengths for column in self._columns if column.lengths is not None]
        places = [column.place for column in self._columns]
        super().__init__(
            what,
            list(given),
            max(chunks, key=lambda lengths: max(lengths, default=0), default=shapes[0][:1]),
            (len(given),) if is_table else shapes[0][1:],
            np.result_type(*dtypes),
            place=None if None in places else str(places),
            reads_any_row=not chunks,
        )

    def _files(self, start: int, stop: int) -> Iterable[str]:
        return [path for column in self._columns for path in column.files(start, stop)]

    def _fill(self, out: NDArray, start: int) -> None:
        array = self._columns[0].array
        if isinstance(array, NpyFiles):  # without a copy
            array.read_into(out, start)
        else:
            super()._fill(out, start)

    def _pieces(self, start: int, stop: int) -> Iterator[Sequence[Any]]:
        step = stop - start if self.block_length or len(self._columns) == 1 else _ROWS_COPIED
        for begin in range(start, stop, step):
            yield [column.array[begin : min(begin + step, stop)] for column in self._columns]


def sliced(what: str, array: Any) -> Sliced:
    """How an array, or a column in memory, is read.

    Parameters
    ----------
    what : str
        What messages call it.
    array : object

    Raises
    ------
    SettingTypeError
        It is neither.
    """
    packages = packages_of(array)
    if isinstance(array, np.ma.MaskedArray):
        raise DataError(
            f"{what} is a masked array, and rows have no missing values: drop them, and give "
            "the array of the others."
        )
    if isinstance(array, np.ndarray):
        array = NpyFiles.of_memory_map(what, array) or array
    if isinstance(array, NpyFiles):
        return Sliced(array, None, array.files, str(array.arrays))
    if isinstance(array, np.ndarray):
        return Sliced(array)
    if "pyarrow" in packages and hasattr(array, "combine_chunks"):
        if array.null_count:
            numbers(what, array)  # which refuses nulls
        return Sliced(array)
    if "pandas" in packages and hasattr(array, "to_frame") and hasattr(array, "iloc"):
        return Sliced(numbers(what, array))
    if "zarr" in packages and hasattr(array, "chunks"):
        return _of_zarr(array)
    if "h5py" in packages and hasattr(array, "chunks"):
        path = os.path.abspath(array.file.filename)
        stored = StoredInHDF5(path, array.name, array.shape, array.dtype)
        return Sliced(stored, _lengths(array, array.chunks), partial(_file, path), array.name)
    if "xarray" in packages and hasattr(array, "variable"):
        return _of_xarray(what, array.variable)
    if "dask" in packages and hasattr(array, "rechunk"):
        found = DaskArray(what, array)
        return Sliced(found, found.lengths)
    raise SettingTypeError(f"{what} is {type_of(array)}, not rows: {_REMEDY}.")


def packages_of(given: Any) -> set[str]:
    """Packages of the classes of an object: optional ones need not be imported."""
    return {base.__module__.partition(".")[0] for base in type(given).__mro__}


def type_of(given: Any) -> str:
    """What messages call the type of an object."""
    return f"a {type(given).__module__}.{type(given).__qualname__}".replace("a builtins.", "a ")


@dataclass(frozen=True)
class StoredInHDF5:
    """A data set in an HDF5 file, opened anew by each read, so that processes share no position."""

    path: str
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype

    def __getitem__(self, rows: slice) -> NDArray:
        with library("h5py").File(self.path, "r") as file:
            found: NDArray = file[self.name][rows]
            return found


def _of_xarray(what: str, variable: Any) -> Sliced:
    if variable.chunks is not None:
        return sliced(what, variable.data)
    # where xarray no longer tells what is loaded, reading in chunks is right, and slower
    if getattr(variable, "_in_memory", False):
        return Sliced(variable.to_numpy())
    path = variable.encoding.get("source")
    is_file = isinstance(path, str) and os.path.isfile(path)
    preferred = variable.encoding.get("preferred_chunks", {})
    chunks = [preferred.get(dim) for dim in variable.dims[:1]]
    return Sliced(
        variable, _lengths(variable, chunks), partial(_file, path) if is_file else _no_files
    )


def _of_zarr(array: Any) -> Sliced:
    root = getattr(array.store, "root", None)
    if not (isinstance(root, Path) and root.is_dir()):
        return Sliced(array, _lengths(array, array.chunks))
    files = partial(_files_of_zarr, array, str((root / array.path).absolute()))
    return Sliced(array, _lengths(array, array.chunks), files, "")


def _files_of_zarr(array: Any, folder: str, start: int, stop: int) -> list[str]:
    """Files with these rows: zarr reads fill values, without an error, where one was removed."""
    sizes = array.shards or array.chunks
    shape = (stop, *array.shape[1:])
    numbers = [range(-(-n // size)) for n, size in zip(shape, sizes, strict=True)]
    numbers[0] = range(start // sizes[0], len(numbers[0]))
    key = array.metadata.encode_chunk_key
    return [os.path.join(folder, key(place)) for place in itertools.product(*numbers)]


def _file(path: str, start: int, stop: int) -> list[str]:
    return [path]


def _lengths(array: Any, chunks: Sequence[int | None] | None) -> list[int]:
    """Of the chunks of an array, or of pieces of some megabytes."""
    if not array.shape:
        return []
    row_bytes = max(array.dtype.itemsize * int(np.prod(array.shape[1:])), 1)
    length = (chunks and chunks[0]) or max(_BYTES_AT_ONCE // row_bytes, 1)
    return even_lengths(array.shape[0], length)


def _shape_of(array: Any) -> tuple[int, ...]:
    return tuple(array.shape) if hasattr(array, "shape") else (len(array),)


def _dtype_of(what: str, array: Any) -> np.dtype:
    if hasattr(array, "dtype"):
        return native_dtype(what, array.dtype)
    return numbers(what, array[:0]).dtype
