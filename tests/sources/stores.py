"""The same rows in every kind of store."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import xarray as xr
import zarr

from pymc_austerity.sources import Columns

N_ROWS = 1_003
CHUNK = 100
CUTS = (0, 90, 100, 611, N_ROWS)

_rng = np.random.default_rng(14)
ROWS = {
    "x": _rng.normal(size=(N_ROWS, 4)).astype("float32"),
    "group": _rng.integers(0, 2**40, size=N_ROWS),
    "flag": _rng.random(N_ROWS) < 0.3,
    "y": _rng.normal(size=N_ROWS),
}
NAMES = {"x": ["x0", "x1", "x2", "x3"], "group": "group", "flag": "flag", "y": "y"}
Given = dict[str, Any]


def frame() -> pd.DataFrame:
    """All rows as one table, with columns in another order and one that nobody asks for."""
    columns = {f"x{i}": ROWS["x"][:, i] for i in (3, 1, 2, 0)}
    text = np.array(["a", "b"], dtype=object)[ROWS["flag"].astype(int)]
    return pd.DataFrame(columns | {k: ROWS[k] for k in ("y", "flag", "group")} | {"text": text})


def arrow() -> pa.Table:
    """The same in several chunks."""
    table = pa.Table.from_pandas(frame(), preserve_index=False)
    return pa.concat_tables([table.slice(a, b - a) for a, b in pairwise(CUTS)])


def columns_of(table: Any) -> Given:
    """What a user gives for each of the data, where all are in one table."""
    return {name: Columns(table, names) for name, names in NAMES.items()}


def arrays(_: Path) -> Given:
    return dict(ROWS)


def views(_: Path) -> Given:
    """Arrays that are not laid out as they are read."""
    return {k: np.repeat(v, 2, axis=0)[::2] for k, v in ROWS.items()} | {
        "x": np.asfortranarray(ROWS["x"])
    }


def memory_maps(folder: Path) -> Given:
    return {k: np.load(path, mmap_mode="r") for k, path in npy(folder).items()}


def views_of_memory_maps(folder: Path) -> Given:
    """Rows within a raw file, some of its columns, every other row backwards."""
    x = np.memmap(folder / "x.raw", "float32", "w+", offset=4_099 * 4, shape=(N_ROWS + 5, 6))
    x[3:-2, 1:5] = ROWS["x"]
    x.flush()
    y = np.memmap(folder / "y.raw", "float64", "w+", shape=(2 * N_ROWS,))
    y[::-2] = ROWS["y"]
    y.flush()
    return {"x": np.asarray(x)[3:-2, 1:5], "y": y[::-2]}


def npy(folder: Path, rows: Given = ROWS) -> Given:
    for name, array in rows.items():
        np.save(folder / f"{name}.npy", array)
    return {name: folder / f"{name}.npy" for name in rows}


def npy_of_another_layout(folder: Path) -> Given:
    np.save(folder / "x.npy", np.asfortranarray(ROWS["x"]))
    np.save(folder / "y.npy", ROWS["y"].astype(">f8"))
    return {"x": str(folder / "x.npy"), "y": folder / "y.npy"}


def npy_folders(folder: Path) -> Given:
    numbers = (1, 2, 10, 100)
    for name, array in ROWS.items():
        (folder / name).mkdir()
        for number, a, b in zip(numbers, CUTS[:-1], CUTS[1:], strict=True):
            np.save(folder / name / f"part-{number}.npy", array[a:b])
    return {name: folder / name for name in ROWS}


def zarr_arrays(folder: Path, **settings: Any) -> Given:
    made = {}
    for name, array in ROWS.items():
        chunks = (CHUNK, *array.shape[1:-1], *[3] * (array.ndim - 1))
        made[name] = zarr.create_array(
            str(folder / f"{name}.zarr"), data=array, chunks=chunks, **settings
        )
    return made


def zarr_paths(folder: Path) -> Given:
    return {name: folder / f"{name}.zarr" for name in zarr_arrays(folder, zarr_format=2)}


def zarr_shards(folder: Path) -> Given:
    array = zarr.create_array(
        str(folder / "x.zarr"), data=ROWS["x"], chunks=(CHUNK, 4), shards=(3 * CHUNK, 4)
    )
    return {"x": array}


def zarr_group(folder: Path) -> Given:
    group = zarr.create_group(str(folder / "all.zarr"))
    for name in frame().columns.drop("text"):
        group.create_array(name, data=frame()[name].to_numpy(), chunks=(CHUNK,))
    return columns_of(folder / "all.zarr") | {"y": group}


def hdf5(folder: Path) -> Given:
    with h5py.File(folder / "rows.h5", "w") as file:
        for name, column in frame().drop(columns="text").items():
            file[name] = column.to_numpy()
        file.create_dataset("x", data=ROWS["x"], chunks=(CHUNK, 4))
    opened = h5py.File(folder / "rows.h5", "r")
    return {"x": opened["x"], "group": Columns(opened, "group"), "y": folder / "rows.h5"}


def hdf5_columns(folder: Path) -> Given:
    hdf5(folder)
    return columns_of(folder / "rows.h5")


def parquet(folder: Path) -> Given:
    pq.write_table(arrow(), folder / "rows.parquet", row_group_size=CHUNK)
    return columns_of(folder / "rows.parquet") | {"y": folder / "rows.parquet"}


def parquet_folder(folder: Path) -> Given:
    for number, a, b in zip((1, 2, 10, 100), CUTS[:-1], CUTS[1:], strict=True):
        table = arrow().slice(a, b - a)
        pq.write_table(table, folder / f"part.{number}.parquet", row_group_size=CHUNK)
    return columns_of(str(folder))


def arrow_file(folder: Path) -> Given:
    with pa.ipc.new_file(str(folder / "rows.feather"), arrow().schema) as writer:
        for batch in arrow().to_batches():
            writer.write_batch(batch)
    return columns_of(folder / "rows.feather") | {"y": str(folder / "rows.feather")}


def arrow_file_compressed(folder: Path) -> Given:
    feather.write_feather(arrow(), folder / "rows.arrow", "lz4", chunksize=CHUNK)
    return columns_of(folder / "rows.arrow")


def arrow_table(_: Path) -> Given:
    return columns_of(arrow()) | {"y": arrow()}


class OfAnotherLibrary:
    """A table that Arrow can read, such as one of polars."""

    columns = arrow().column_names

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return arrow().__arrow_c_stream__(requested_schema)


def arrow_of_another_library(_: Path) -> Given:
    return columns_of(OfAnotherLibrary()) | {"y": arrow().combine_chunks().to_batches()[0]}


def arrow_dictionaries(_: Path) -> Given:
    """Columns of numbers whose codes mean other values in other chunks."""
    chunks = [chunk.dictionary_encode() for chunk in arrow()["group"].chunks]
    return {"group": pa.table({"group": pa.chunked_array(chunks)})}


def pandas_table(_: Path) -> Given:
    return columns_of(frame()) | {"y": frame()["y"], "flag": frame()}


def pandas_nullable(_: Path) -> Given:
    return columns_of(frame().convert_dtypes())


def dask_arrays(_: Path) -> Given:
    return {k: da.from_array(v, chunks=(CHUNK, 3)[: v.ndim]) for k, v in ROWS.items()}


def dask_arrays_of_unknown_chunks(_: Path) -> Given:
    table = dd.from_pandas(frame().drop(columns="text"), npartitions=7)
    x = table[NAMES["x"]].to_dask_array()
    # graphs may have functions that only cloudpickle pickles
    return {"x": x, "y": table["y"].to_dask_array().map_blocks(lambda block: block + 0.0)}


def dask_table(_: Path) -> Given:
    table = dd.from_pandas(frame(), npartitions=7)
    return columns_of(table) | {"y": table["y"], "flag": table}


def dask_table_of_parquet(folder: Path) -> Given:
    """One whose partitions dask joins, more of them the fewer columns are read."""
    parquet(folder)
    return columns_of(dd.read_parquet(folder / "rows.parquet", split_row_groups=True))


def dataset() -> xr.Dataset:
    variables = {k: ("row", v) for k, v in ROWS.items() if k != "x"}
    separate = {n: ("row", ROWS["x"][:, i]) for i, n in enumerate(NAMES["x"])}
    return xr.Dataset(variables | separate | {"x": (("row", "column"), ROWS["x"])})


def xarray_loaded(_: Path) -> Given:
    return {k: dataset()[k] for k in ROWS} | {"y": dataset()}


def xarray_dask(_: Path) -> Given:
    return columns_of(dataset().chunk(row=CHUNK))


def xarray_netcdf(folder: Path) -> Given:
    encoding = {"x": {"chunksizes": (CHUNK, 4)}}
    dataset().to_netcdf(folder / "rows.nc", engine="h5netcdf", encoding=encoding)
    opened = xr.open_dataset(folder / "rows.nc", engine="h5netcdf")
    return columns_of(opened) | {"x": opened["x"], "y": opened}


KINDS: dict[str, Callable[[Path], Given]] = {
    function.__name__: function
    for function in (
        arrays,
        views,
        memory_maps,
        views_of_memory_maps,
        npy,
        npy_of_another_layout,
        npy_folders,
        zarr_arrays,
        zarr_paths,
        zarr_shards,
        zarr_group,
        hdf5,
        hdf5_columns,
        parquet,
        parquet_folder,
        arrow_file,
        arrow_file_compressed,
        arrow_table,
        arrow_of_another_library,
        arrow_dictionaries,
        pandas_table,
        pandas_nullable,
        dask_arrays,
        dask_arrays_of_unknown_chunks,
        dask_table,
        dask_table_of_parquet,
        xarray_loaded,
        xarray_dask,
        xarray_netcdf,
    )
}
