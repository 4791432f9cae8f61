"""From a user's data to a source of rows; a library is imported only for objects of its own."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pymc_austerity.errors import DataError, SettingTypeError, StorageError
from pymc_austerity.sources.arrays import DaskFrameSource, SlicedSource, packages_of, type_of
from pymc_austerity.sources.arrow_files import ArrowSource, ParquetSource
from pymc_austerity.sources.chunks import library, readable
from pymc_austerity.sources.columns import Columns, refuse_missing_columns
from pymc_austerity.sources.npy import NpyFiles
from pymc_austerity.sources.passes import Source

_DIGITS = re.compile(r"(\d+)")
_ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")
_MAGIC = {b"\x93NUMPY": "npy", b"PAR1": "parquet", b"ARROW1": "arrow"}
_SUFFIXES = {".npy": "npy", ".h5": "hdf5", ".hdf5": "hdf5"}
_SUFFIXES |= dict.fromkeys((".parquet", ".parq", ".pq"), "parquet")
_TABLES = {"parquet": ParquetSource, "arrow": ArrowSource}
_OPENED: dict[str, Callable[[str], Any]] = {
    "zarr": lambda path: library("zarr").open(path, mode="r"),
    "hdf5": lambda path: library("h5py").File(path, "r"),
}
_NAMES = {
    "pyarrow": "column_names",
    "pandas": "columns",
    "dask": "columns",
    "xarray": "variables",
    "zarr": "array_keys",
    "h5py": "keys",
}
"""Where objects of these packages have the names of their columns or arrays."""


def open_source(given: Any, name: str) -> Source:
    """Rows of a model's data, wherever they are stored.

    Parameters
    ----------
    given : array, path, table or Columns
        A NumPy array or memory map, a path, or an object of zarr, h5py, Arrow, dask, pandas, polars
        or xarray. A path refers to an ``.npy`` file, a Parquet file, a folder of either, a file of
        Arrow (Feather), an HDF5 file (``.h5``, ``.hdf5``) or a zarr array. Files in a folder follow
        each other in the natural order of their names, part-2 before part-10.
        `Columns` selects columns of tables, variables of datasets and arrays of zarr and HDF5
        groups; without it, the one that has the name of the data is used.
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
    table = given if columns is None else columns.table
    if isinstance(table, str | os.PathLike):
        return _open_path(os.fspath(table), columns, what, name)
    return _open_object(table, columns, what, name, type_of(table))


def _open_path(given: str, columns: Columns | None, what: str, name: str) -> Source:
    if "://" in given:
        raise SettingTypeError(
            f"{what} is the address {given}: open it with zarr, dask or xarray, and give what they "
            "return."
        )
    path = Path(given).expanduser().absolute()
    if not path.exists():
        raise StorageError(f"{what} cannot be read, because there is no {path}: correct the path.")
    kind, paths = _files_in(path, what)
    if kind in _TABLES:
        return _TABLES[kind](what, paths, columns or Columns(path, name))
    if kind in _OPENED:
        with readable(f"{what} in {path}"):
            opened = _OPENED[kind](str(path))
        return _open_object(opened, columns, what, name, str(path))
    return _open_object(NpyFiles.of_paths(what, paths), columns, what, name, str(path))


def _open_object(table: Any, columns: Columns | None, what: str, name: str, called: str) -> Source:
    packages = packages_of(table)
    if (
        "pandas" not in packages
        and hasattr(table, "__arrow_c_stream__")
        and hasattr(table, "columns")
    ):
        table, packages = library("pyarrow").table(table), {"pyarrow"}
    names = _names_in(table, packages)
    if names is not None:
        columns = columns or Columns(table, name)
        refuse_missing_columns(what, columns, names)
        if "dask" in packages:
            return DaskFrameSource(what, table, columns)
        given = {x: table[y] for x, y in zip(columns.called(what), columns.listed, strict=True)}
        return SlicedSource(what, given, is_table=bool(columns.row_shape))
    if columns is not None:
        raise SettingTypeError(
            f"{what} names columns of {called}, not a table: give it alone, or columns of a table."
        )
    if "dask" in packages and hasattr(table, "to_frame"):
        return DaskFrameSource(what, table.to_frame(name="rows"), Columns(table, "rows"))
    return SlicedSource(what, {what: table}, is_table=False)


def _names_in(table: Any, packages: set[str]) -> list[Any] | None:
    """Names of the columns of a table, or of the arrays of a group; None for others."""
    for package, attribute in _NAMES.items():
        if package in packages and getattr(table, "ndim", 2) == 2 and hasattr(table, attribute):
            names = getattr(table, attribute)
            return list(names() if callable(names) else names)
    return None


def _files_in(path: Path, what: str) -> tuple[str, list[Path]]:
    """The format of a file or folder, and the files: those of a folder in natural order."""
    if not path.is_dir():
        with path.open("rb") as file:
            begin = file.read(8)
        kinds = [kind for magic, kind in _MAGIC.items() if begin.startswith(magic)]
        kinds = kinds or [kind for suffix, kind in _SUFFIXES.items() if path.suffix == suffix]
        files = {kind: [path] for kind in kinds}
    elif any((path / file).exists() for file in _ZARR_FILES):
        files = {"zarr": [path]}
    else:
        tables = [
            p for p in path.rglob("*") if _SUFFIXES.get(p.suffix) == "parquet" and p.is_file()
        ]
        files = {"npy": list(path.glob("*.npy")), "parquet": tables}
        files = {kind: sorted(found, key=_natural_order) for kind, found in files.items() if found}
    if not files:
        raise DataError(
            f"{what} is in {path}, which has no rows in .npy, Parquet, Arrow, HDF5 or zarr: "
            "convert it to one of these, or read it with xarray, pandas or dask and give what they "
            "return."
        )
    if len(files) > 1:
        raise DataError(
            f"{what} is in {path}, where there are both .npy and Parquet files: give the path "
            "of one kind."
        )
    return files.popitem()


def _natural_order(path: Path) -> list[int | str]:
    """Key by which part-2 comes before part-10: every other piece is a number."""
    pieces = _DIGITS.split(str(path))
    return [int(piece) if place % 2 else piece for place, piece in enumerate(pieces)]
