"""Rates of reading rows where they are: ``python -m examples.benchmarks.sources``.

Every kind of source reads all rows in order, in blocks, and is compared with a loop over the same
store that is written by hand with the store's own library. Both take turns in a process of their
own; files are in the system's cache.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from examples.benchmarks import report
from examples.benchmarks.memory import peak_megabytes
from examples.benchmarks.report import Measurement
from pymc_austerity.sources import Columns, Source, block_ranges, open_source, read_ahead

N_COLUMNS = 20
NAMES = [f"x{i}" for i in range(N_COLUMNS)]
CHUNK = 131_072
ROW_GROUP = 1_048_576
BLOCK = 65_536
REPEATS = 3


def main() -> None:
    """Write the stores, measure each in a process of its own, and show the rates."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.benchmarks.sources", description=__doc__
    )
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(KINDS)}; default all")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", help="for the stores, 80 bytes a row each; default temporary")
    options = parser.parse_args()
    unknown = set(options.names) - set(KINDS)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: not one of {', '.join(KINDS)}")
    for name in options.names or KINDS:
        with tempfile.TemporaryDirectory(dir=options.folder, prefix="sources-") as folder:
            KINDS[name][0](Path(folder), options.rows)
            command = [sys.executable, "-m", __name__ if __name__ != "__main__" else MODULE]
            child = subprocess.run(
                [*command, "--child", name, folder],
                cwd=Path(__file__).parents[2],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        title = f"{name}, {options.rows:,} x {N_COLUMNS} float32"
        report.show({title: measurements(**json.loads(child.stdout.splitlines()[-1]))})


def measurements(megabytes: float, plain: float, read: float, ahead: float, peak: float) -> list:
    """Rates from seconds."""
    return [
        Measurement("plain loop", megabytes / plain, "MB/s"),
        Measurement("source, block by block", megabytes / read, "MB/s"),
        Measurement("source, one block ahead", megabytes / ahead, "MB/s"),
        Measurement("seconds of the source to those of the plain loop", read / plain),
        Measurement("peak memory of a pass", peak, "MB"),
    ]


# ---------------------------------------------------------------------- stores


def blocks(n_rows: int) -> Iterator[np.ndarray]:
    """Rows, made anew."""
    rng = np.random.default_rng(1)
    for start in range(0, n_rows, CHUNK):
        yield rng.standard_normal((min(CHUNK, n_rows - start), N_COLUMNS), dtype="float32")


def write_npy(folder: Path, n_rows: int) -> None:
    """One file."""
    shape = (n_rows, N_COLUMNS)
    rows = np.lib.format.open_memmap(folder / "x.npy", "w+", "float32", shape)
    for start, block in zip(range(0, n_rows, CHUNK), blocks(n_rows), strict=True):
        rows[start : start + len(block)] = block
    rows.flush()


def write_npy_folder(folder: Path, n_rows: int) -> None:
    """A file for each chunk."""
    for number, block in enumerate(blocks(n_rows)):
        np.save(folder / f"part-{number}.npy", block)


def write_zarr(folder: Path, n_rows: int) -> None:
    """Chunks of whole rows, compressed as zarr does by default."""
    import zarr

    shape, chunks = (n_rows, N_COLUMNS), (CHUNK, N_COLUMNS)
    rows = zarr.create_array(str(folder / "x.zarr"), shape=shape, chunks=chunks, dtype="float32")
    for start, block in zip(range(0, n_rows, CHUNK), blocks(n_rows), strict=True):
        rows[start : start + len(block)] = block


def write_parquet(folder: Path, n_rows: int) -> None:
    """One file with row groups of the size that pyarrow writes by default."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.float32()) for name in NAMES])
    per_group = ROW_GROUP // CHUNK
    with pq.ParquetWriter(folder / "x.parquet", schema) as writer:
        waiting: list[np.ndarray] = []
        for number, block in enumerate(blocks(n_rows), 1):
            waiting.append(block)
            if number % per_group == 0 or number * CHUNK >= n_rows:
                columns = list(np.concatenate(waiting).T.copy())
                writer.write_table(pa.table(columns, schema), row_group_size=ROW_GROUP)
                waiting = []


def write_feather(folder: Path, n_rows: int) -> None:
    """An Arrow file of record batches, not compressed."""
    import pyarrow as pa

    schema = pa.schema([(name, pa.float32()) for name in NAMES])
    with pa.ipc.new_file(str(folder / "x.feather"), schema) as writer:
        for block in blocks(n_rows):
            writer.write_table(pa.table(list(block.T.copy()), schema))


def write_netcdf(folder: Path, n_rows: int) -> None:
    """One variable in chunks, not compressed."""
    import h5netcdf

    with h5netcdf.File(folder / "x.nc", "w") as file:
        file.dimensions = {"row": n_rows, "column": N_COLUMNS}
        chunks = (CHUNK // 8, N_COLUMNS)
        rows = file.create_variable("x", ("row", "column"), "float32", chunks=chunks)
        for start, block in zip(range(0, n_rows, CHUNK), blocks(n_rows), strict=True):
            rows[start : start + len(block)] = block


# ---------------------------------------------------------------------- plain loops


def plain_npy(paths: list[Path]) -> None:
    """Read files into one buffer."""
    buffer = bytearray(BLOCK * N_COLUMNS * 4)
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def plain_array(rows: Any, step: int) -> None:
    """Slices of whatever has them."""
    for start in range(0, len(rows), step):
        np.asarray(rows[start : start + step])


def plain_copies(rows: np.ndarray) -> None:
    """Copies of blocks in memory."""
    for start in range(0, len(rows), BLOCK):
        rows[start : start + BLOCK].copy()


def plain_parquet(path: Path) -> None:
    """Decode row groups, without making matrices of them."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            file.read_row_group(number, columns=NAMES)


def plain_feather(path: Path) -> None:
    """Read record batches, without making matrices of them."""
    import pyarrow as pa

    with pa.OSFile(str(path)) as file:
        reader = pa.ipc.open_file(file)
        for number in range(reader.num_record_batches):
            reader.get_batch(number)


def plain_dask(collection: Any) -> None:
    """Compute chunks one after the other."""
    for number in range(collection.numblocks[0]):
        collection.blocks[number].compute()


def plain_dask_table(table: Any) -> None:
    """Compute partitions one after the other."""
    for number in range(table.npartitions):
        table.partitions[number].compute()


# ---------------------------------------------------------------------- kinds


def array(folder: Path) -> tuple[Any, Callable[[], None]]:
    rows = np.load(folder / "x.npy")
    return rows, lambda: plain_copies(rows)


def memory_map(folder: Path) -> tuple[Any, Callable[[], None]]:
    rows = np.load(folder / "x.npy", mmap_mode="r")
    return rows, lambda: plain_copies(rows)


def npy(folder: Path) -> tuple[Any, Callable[[], None]]:
    return folder / "x.npy", lambda: plain_npy([folder / "x.npy"])


def npy_folder(folder: Path) -> tuple[Any, Callable[[], None]]:
    return folder, lambda: plain_npy(list(folder.glob("*.npy")))


def zarr_array(folder: Path) -> tuple[Any, Callable[[], None]]:
    import zarr

    rows = zarr.open_array(str(folder / "x.zarr"), mode="r")
    return folder / "x.zarr", lambda: plain_array(_Sliced(rows), CHUNK)


def parquet(folder: Path) -> tuple[Any, Callable[[], None]]:
    path = folder / "x.parquet"
    return Columns(path, NAMES), lambda: plain_parquet(path)


def feather(folder: Path) -> tuple[Any, Callable[[], None]]:
    path = folder / "x.feather"
    return Columns(path, NAMES), lambda: plain_feather(path)


def arrow_table(folder: Path) -> tuple[Any, Callable[[], None]]:
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "x.parquet")

    def plain() -> None:
        for start in range(0, len(table), BLOCK):
            part = table.slice(start, BLOCK)
            np.column_stack([part[name].to_numpy() for name in NAMES])

    return Columns(table, NAMES), plain


def pandas_table(folder: Path) -> tuple[Any, Callable[[], None]]:
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "x.parquet").to_pandas()

    def plain() -> None:
        for start in range(0, len(table), BLOCK):
            np.ascontiguousarray(table.iloc[start : start + BLOCK].to_numpy())

    return Columns(table, NAMES), plain


def dask_array(folder: Path) -> tuple[Any, Callable[[], None]]:
    import dask.array as da

    rows = da.from_zarr(str(folder / "x.zarr"))
    return rows, lambda: plain_dask(rows)


def dask_table(folder: Path) -> tuple[Any, Callable[[], None]]:
    import dask.dataframe as dd

    table = dd.read_parquet(str(folder / "x.parquet"), split_row_groups=True)
    return Columns(table, NAMES), lambda: plain_dask_table(table[NAMES])


def xarray_netcdf(folder: Path) -> tuple[Any, Callable[[], None]]:
    import xarray as xr

    rows = xr.open_dataset(folder / "x.nc", engine="h5netcdf", cache=False)["x"]
    return rows, lambda: plain_array(rows, CHUNK // 8)


class _Sliced:
    """A zarr array with the length that plain sequences have."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return self._rows.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        return self._rows[rows]


KINDS = {
    "array": (write_npy, array),
    "memory_map": (write_npy, memory_map),
    "npy": (write_npy, npy),
    "npy_folder": (write_npy_folder, npy_folder),
    "zarr_array": (write_zarr, zarr_array),
    "parquet": (write_parquet, parquet),
    "feather": (write_feather, feather),
    "arrow_table": (write_parquet, arrow_table),
    "pandas_table": (write_parquet, pandas_table),
    "dask_array": (write_zarr, dask_array),
    "dask_table": (write_parquet, dask_table),
    "xarray_netcdf": (write_netcdf, xarray_netcdf),
}
MODULE = "examples.benchmarks.sources"


# ---------------------------------------------------------------------- in a process of its own


def read_all(source: Source) -> None:
    """Block by block, in this thread."""
    for start, stop in block_ranges({"x": source}, BLOCK):
        source.read(start, stop)


def read_by_another(source: Source) -> None:
    """The same with another thread that reads ahead."""
    for _ in read_ahead({"x": source}, list(block_ranges({"x": source}, BLOCK))):
        pass


def seconds(function: Callable[[], Any]) -> float:
    """Of one call."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def measure(name: str, folder: str) -> dict[str, float]:
    """Seconds of the best pass of each, and the peak of the first pass in MB."""
    given, plain = KINDS[name][1](Path(folder))
    source = open_source(given, "x")
    opened = peak_megabytes()
    read_all(source)
    peak = peak_megabytes() - opened
    functions = {
        "plain": plain,
        "read": lambda: read_all(source),
        "ahead": lambda: read_by_another(source),
    }
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(REPEATS):
        for what, function in functions.items():
            best[what] = min(best[what], seconds(function))
    return best | {"peak": peak, "megabytes": source.n_rows * N_COLUMNS * 4 / 1e6}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(measure(*sys.argv[2:])))
    else:
        main()
