"""Rows in sources: how they are looked at first, and what is said where they cannot be used."""

import re

import numpy as np
import pytest

from pymc_austerity.errors import DataError, SettingError
from pymc_austerity.rows import LARGEST_BLOCK, blocks_of, sum_over_rows
from pymc_austerity.setup import setup_progress
from pymc_austerity.setup.prepared import prepare
from tests.setup.sources import Recorded, logistic, rows_of_regression
from tests.step_methods.models import normal_of

N_ROWS = 70_000


@pytest.fixture(scope="module")
def data():
    return rows_of_regression(N_ROWS)


@pytest.fixture(scope="module")
def model(data):
    return logistic(data)


@pytest.fixture(scope="module")
def prepared(model, data):
    return prepare(model, data=data, rng=1)


def changed(data, name, row, value):
    array = data[name].astype(float) if isinstance(value, float) else data[name].copy()
    array[row] = value
    return {**data, name: array}


class TestRows:
    def test_number_of_rows_is_that_of_the_sources(self, prepared):
        assert prepared.likelihood.n_rows == prepared.rows.n_rows == N_ROWS
        assert prepared.likelihood.n_in_model == 30
        assert prepared.rows.n_passes == 1

    def test_blocks_are_the_leaves_of_all_rows(self, prepared, data):
        leaves = prepared.likelihood.leaves
        names = [leaf.placeholder.name for leaf in leaves]
        blocks = list(blocks_of(prepared.rows))
        assert max(len(block[0]) for block in blocks) <= LARGEST_BLOCK
        for k, name in enumerate(names):
            whole = np.concatenate([block[k] for block in blocks])
            assert whole.dtype == leaves[k].array.dtype
            if name in data:
                np.testing.assert_array_equal(whole, data[name])
        window, taken = prepared.rows.window(5, 9), prepared.rows.take(np.array([5, 6, 7, 8]))
        for one, other in zip(window, taken, strict=True):
            np.testing.assert_array_equal(one, other)

    def test_the_sample_is_of_different_rows_all_equally_likely(self, model, data):
        numbered = {**data, "x": np.stack([np.arange(N_ROWS), np.zeros(N_ROWS)], axis=1) * 1e-6}
        sample = prepare(model, data=numbered, rng=2).rows.sample
        names = [leaf.placeholder.name == "x" for leaf in prepare(model).likelihood.leaves]
        assert any(names)
        x = next(a for a in sample.window(0, sample.n_rows) if a.ndim == 2)
        numbers = np.rint(x[:, 0] * 1e6)
        assert numbers.size == np.unique(numbers).size == 50_000
        error = N_ROWS / np.sqrt(12 * 50_000) * np.sqrt(1.0 - 5.0 / 7.0)
        assert abs(numbers.mean() - N_ROWS / 2) < 4.0 * error

    def test_fingerprints_differ_with_the_rows(self, prepared, model, data):
        assert prepare(model, data=data).fingerprint == prepared.fingerprint
        other = changed(data, "x", 0, np.float32(0.25))
        assert prepare(model, data=other).fingerprint != prepared.fingerprint

    def test_memory_holds_a_few_rows(self, model, data):
        sources = {name: Recorded(array) for name, array in data.items()}
        prepare(model, data=sources)
        assert all(source.longest <= 8 * LARGEST_BLOCK for source in sources.values())
        assert all(source.n_read < 1.1 * N_ROWS for source in sources.values())


class TestThreads:
    def test_sums_are_the_same_for_any_number(self, prepared, monkeypatch):
        start = [np.asarray(prepared.point[v.name]) for v in prepared.likelihood.value_vars]

        def total(n_threads):
            monkeypatch.setenv("OMP_NUM_THREADS", str(n_threads))
            return sum_over_rows(
                lambda block: prepared.verified.on_block(start, block).sum(), prepared.rows
            )

        one = total(1)
        assert [total(n_threads) for n_threads in (2, 3, 8)] == [one] * 3

    def test_what_is_wrong_is_the_same(self, model, data, monkeypatch):
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        with pytest.raises(DataError, match=r"levels that .* the first in row 65,599"):
            prepare(model, data=changed(data, "level", [65_599, 65_700, 69_999], 3))


def test_progress_says_what_is_left(prepared, monkeypatch):
    texts = []
    monkeypatch.setattr(setup_progress, "_under_way", [setup_progress.Stage(texts.append)])
    for _ in prepared.rows.blocks():
        pass
    assert re.fullmatch(r"starting \(94%, \d+ s left\)", texts[0])
    assert re.fullmatch(r"starting \(100%, 0 s left\)", texts[-1])


NEGATIVE_CODE = r"the first in row 3 \('level' is -1, 'y' is 1; a negative code, as pandas"


class TestRefused:
    @pytest.mark.few(
        "x-1234-nan-in 1 row of the sources, because 'x' holds NaN .* row 1,234",
        "level-3--4-the first in row 3 \\\\('level' is -4",
        "y-7-0.5-'y' is 0.5 in row 7 of its source",
    )
    @pytest.mark.parametrize(
        ("name", "row", "value", "words"),
        [
            ("x", 1_234, np.nan, "in 1 row of the sources, because 'x' holds NaN .* row 1,234"),
            ("level", 65_599, 3, "levels that the model does not have, the first in row 65,599"),
            ("level", 3, -4, r"the first in row 3 \('level' is -4"),
            ("level", 3, -1, NEGATIVE_CODE),
            ("y", 66_000, 2.0, "first in row 66,000 .*'y' is 2.*outside of the support"),
            ("y", 7, 0.5, "'y' is 0.5 in row 7 of its source"),
        ],
    )
    def test_a_row(self, model, data, name, row, value, words):
        with pytest.raises(DataError, match=words):
            prepare(model, data=changed(data, name, row, value))

    def test_many_rows(self, model, data):
        with pytest.raises(DataError, match="in at least 1,000 rows of the sources"):
            prepare(model, data=changed(data, "x", slice(5_000, None), np.nan))

    def test_whole_numbers_may_be_floats(self, model, data, prepared):
        as_floats = {**data, "y": data["y"].astype(float), "level": data["level"].astype(float)}
        assert prepare(model, data=as_floats).fingerprint == prepared.fingerprint

    def test_rows_of_another_shape(self, model, data):
        with pytest.raises(SettingError, match=r"'x'.* rows of shape \(1,\).* have shape \(2,\)"):
            prepare(model, data={**data, "x": data["x"][:, :1]})

    def test_a_column_for_a_vector(self, model, data):
        with pytest.raises(
            SettingError, match=r"'y'.* rows of shape \(1,\).* Columns\(path, 'x'\)"
        ):
            prepare(model, data={**data, "y": data["y"][:, None]})

    def test_other_numbers_of_rows(self, model, data):
        with pytest.raises(DataError, match="give the same rows"):
            prepare(model, data={**data, "y": data["y"][1:]})

    def test_data_without_a_source(self, model, data):
        given = {name: data[name] for name in ("x", "y")}
        with pytest.raises(ValueError, match="'level' has one entry for each row of the example"):
            prepare(model, data=given)

    def test_nothing(self, model):
        with pytest.raises(SettingError, match="names nothing"):
            prepare(model, data={})


def test_fewer_rows_than_in_the_example():
    y = np.random.default_rng(1).normal(size=50)
    assert prepare(normal_of(y), data={"y": y[:20]}).likelihood.n_rows == 20


def test_maps_in_the_model_are_in_memory_and_the_remedy_is_named(tmp_path, caplog):
    np.save(tmp_path / "y.npy", np.random.default_rng(1).normal(size=50))
    with caplog.at_level("INFO", logger="pymc.austerity"):
        prepare(normal_of(np.load(tmp_path / "y.npy", mmap_mode="r")))
    assert "'y' was given as a memory map" in caplog.text
    assert "AusterityMH(data={...})" in caplog.text
