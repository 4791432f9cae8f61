"""Rows of zarr arrays, read by chunks."""

import itertools
import os
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pymc_austerity.errors import SettingTypeError, StorageError
from pymc_austerity.sources.changes import refuse_changed_files, stamps_of
from pymc_austerity.sources.checks import native_dtype, refuse_no_rows
from pymc_austerity.sources.chunks import ChunkedSource, even_lengths
from pymc_austerity.sources.columns import Columns, ColumnsSource, refuse_missing_columns
from pymc_austerity.sources.protocols import Source

__all__ = ["ZarrSource", "open_zarr", "open_zarr_path"]


class ZarrSource(ChunkedSource):
    """Rows of a zarr array.

    Zarr reads fill values, without an error, for a chunk whose file was removed. Every read
    therefore checks that the files that a local array had when it was opened still exist.

    Parameters
    ----------
    array : zarr.Array
    what : str
        What messages call the rows.
    """

    def __init__(self, array: Any, what: str) -> None:
        dtype = native_dtype(what, array.dtype)
        refuse_no_rows(what, array.shape)
        lengths = even_lengths(array.shape[0], array.chunks[0])
        super().__init__(what, lengths, tuple(array.shape[1:]), dtype)
        self._array = array
        self._folder = _local_folder(array)
        self._stamps = stamps_of([self._folder] if self._folder else [])
        self._absent = {path for path in self._files(0, self.n_rows) if not os.path.exists(path)}

    @property
    def identity(self) -> str | None:
        """Identifies these rows: files, their sizes and times; None without files."""
        if not self._stamps:
            return None
        return f"{self._stamps} {self.n_rows} {self.row_shape} {self.dtype}"

    def refuse_if_changed(self) -> None:
        """Compare sizes and times of a local array's files with those when it was opened."""
        refuse_changed_files(self._what, self._stamps)

    def _fill(self, out: NDArray, first: int, stop: int) -> None:
        start, end = int(self._starts[first]), int(self._starts[stop])
        try:
            out[...] = self._array[start:end]
        except (OSError, ValueError, RuntimeError) as error:
            reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
            raise StorageError(
                f"{self._what} cannot be read from zarr ({reason}): write the array again."
            ) from error
        self._refuse_removed(start, end)

    def _refuse_removed(self, start: int, end: int) -> None:
        for path in self._files(start, end):
            if path not in self._absent and not os.path.exists(path):
                raise StorageError(
                    f"{self._what} cannot be read any more, because {path} was removed: put the "
                    "store back."
                )

    def _files(self, start: int, end: int) -> list[str]:
        """Files of a local array with these rows."""
        if self._folder is None:
            return []
        sizes = self._array.shards or self._array.chunks
        shape = (end, *self._array.shape[1:])
        numbers = [range(-(-n // size)) for n, size in zip(shape, sizes, strict=True)]
        numbers[0] = range(start // sizes[0], len(numbers[0]))
        key = self._array.metadata.encode_chunk_key
        return [os.path.join(self._folder, key(place)) for place in itertools.product(*numbers)]


def open_zarr(given: Any, columns: Columns | None, what: str, name: str) -> Source:
    """Rows of a zarr array, or of arrays of a group, which are chosen by their names."""
    if not hasattr(given, "array_keys"):
        if columns is not None:
            raise SettingTypeError(
                f"{what} names columns of a zarr array, not a table: give the array alone."
            )
        return ZarrSource(given, what)
    columns = columns or Columns(given, name)
    refuse_missing_columns(what, columns.listed, given.array_keys())
    sources = [ZarrSource(given[x], f"array {x!r} of {what}") for x in columns.listed]
    return ColumnsSource(sources, what) if columns.row_shape else sources[0]


def open_zarr_path(path: Path, columns: Columns | None, what: str, name: str) -> Source:
    """Rows of a local zarr array or group."""
    try:
        import zarr
    except ImportError as error:
        raise ImportError("zarr is needed: pip install 'pymc-austerity[rows]'.") from error
    try:
        given = zarr.open(str(path), mode="r")
    except (OSError, ValueError, KeyError) as error:
        raise StorageError(f"{path} cannot be read as zarr ({error}): write it again.") from error
    return open_zarr(given, columns, what, name)


def _local_folder(array: Any) -> str | None:
    """The folder of an array with a local store."""
    root = getattr(array.store, "root", None)
    if isinstance(root, Path) and root.is_dir():
        return str((root / array.path).absolute())
    return None
