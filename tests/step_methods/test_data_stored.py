"""AusterityMH(data=...) where decisions are sequential tests on rows in a local store."""

import os

import numpy as np
import pymc as pm
import pytest

from pymc_austerity.deciding.sampling import StratifiedSampling, UniformSampling
from pymc_austerity.errors import SettingError, StorageError
from pymc_austerity.rows import stored
from tests.running import assert_alike, assert_same_draws, built, sample
from tests.setup.sources import N_EXAMPLE, Recorded

N_ROWS = 70_000


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(folder))
        patch.setattr(stored, "_BYTES_OF_BUCKET", 400_000)
        yield folder


def rows_with_outliers(order):
    """A regression with errors of heavy tails."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=N_ROWS)
    y = 1.0 + 0.5 * x + rng.standard_t(4, size=N_ROWS)
    y[rng.choice(N_ROWS, 5)] += 40.0
    if order == "by time":
        order = np.argsort(y)
        x, y = x[order], y[order]
    return {"x": x, "y": y}


def robust(data, n_rows=N_EXAMPLE):
    with pm.Model() as model:
        x = pm.Data("x", data["x"][:n_rows])
        coefficients, log_scale = pm.Normal("coefficients", shape=2), pm.Normal("log_scale")
        mean = coefficients[0] + x * coefficients[1]
        pm.StudentT("y", nu=4.0, mu=mean, sigma=pm.math.exp(log_scale), observed=data["y"][:n_rows])
    return model


ORDERS = [pytest.param("in any order", marks=pytest.mark.exhaustive), "by time"]


@pytest.fixture(scope="module", params=ORDERS)
def run(request, place):
    data = rows_with_outliers(request.param)
    sources = {name: Recorded(array) for name, array in data.items()}
    model = robust(data)
    return data, model, sources, built(model, data=sources, epsilon=0.05)


@pytest.mark.exhaustive
def test_posterior_is_that_of_the_same_rows_in_memory(run):
    data, model, _, step = run
    assert isinstance(step.target.sampling, StratifiedSampling)
    whole = robust(data, N_ROWS)
    other = built(whole, epsilon=0.05)
    first = {s.n_first for s in (step.target.sampling.strata, other.target.sampling.strata)}
    assert max(first) <= 2 * min(first)
    draws = {"draws": 2_000, "tune": 200, "chains": 2}
    runs = sample(step, model, **draws), sample(other, whole, **draws)
    assert_alike(*runs, ("coefficients", "log_scale"), 0.15, 0.15)


def test_the_store_has_every_row_once_in_random_order(run):
    data, _, _, step = run
    block = step.target.source.window(0, N_ROWS)
    y = next(a for a in block if a.ndim == 1 and np.array_equal(np.sort(a), np.sort(data["y"])))
    sizes = step.target.sampling.strata.sizes
    for part in np.split(y, np.cumsum(sizes)[:-1]):
        if part.size > 1_000:
            neighbors = np.corrcoef(part[1:], part[:-1])[0, 1]
            assert abs(neighbors) < 5.0 / np.sqrt(part.size)


def test_passes_are_few_and_said(run):
    _, model, sources, step = run
    n_read = sources["y"].n_read
    n_passes = n_read // N_ROWS
    assert n_passes <= 15
    words = step.explain()
    assert f"{step.target.source.n_bytes / 1e9:.2g} GB), in {n_passes} passes over all" in words
    sample(step, model, draws=20, tune=20)
    assert sources["y"].n_read == n_read


def test_types_of_the_sources_take_less_room_and_change_no_draw(place):
    data = rows_with_outliers("in any order")
    narrow = {name: array.astype(np.float32) for name, array in data.items()}
    wide = {name: array.astype(np.float64) for name, array in narrow.items()}
    model = robust(wide)
    steps = [built(model, data=given, epsilon=0.05) for given in (narrow, wide)]
    sizes = [step.target.source.n_bytes / N_ROWS for step in steps]
    assert sizes[1] - sizes[0] == 2 * 4
    assert_same_draws(*(sample(step, model, draws=300, tune=50, chains=1) for step in steps))


def test_a_store_that_cannot_be_read_ends_a_run(place):
    data = rows_with_outliers("in any order")
    model = robust(data)
    step = built(model, data=data, epsilon=0.05)
    (path,) = step.target.source.folder.glob("*.rows")

    def cut_off(trace, draw):
        if not draw.tuning:  # compiled code makes draws from now on
            os.truncate(path, 0)

    with pytest.raises(StorageError, match="are gone or cannot be read"):
        sample(step, model, draws=2_000, tune=50, chains=1, callback=cut_off)


def test_without_room(place, monkeypatch):
    before = set(place.iterdir())
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1_000}))
    data = rows_with_outliers("in any order")
    with pytest.raises(StorageError, match=r"bytes, cannot be stored in .*TMPDIR"):
        built(robust(data), data=data, epsilon=0.05)
    assert set(place.iterdir()) == before


class TestSettings:
    """Of a model whose decisions would be exact."""

    @pytest.mark.few("settings1-StratifiedSampling-80", "settings3-UniformSampling-500")
    @pytest.mark.parametrize(
        ("settings", "kind", "n_first"),
        [
            ({"epsilon": 0.05}, StratifiedSampling, 160),
            ({"max_error": 0.02, "batch_size": 80}, StratifiedSampling, 80),
            ({"control_variates": 1}, StratifiedSampling, None),
            ({"sampling": "windows"}, UniformSampling, 500),
            ({"sampling": "fresh", "batch_size": 30}, UniformSampling, 30),
        ],
    )
    def test_who_asks_for_a_sequential_test_gets_it(self, place, settings, kind, n_first):
        y = np.random.default_rng(4).gamma(2.0, size=20_000)
        with pm.Model() as model:
            pm.Exponential("y", pm.HalfNormal("rate"), observed=y[:20])
        step = built(model, data={"y": y}, **settings)
        sampling = step.target.sampling
        assert isinstance(sampling, kind)
        assert n_first in (None, sampling.strata.n_first)
        idata = sample(step, model, draws=300, tune=200)
        gap = idata.posterior["rate"].values.mean() * y.mean() - 1.0
        assert abs(gap) < 0.5 / np.sqrt(y.size)

    def test_exact_decisions_that_are_not_possible(self, place):
        data = {"y": np.random.default_rng(5).normal(size=3_000)}
        with pm.Model() as model:
            mean = pm.Normal("mean")
            pm.Normal("y", pm.math.sinh(mean), 1.0, observed=data["y"][:20])
        with pytest.raises(SettingError, match=r"test='exact' is not possible because"):
            built(model, data=data, test="exact")
