"""What cannot be read is refused in one sentence that names the data, the reason and the remedy."""

import os
import re
import sys
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr
import zarr

from pymc_austerity import DataError, SettingError, SettingTypeError, StorageError
from pymc_austerity.sources import Columns, open_source
from tests.sources.stores import frame


def read_all(given, name):
    source = open_source(given, name)
    return source.read(0, source.n_rows)


def sentence_of(error, given, name="x"):
    with pytest.raises(error) as raised:
        read_all(given, name)
    sentence = str(raised.value)
    assert sentence.count("\n") == 0
    assert sentence.endswith(".")
    return sentence


def saved(folder, table):
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), folder / "t.parquet")
    return folder / "t.parquet"


TABLES = {
    "parquet": lambda folder: saved(folder, pa.Table.from_pandas(frame())),
    "arrow": lambda folder: pa.Table.from_pandas(frame()),
    "pandas": lambda folder: frame(),
    "dask": lambda folder: dd.from_pandas(frame(), npartitions=2),
    "xarray": lambda folder: xr.Dataset.from_dataframe(frame()),
}


@pytest.fixture(params=TABLES)
def table(request, tmp_path):
    return TABLES[request.param](tmp_path)


class TestColumns:
    def test_a_close_name_is_suggested(self, table):
        sentence = sentence_of(SettingError, Columns(table, ["x0", "grupo"]))
        assert "data['x']" in sentence
        assert "has no column 'grupo': 'group' may be meant" in sentence

    def test_the_columns_there_are_are_named(self, table):
        sentence = sentence_of(SettingError, table, "revenue")
        assert "has no column 'revenue': choose from " in sentence
        assert "'flag'" in sentence and "Columns(table, names)" in sentence

    def test_text_is_refused(self, table):
        sentence = sentence_of(DataError, Columns(table, "text"))
        assert re.search(r"'text' of data\['x'\].* has dtype \w+.*, not bool, integer", sentence)

    @pytest.mark.parametrize("names", [[], ["a", "a"], ()])
    def test_names_are_given_once_each(self, names):
        with pytest.raises(SettingError, match="at least one name, and each once"):
            Columns(frame(), names)

    @pytest.mark.parametrize("names", [3, ["x0", 1], None, {"x0", "x1"}])
    def test_names_are_text_in_order(self, names):
        with pytest.raises(SettingTypeError, match=r"is not (text|a list of names)"):
            Columns(frame(), names)

    def test_what_has_no_columns(self, tmp_path):
        np.save(tmp_path / "x.npy", np.zeros(3))
        array = zarr.create_array(str(tmp_path / "x.zarr"), data=np.zeros(3))
        arrays = [np.zeros(3), xr.DataArray(np.zeros(3)), [1, 2], array]
        for given in (tmp_path / "x.npy", tmp_path / "x.zarr", *arrays):
            sentence = sentence_of(SettingTypeError, Columns(given, "x"))
            assert "data['x'] names columns of" in sentence and "not a table: give" in sentence

    def test_two_columns_of_one_name(self):
        column = pa.array([1.0])
        doubled = pa.Table.from_arrays([column, column], names=["x", "x"])
        assert "2 columns 'x'" in sentence_of(DataError, doubled)
        assert "2 columns 'x'" in sentence_of(DataError, doubled.to_pandas())

    def test_an_integer_that_a_floating_column_would_round(self):
        table = {"a": np.array([1, 2**53 + 1]), "b": np.array([0.5, 1.5])}
        for given in (pd.DataFrame(table), pa.table(table)):
            sentence = sentence_of(DataError, Columns(given, ["a", "b"]))
            assert "integers above 2 ** 53 beside floating columns" in sentence
        np.testing.assert_array_equal(
            open_source(Columns(pd.DataFrame(table).iloc[:1], ["a", "b"]), "x").read(0, 1),
            [[1, 0.5]],
        )


class TestNulls:
    def test_parquet_with_statistics_says_how_many_at_once(self, tmp_path):
        path = saved(tmp_path, {"x": [1, None, 3, None], "y": [1.0, 2.0, 3.0, 4.0]})
        with pytest.raises(DataError, match=r"column 'x' of data\['x'\] has 2 nulls: drop or fill"):
            open_source(path, "x")
        open_source(path, "y")

    def test_parquet_without_statistics_says_which_row_when_it_is_read(self, tmp_path):
        table = pa.table({"x": [1.0, 2.0, 3.0, None, 5.0]})
        pq.write_table(table, tmp_path / "t.parquet", row_group_size=2, write_statistics=False)
        source = open_source(tmp_path / "t.parquet", "x")
        source.read(0, 2)
        with pytest.raises(DataError, match="has nulls, the first in row 3"):
            source.read(2, 5)

    def test_arrow(self):
        column = pa.chunked_array([[1, 2], [3, None, None]])
        assert "nulls, the first in row 3" in sentence_of(DataError, pa.table({"x": column}))

    def test_arrow_in_the_dictionary(self):
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([5, None]))
        assert "nulls, the first in row 1" in sentence_of(DataError, pa.table({"x": column}))

    def test_only_nulls(self, tmp_path):
        table = pa.table({"x": pa.nulls(3)})
        for given in (table, saved(tmp_path, table)):
            assert "has only nulls" in sentence_of(DataError, given)

    @pytest.mark.parametrize("dtype", ["Int64", "boolean", "category"])
    def test_pandas(self, dtype):
        series = pd.Series([1, 0, None], dtype=dtype)
        assert "nulls, the first in row 2" in sentence_of(DataError, pd.DataFrame({"x": series}))
        assert "nulls, the first in row 2" in sentence_of(DataError, series)

    def test_dask(self):
        table = dd.from_pandas(pd.DataFrame({"x": pd.Series([1, None], dtype="Int64")}), 1)
        assert "has nulls, the first" in sentence_of(DataError, table)

    def test_a_masked_array(self):
        assert "masked array" in sentence_of(DataError, np.ma.masked_less(np.arange(3.0), 1))


class TestValues:
    @pytest.mark.parametrize(
        ("array", "words"),
        [
            (np.array([1j, 2]), "dtype complex128.*real and imaginary part"),
            (np.array([1, "a"], dtype=object), "dtype object"),
            (np.array(["a", "b"]), "dtype <U1"),
            (np.array(["2020-01-01"], dtype="M8[D]"), "dtype datetime64"),
            (np.zeros((0, 3)), "no rows"),
            (np.zeros((3, 0)), "no values in its rows"),
            (np.array(3.0), "a single number"),
        ],
    )
    def test_arrays_of_every_kind(self, array, words, tmp_path):
        given = [array, da.from_array(array, chunks=-1), xr.DataArray(array)]
        if array.dtype != object:
            np.save(tmp_path / "x.npy", array)
            given.append(tmp_path / "x.npy")
        if array.dtype.kind in "cf":
            given.append(zarr.create_array(str(tmp_path / "x.zarr"), data=array))
        for one in given:
            assert re.search(rf"data\['x'\].*{words}", sentence_of(DataError, one))

    @pytest.mark.parametrize(
        "column",
        [
            ["a", "b"],
            [b"a"],
            [[1.0, 2.0]],
            [{"a": 1}],
            pa.array([1], pa.timestamp("s")),
            pa.array([1], pa.decimal128(5, 2)),
            pa.array(["a"]).dictionary_encode(),
        ],
    )
    def test_columns_of_arrow_and_parquet(self, column, tmp_path):
        table = pa.table({"x": column})
        for given in (table, saved(tmp_path, table)):
            words = r"column 'x' of data\['x'\].* has dtype .*, not bool"
            assert re.match(words, sentence_of(DataError, given))

    def test_categories_of_text(self):
        table = pd.DataFrame({"x": pd.Series(["a", "b"], dtype="category")})
        for given in (table, table["x"], dd.from_pandas(table, npartitions=1)):
            assert "to integer codes" in sentence_of(DataError, given)

    def test_tables_without_rows(self, tmp_path):
        table = pa.table({"x": pa.array([], pa.float32())})
        for given in (table, saved(tmp_path, table), table.to_pandas()):
            assert "no rows: give at least one" in sentence_of(DataError, given)

    def test_chunks_that_are_not_what_dask_declares(self):
        shape = da.map_blocks(lambda: np.zeros(3), chunks=((2,),), dtype=float)
        assert "chunk 0 of data['x'] has 3 rows and is declared with 2" in sentence_of(
            DataError, shape
        )
        dtype = da.map_blocks(lambda: np.zeros(3, "float32"), chunks=((3,),), dtype=float)
        assert "dtype float32 and is declared as float64" in sentence_of(DataError, dtype)


@pytest.mark.parametrize(
    "given", [[1, 2], 3.0, None, {"x": 1}, range(3), object, pa.array([1]), pd.Index([1])]
)
def test_what_is_no_source(given):
    sentence = sentence_of(SettingTypeError, given)
    assert re.match(r"data\['x'\] is a [\w.]+, not rows: give a NumPy array", sentence)


class TestFiles:
    def test_an_address(self):
        sentence = sentence_of(SettingTypeError, "s3://bucket/x.zarr")
        assert "the address s3://bucket/x.zarr: open it with zarr, dask or xarray" in sentence

    def test_a_path_that_leads_nowhere(self, tmp_path):
        assert "there is no" in sentence_of(StorageError, tmp_path / "x.npy")

    def test_a_folder_without_rows(self, tmp_path):
        (tmp_path / "readme.txt").write_text("rows are elsewhere")
        for given in (tmp_path, str(tmp_path / "readme.txt")):
            sentence = sentence_of(DataError, given)
            assert "to one of these, or read it with xarray, pandas or dask" in sentence

    def test_a_folder_of_both(self, tmp_path):
        np.save(tmp_path / "x.npy", np.zeros(3))
        saved(tmp_path, {"x": [1.0]})
        assert "both .npy and Parquet files: give the path of one kind" in sentence_of(
            DataError, tmp_path
        )

    @pytest.mark.parametrize("other", [np.zeros(3, "float32"), np.zeros((3, 2))])
    def test_arrays_of_a_folder_that_differ(self, other, tmp_path):
        np.save(tmp_path / "part-1.npy", np.zeros(3))
        np.save(tmp_path / "part-2.npy", other)
        sentence = sentence_of(DataError, tmp_path)
        assert "part-1.npy has float64 rows of shape ()" in sentence
        assert f"part-2.npy has {other.dtype} rows of shape {other.shape[1:]}" in sentence

    def test_tables_of_a_folder_that_differ(self, tmp_path):
        pq.write_table(pa.table({"x": [1.0]}), tmp_path / "part-1.parquet")
        pq.write_table(pa.table({"x": [1]}), tmp_path / "part-2.parquet")
        sentence = sentence_of(DataError, tmp_path)
        assert "part-1.parquet has float64" in sentence and "part-2.parquet has int64" in sentence

    def test_a_column_that_one_file_of_a_folder_lacks(self, tmp_path):
        pq.write_table(pa.table({"x": [1.0]}), tmp_path / "part-1.parquet")
        pq.write_table(pa.table({"z": [1.0]}), tmp_path / "part-2.parquet")
        sentence = sentence_of(SettingError, tmp_path)
        assert "part-2.parquet" in sentence and "no column 'x'" in sentence

    @pytest.mark.parametrize("name", ["x.npy", "x.parquet"])
    @pytest.mark.parametrize("content", [b"", b"rows", b"\x93NUMPY", b"PAR1 and no more"])
    def test_a_file_of_another_format(self, name, content, tmp_path):
        (tmp_path / name).write_bytes(content)
        assert name in sentence_of(StorageError, tmp_path / name)

    @pytest.mark.parametrize("share", [0.3, 0.99])
    @pytest.mark.parametrize("name", ["x.npy", "x.parquet"])
    def test_a_truncated_file(self, name, share, tmp_path):
        path = tmp_path / name
        if name == "x.npy":
            np.save(path, np.arange(1_000.0))
        else:
            pq.write_table(pa.table({"x": np.arange(1_000.0)}), path)
        path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
        assert name in sentence_of(StorageError, path)

    def test_parquet_whose_rows_are_damaged(self, tmp_path):
        path = saved(tmp_path, {"x": np.random.default_rng(1).normal(size=1_000)})
        content = bytearray(path.read_bytes())
        content[4:200] = bytes(196)
        path.write_bytes(content)
        assert "cannot be read (" in sentence_of(StorageError, path)

    def test_zarr_that_is_damaged(self, tmp_path):
        array = zarr.create_array(str(tmp_path / "x.zarr"), data=np.arange(10.0), chunks=(5,))
        (tmp_path / "x.zarr" / "c" / "1").write_bytes(b"rows")
        assert "cannot be read (" in sentence_of(StorageError, array)
        (tmp_path / "x.zarr" / "zarr.json").write_text("{")
        assert "cannot be read (" in sentence_of(StorageError, tmp_path / "x.zarr")

    @pytest.mark.skipif(os.name == "nt", reason="mapped files cannot be replaced there")
    def test_a_memory_map_whose_file_is_another_one(self, tmp_path):
        path = tmp_path / "x.npy"
        np.save(path, np.arange(10.0))
        mapped = np.load(path, mmap_mode="r")
        np.save(tmp_path / "other.npy", np.arange(10.0) + 1)
        (tmp_path / "other.npy").replace(path)
        assert "removed or replaced: map it again" in sentence_of(StorageError, mapped)
        path.unlink()
        assert "removed or replaced: map it again" in sentence_of(StorageError, mapped)

    def test_a_dask_graph_whose_file_is_gone(self, tmp_path):
        given = da.map_blocks(lambda: np.load(tmp_path / "no.npy"), chunks=((2,),), dtype=float)
        assert "cannot be computed by dask (FileNotFoundError" in sentence_of(StorageError, given)


class TestOptionalLibraries:
    def test_the_package_is_named_where_one_is_missing(self, tmp_path, monkeypatch):
        path = saved(tmp_path, {"x": [1.0]})
        zarr.create_array(str(tmp_path / "x.zarr"), data=np.zeros(3))
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
        monkeypatch.setitem(sys.modules, "zarr", None)
        for given, package in {path: "pyarrow", tmp_path / "x.zarr": "zarr"}.items():
            said = f"{package} is needed: pip install {package}."
            assert said in sentence_of(ImportError, given)

    def test_none_is_imported_for_others(self, tmp_path, monkeypatch):
        for name in ("pyarrow", "pyarrow.parquet", "zarr", "dask", "cloudpickle"):
            monkeypatch.setitem(sys.modules, name, None)
        np.save(tmp_path / "x.npy", np.zeros(3))
        given = [np.zeros(3), tmp_path / "x.npy", np.load(tmp_path / "x.npy", mmap_mode="r")]
        for one in [*given, pd.DataFrame({"x": [0.0] * 3}), xr.DataArray(np.zeros(3))]:
            np.testing.assert_array_equal(open_source(one, "x").read(0, 3), np.zeros(3))


def test_maps_that_copy_on_write_are_arrays_in_memory(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(10.0))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="c")
    mapped[3] = -1
    np.testing.assert_array_equal(open_source(mapped, "x").read(0, 10), mapped)


def test_relative_paths_are_those_of_the_process_that_opens(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", np.arange(10.0))
    monkeypatch.chdir(tmp_path)
    source = open_source(Path("x.npy"), "x")
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(source.read(0, 10), np.arange(10.0))
