"""From a user's data to a source of rows; a library is imported only for objects of its own."""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from pymc_austerity.errors import DataError, SettingTypeError, StorageError
from pymc_austerity.sources.arrays import ArraySource
from pymc_austerity.sources.columns import Columns
from pymc_austerity.sources.mapped import open_memory_map, open_npy
from pymc_austerity.sources.protocols import Source

__all__ = ["open_source"]

_DIGITS = re.compile(r"(\d+)")
_ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")
_ARROW_MAGIC = b"ARROW1\x00\x00"
_PARQUET_ENDS = (".parquet", ".parq", ".pq")
_REMEDY = (
    "give a NumPy array or memory map, a path to .npy, zarr, Parquet or Arrow, an Arrow table, a "
    "zarr array, or a dask, pandas or xarray object"
)


def open_source(given: Any, name: str) -> Source:
    """Rows of a model's data, wherever they are stored.

    Parameters
    ----------
    given : array, path, table or Columns
        A NumPy array or memory map, a path, or an object of zarr, Arrow, dask, pandas or xarray.
        A path refers to an ``.npy`` file, a Parquet file, a folder of either, a file of Arrow
        (Feather) or a zarr array. Files in a folder follow each other in the natural order of their
        names, part-2 before part-10.
        `Columns` selects columns of tables, variables of datasets and arrays of zarr groups;
        without it, the one that has the name of the data is used.
    name : str
        The model's name for the data.

    Returns
    -------
    Source

    Raises
    ------
    SettingTypeError
        Rows cannot be read from an object of this type.
    SettingError
        A column is missing.
    DataError
        The data have no rows, contain nulls, or are not bool, integer or floating; files differ.
    StorageError
        A file is missing, truncated or cannot be read.
    ImportError
        A library for the file is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.sources import open_source
    >>> source = open_source(np.arange(8, dtype="int8"), "group")
    >>> source.n_rows, source.row_shape, source.dtype
    (8, (), dtype('int8'))
    >>> source.read(2, 5)
    array([2, 3, 4], dtype=int8)
    """
    what = f"data[{name!r}]"
    columns = given if isinstance(given, Columns) else None
    table = given.table if isinstance(given, Columns) else given
    if isinstance(table, str | os.PathLike):
        return _open_path(os.fspath(table), columns, what, name)
    # Types of optional libraries are recognized by the names of their modules.
    families = {base.__module__.partition(".")[0] for base in type(table).__mro__}
    if "zarr" in families and hasattr(table, "store_path"):
        from pymc_austerity.sources.zarr_arrays import open_zarr

        return open_zarr(table, columns, what, name)
    source = _open_table(table, families, columns or Columns(table, name), what)
    if source is not None:
        return source
    if columns is not None:
        raise SettingTypeError(f"{what} names columns of {_type(table)}, not a table: {_REMEDY}.")
    source = _open_array(table, families, what)
    if source is None:
        raise SettingTypeError(f"{what} is {_type(table)}, not rows: {_REMEDY}.")
    return source


def _open_table(table: Any, families: set[str], columns: Columns, what: str) -> Source | None:
    if "pyarrow" in families:
        import pyarrow as pa

        from pymc_austerity.sources.arrow import open_arrow_table

        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        return open_arrow_table(table, columns, what) if isinstance(table, pa.Table) else None
    if "pandas" in families:
        import pandas as pd

        from pymc_austerity.sources.frames import open_pandas_frame

        return open_pandas_frame(table, columns, what) if isinstance(table, pd.DataFrame) else None
    if "dask" in families:
        from pymc_austerity.sources.dask_collections import open_dask_frame

        is_frame = hasattr(table, "columns") and table.ndim == 2
        return open_dask_frame(table, columns, what) if is_frame else None
    if "xarray" in families:
        import xarray as xr

        from pymc_austerity.sources.labelled import open_dataset

        return open_dataset(table, columns, what) if isinstance(table, xr.Dataset) else None
    return None


def _open_array(array: Any, families: set[str], what: str) -> Source | None:
    if isinstance(array, np.ndarray):
        return open_memory_map(array, what) or ArraySource(array, what)
    if "pandas" in families:
        import pandas as pd

        from pymc_austerity.sources.frames import numbers_of_series

        is_series = isinstance(array, pd.Series)
        return ArraySource(numbers_of_series(what, array), what) if is_series else None
    if "xarray" in families and hasattr(array, "variable"):
        from pymc_austerity.sources.labelled import open_data_array

        return open_data_array(array, what)
    if "dask" in families and hasattr(array, "rechunk"):
        from pymc_austerity.sources.dask_collections import open_dask_array

        return open_dask_array(array, what)
    if "dask" in families and hasattr(array, "to_frame"):
        from pymc_austerity.sources.dask_collections import open_dask_frame

        return open_dask_frame(array.to_frame(name="rows"), Columns(array, "rows"), what)
    return None


def _open_path(given: str, columns: Columns | None, what: str, name: str) -> Source:
    if "://" in given:
        raise SettingTypeError(
            f"{what} is the address {given}: open it with zarr, dask or xarray, and give what they "
            "return."
        )
    path = Path(given).expanduser().absolute()
    if not path.exists():
        raise StorageError(f"{what} cannot be read, because there is no {path}: correct the path.")
    if path.is_dir() and any((path / file).exists() for file in _ZARR_FILES):
        from pymc_austerity.sources.zarr_arrays import open_zarr_path

        return open_zarr_path(path, columns, what, name)
    if not path.is_dir() and _begins_with(path, _ARROW_MAGIC):
        from pymc_austerity.sources.arrow_files import ArrowFileSource

        return ArrowFileSource(path, columns or Columns(path, name), what)
    arrays, tables = _files_in(path)
    if bool(arrays) == bool(tables):
        if arrays:
            raise DataError(
                f"{what} is in {path}, where there are both .npy and Parquet files: give the path "
                "of one kind."
            )
        raise DataError(
            f"{what} is in {path}, which has no rows in .npy, Parquet, Arrow or zarr: convert it "
            "to one of these, or read it with pandas or dask and give what they return."
        )
    if tables:
        from pymc_austerity.sources.parquet import ParquetSource

        return ParquetSource(tables, columns or Columns(path, name), what)
    if columns is not None:
        raise SettingTypeError(f"{what} names columns of {path}, not a table: give the path alone.")
    return open_npy(arrays, what)


def _begins_with(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def _files_in(path: Path) -> tuple[list[Path], list[Path]]:
    """Files of NumPy and of Parquet: the path itself, or those of a folder in natural order."""
    if path.is_dir():
        arrays = path.glob("*.npy")
        tables = (p for p in path.rglob("*") if p.suffix in _PARQUET_ENDS and p.is_file())
        return sorted(arrays, key=_natural_order), sorted(tables, key=_natural_order)
    with path.open("rb") as file:
        begin = file.read(6)
    if path.suffix == ".npy" or begin == b"\x93NUMPY":
        return [path], []
    if path.suffix in _PARQUET_ENDS or begin[:4] == b"PAR1":
        return [], [path]
    return [], []


def _natural_order(path: Path) -> list[int | str]:
    """Key by which part-2 comes before part-10: every other piece is a number."""
    pieces = _DIGITS.split(str(path))
    return [int(piece) if place % 2 else piece for place, piece in enumerate(pieces)]


def _type(given: Any) -> str:
    return f"a {type(given).__module__}.{type(given).__qualname__}".replace("a builtins.", "a ")
