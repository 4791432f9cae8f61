"""What stores can do to rows: be changed, be removed, be large."""

import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import dask
import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

from pymc_austerity import StorageError
from pymc_austerity.sources import Columns, open_source, take
from tests.sources.stores import KINDS

ON_DISK = ["memory_maps", "npy", "npy_folders", "zarr_arrays", "zarr_paths", "zarr_group"]
ON_DISK += ["zarr_shards", "parquet", "parquet_folder", "arrow_file", "xarray_netcdf", "hdf5"]


def files_under(folder):
    return sorted(p for p in folder.rglob("*") if p.is_file())


def data_files(folder):
    """The files with rows of x, that of its last rows at the end."""
    files = [p for p in files_under(folder) if p.name not in {"zarr.json", ".zarray", ".zattrs"}]
    return [
        p
        for p in files
        if "x" in str(p.relative_to(folder)) or p.suffix in {".parquet", ".feather", ".nc", ".h5"}
    ]


@pytest.fixture(params=ON_DISK)
def stored(request, tmp_path):
    source = open_source(KINDS[request.param](tmp_path)["x"], "x")
    source.read(0, 50)
    return source, tmp_path


class TestChanges:
    def test_a_file_written_anew_is_noticed(self, stored):
        source, folder = stored
        source.refuse_if_changed()
        path = data_files(folder)[-1]
        status = path.stat()
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))
        with pytest.raises(StorageError, match=r"'x'.* was changed while it was in use"):
            source.refuse_if_changed()

    def test_a_truncated_file_is_noticed_and_not_read(self, stored):
        source, folder = stored
        path = data_files(folder)[-1]
        os.truncate(path, path.stat().st_size // 2)
        with pytest.raises(StorageError, match="was changed while it was in use"):
            source.refuse_if_changed()
        with pytest.raises(StorageError, match=r"'x'"):
            source.read(0, source.n_rows)
        with pytest.raises(StorageError, match=r"'x'"):
            take(source, np.arange(source.n_rows))

    def test_a_removed_store_is_noticed_and_not_read(self, stored):
        source, folder = stored
        for path in data_files(folder):
            path.unlink()
        with pytest.raises(StorageError, match=r"cannot be read any more|was changed"):
            source.refuse_if_changed()
        with pytest.raises(StorageError, match="cannot be read any more"):
            source.read(500, 800)
        with pytest.raises(StorageError, match="cannot be read any more"):
            take(source, np.array([700]))


def test_missing_chunks_of_zarr_are_fill_values_if_they_were_never_there(tmp_path):
    array = zarr.create_array(
        str(tmp_path / "y.zarr"), shape=(40,), chunks=(10,), dtype="f4", fill_value=2.0
    )
    array[10:30] = np.arange(20.0)
    source = open_source(array, "y")
    np.testing.assert_array_equal(source.read(0, 40), array[:])
    (tmp_path / "y.zarr" / "c" / "1").unlink()
    np.testing.assert_array_equal(source.read(0, 10), [2.0] * 10)
    with pytest.raises(StorageError, match="cannot be read any more"):
        source.read(5, 15)


N_GROUPS, GROUP = 12, 20_000


@pytest.fixture(scope="module")
def large_parquet(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "rows.parquet"
    x = np.random.default_rng(1).normal(size=(N_GROUPS * GROUP, 4))
    table = pa.table({f"x{i}": x[:, i] for i in range(4)})
    pq.write_table(table, path, row_group_size=GROUP)
    return path


@pytest.fixture
def decoded(monkeypatch):
    """Numbers and columns of row groups, in the order in which they are decoded."""
    calls = []
    read = pq.ParquetFile.iter_batches

    def counted(file, n_rows, groups, columns):
        calls.extend((number, tuple(columns)) for number in groups)
        return read(file, n_rows, groups, columns)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    return calls


class TestParquet:
    @pytest.fixture
    def source(self, large_parquet):
        return open_source(Columns(large_parquet, ["x2", "x0"]), "x")

    @pytest.mark.parametrize("step", [3_000, 20_000, 45_000])
    def test_memory_is_that_of_blocks_and_row_groups(self, source, step):
        bytes_of_group = GROUP * 2 * 8
        source.read(0, step)
        pool = pa.default_memory_pool()
        before, worst = pool.bytes_allocated(), 0
        tracemalloc.start()
        for start in range(0, source.n_rows, step):
            source.read(start, min(start + step, source.n_rows))
            worst = max(worst, pool.bytes_allocated() - before)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert worst < 4 * bytes_of_group  # its threads let go of buffers a little later
        assert peak < 2 * step * 2 * 8 + 2 * bytes_of_group < source.n_rows * 2 * 8 * 0.6

    def test_blocks_in_order_decode_each_row_group_once(self, source, decoded):
        for start in range(0, source.n_rows, 3_000):
            source.read(start, min(start + 3_000, source.n_rows))
        assert decoded == [(number, ("x2", "x0")) for number in range(N_GROUPS)]

    def test_threads_that_share_a_row_group_decode_it_once(self, source, decoded):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda start: source.read(start, start + 500), range(0, GROUP, 500)))
        assert decoded == [(0, ("x2", "x0"))]

    def test_a_range_decodes_only_row_groups_that_overlap(self, source, decoded):
        source.read(39_999, 60_001)
        assert [number for number, _ in decoded] == [1, 2, 3]


class TestDask:
    @pytest.fixture
    def computed(self):
        """Numbers of chunks, in the order in which they are computed."""
        return []

    @pytest.fixture
    def source(self, computed):
        def chunk(block_info=None):
            place = block_info[None]["chunk-location"][0]
            computed.append(place)
            return np.full(10, float(place))

        return open_source(da.map_blocks(chunk, chunks=((10,) * 8,), dtype=float), "y")

    def test_only_chunks_that_overlap_are_computed(self, source, computed):
        with dask.config.set(scheduler="synchronous"):
            source.read(19, 41)
        assert sorted(computed) == [1, 2, 3, 4]

    def test_blocks_in_order_compute_each_chunk_once(self, source, computed):
        with dask.config.set(scheduler="synchronous"):
            for start in range(0, 80, 4):
                source.read(start, start + 4)
        assert computed == list(range(8))

    def test_the_scheduler_is_that_of_the_user(self, source):
        asked = []

        def scheduler(graph, keys, **settings):
            asked.append(keys)
            return dask.get(graph, keys, **settings)

        with dask.config.set(scheduler=scheduler):
            np.testing.assert_array_equal(source.read(10, 12), [1.0, 1.0])
        assert asked
