"""AusterityMH(data=...): the model on a few rows, and all rows where they are."""

import pickle
import tracemalloc

import cloudpickle
import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH, FireflyMH, GroupedMH, HoeffdingTest, LangevinProposal
from pymc_austerity.errors import SettingError
from pymc_austerity.rows import stored
from tests.running import (
    assert_alike,
    assert_goes_on,
    assert_moments,
    assert_same_draws,
    assert_same_moves,
    built,
    sample,
    walk,
)
from tests.setup.sources import Recorded, logistic, rows_of_regression
from tests.sources.stores import npy
from tests.step_methods.models import mean_of, normal_of

N_ROWS = 70_000
Y = np.random.default_rng(4).normal(1.0, 2.0, N_ROWS)


def bound_of_regression(proposed, current):
    """On the differences of rows."""
    return 8.0 * np.linalg.norm(proposed - current)


@pytest.fixture(scope="module")
def normal_mean():
    return normal_of(Y[:20], spread=10.0, sigma=2.0)


ORDERS = [pytest.param("in any order", marks=pytest.mark.exhaustive), "by time"]


@pytest.fixture(scope="module", params=ORDERS)
def regression(request):
    data = rows_of_regression(N_ROWS, by_time=request.param == "by time")
    model = logistic(data)
    sources = {name: Recorded(array) for name, array in data.items()}
    return data, model, sources, built(model, data=sources)


class TestPosterior:
    def test_of_a_normal_mean(self, normal_mean):
        step = built(normal_mean, data={"y": Y})
        idata = sample(step, normal_mean, draws=2_000, tune=200, chains=2)
        assert_moments(idata.posterior["mu"], *mean_of(normal_of(Y)), at_least=500)
        assert (idata.sample_stats["n_rows_used"] == 0).all()  # the expansion is exact
        assert idata.sample_stats.attrs["data"] == "y"

    @pytest.mark.exhaustive
    def test_is_that_of_the_same_rows_in_memory(self, regression):
        data, model, _, step = regression
        whole = logistic(data, N_ROWS)
        other = built(whole, test="exact")
        gap = step.target.anchor.point - other.target.anchor.point
        assert (abs(np.linalg.solve(other.target.anchor.root, gap)) < 0.05).all()
        np.testing.assert_allclose(
            step.target.anchor.hessian, other.target.anchor.hessian, rtol=1e-3, atol=1.0
        )
        run = {"draws": 2_000, "tune": 200, "chains": 2}
        runs = sample(step, model, **run), sample(other, whole, **run)
        assert_alike(*runs, ("slopes", "effects"), 0.12, 0.12)


class TestPasses:
    def test_a_few_and_said(self, regression):
        data, model, _, _ = regression
        sources = {name: Recorded(array) for name, array in data.items()}
        step = built(model, data=sources)
        n_passes = sources["y"].n_read // N_ROWS
        assert 4 <= n_passes <= 15
        n_bytes = step.target.source.n_bytes
        assert f"{n_bytes / 1e9:.2g} GB), in {n_passes} passes over all" in step.explain()
        for source in sources.values():
            assert n_passes * N_ROWS <= source.n_read < (n_passes + 1) * N_ROWS

    def test_chains_read_no_sources(self, regression):
        _, model, sources, step = regression
        before = sources["x"].n_read
        sample(step, model, draws=100, tune=100)
        assert sources["x"].n_read == before

    def test_the_store_has_every_row_once_with_its_number(self, regression):
        data, _, _, step = regression
        (numbers,) = step.target.sampling.numbers.window(0, N_ROWS)
        assert np.array_equal(np.sort(numbers), np.arange(N_ROWS))
        stored = step.target.source.window(0, N_ROWS)
        x = next(array for array in stored if array.shape == data["x"].shape)
        np.testing.assert_array_equal(x, data["x"][numbers])

    def test_the_store_is_removed_with_the_step_method(self, regression, tmp_path, monkeypatch):
        data, model, _, _ = regression
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        step = built(model, data=data)
        assert list(tmp_path.iterdir())
        step.target.source.close()
        step.target.sampling.numbers.close()
        assert not list(tmp_path.iterdir())


class TestRuns:
    def test_steps_travel_to_new_processes(self, regression):
        step = regression[-1]
        copy = pickle.loads(cloudpickle.dumps(step))
        assert_same_moves([step, copy], regression[1].initial_point())

    def test_compiled_transitions_are_those_of_python(self, regression):
        _, model, _, step = regression
        run = {"draws": 2_000, "tune": 20, "chains": 1}
        assert not step.python_needed
        compiled = sample(step, model, **run)
        step.python_needed = "a test"
        try:
            by_python = sample(step, model, **run)
        finally:
            step.python_needed = ""
        for name in ("slopes", "effects"):
            one, two = (idata.posterior[name].values for idata in (compiled, by_python))
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)
        used = [idata.sample_stats["n_rows_used"].values for idata in (compiled, by_python)]
        np.testing.assert_array_equal(*used)

    @pytest.mark.parametrize("tuning", [True, False])
    def test_state_goes_round(self, regression, tuning):
        _, model, _, step = regression
        step.set_rng(np.random.default_rng(8).spawn(2)[1])
        point = model.initial_point()
        walk(step, point, 20)
        if not tuning:
            step.stop_tuning()
            walk(step, point, 20)
        assert_goes_on(step, point)


def test_memory_does_not_grow_with_the_rows(normal_mean, monkeypatch):
    monkeypatch.setattr(stored, "_BYTES_OF_BUCKET", 2**20)
    peaks = []
    for n_rows in (100_000, 250_000):
        rows = _Generated(n_rows)
        tracemalloc.start()
        built(normal_mean, data={"y": rows})
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


class _Generated(Recorded):
    """Rows that are made when they are read."""

    def __init__(self, n_rows):
        super().__init__(np.zeros(1))
        self.n_rows = n_rows

    def read(self, start, stop):
        return np.sin(np.arange(start, stop, dtype=float) ** 1.5)


class TestSettings:
    """Whatever is possible with rows in memory."""

    @pytest.mark.parametrize(
        ("make", "settings"),
        [
            (AusterityMH, {"proposal": LangevinProposal(batch_size=500)}),
            (AusterityMH, {"blocked": False}),
            (FireflyMH, {}),
            (AusterityMH, {"epsilon": 0.0}),
            (AusterityMH, {"control_variates": None, "max_error": 0.02}),
            (AusterityMH, {"test": HoeffdingTest(bound_of_regression, error_prob=0.05)}),
            (FireflyMH, {"blocked": False}),
        ],
    )
    @pytest.mark.few(
        "in any order-AusterityMH-settings0",
        "in any order-AusterityMH-settings1",
        "by time-FireflyMH-settings2",
    )
    def test_the_posterior_is_that_of_all_rows(self, regression, make, settings):
        data, model, _, step = regression
        other = built(model, make, data=data, **settings)
        anchor = step.target.anchor
        start = anchor.point[:2]
        initvals = {"slopes": start, "effects": anchor.point[2:]}
        idata = sample(other, model, draws=1_500, tune=300, initvals=initvals)
        sd = np.linalg.norm(anchor.root, axis=1)[:2]
        slopes = idata.posterior["slopes"].values[0]
        assert (abs(slopes.mean(axis=0) - start) < 1.0 * sd).all()
        assert (abs(np.log(slopes.std(axis=0) / sd)) < 0.7).all()

    @pytest.mark.parametrize("settings", [{}, {"blocked": False}])
    def test_what_rows_depend_on_is_not_left_to_step_methods_on_the_example(
        self, regression, settings
    ):
        data, model, _, _ = regression
        with pytest.raises(SettingError, match="would be moved on the rows of the example"):
            built(model, data=data, vars=["slopes"], **settings)

    def test_a_run_that_goes_on(self, regression):
        data, model, _, step = regression
        idata = sample(step, model, draws=60, tune=20)
        other = built(model, data=data, resume=idata)
        last = idata.posterior["slopes"].values[:, -1]
        other.set_rng(np.random.default_rng(1))
        assert abs(other._start()[:2] - last).max(axis=1).min() < 1e-12

    def test_rows_without_derivatives(self):
        with pm.Model() as model:
            pm.Laplace("y", pm.Normal("mean"), 1.0, observed=Y[:20])
        step = built(model, data={"y": Y[:2_000]})
        idata = sample(step, model, draws=200, tune=200)
        gap = idata.posterior["mean"].values.mean() - np.median(Y[:2_000])
        assert abs(gap) < 0.2


class TestRowsThatAreGone:
    def test_are_not_needed_after_set_up(self, tmp_path):
        data = rows_of_regression(N_ROWS)
        paths = npy(tmp_path, data)
        model = logistic(data)
        step = built(model, data=paths)
        for path in paths.values():
            path.unlink()
        assert sample(step, model, draws=200, tune=50).posterior.sizes["draw"] == 200


class TestGroups:
    """GroupedMH(data=...): rows are stored by the levels of the largest factor."""

    N_LEVELS = 300

    @pytest.fixture(scope="class")
    @staticmethod
    def data():
        rng = np.random.default_rng(7)
        school = np.sort(rng.integers(0, TestGroups.N_LEVELS, 30_000)).astype(np.int32)
        year = rng.integers(0, 5, 30_000).astype(np.int8)
        x = rng.normal(size=30_000)
        effects = rng.normal(0.5, 0.7, TestGroups.N_LEVELS)
        eta = effects[school] + np.linspace(-0.3, 0.3, 5)[year] - 0.4 * x
        return {"school": school, "year": year, "x": x, "y": rng.poisson(np.exp(eta))}

    @staticmethod
    def model(data, n_rows):
        with pm.Model() as model:
            mean, scale = pm.Normal("mean"), pm.HalfNormal("scale")
            effects = pm.Normal("effects", mean, scale, shape=TestGroups.N_LEVELS)
            years = pm.Normal("years", 0.0, 0.3, shape=5)
            slope = pm.Normal("slope")
            rows = {name: pm.Data(name, data[name][:n_rows]) for name in ("school", "year", "x")}
            eta = effects[rows["school"]] + years[rows["year"]] + slope * rows["x"]
            pm.Poisson("y", pm.math.exp(eta), observed=data["y"][:n_rows])
        return model

    def test_posterior_is_that_of_the_same_rows_in_memory(self, data):
        few, whole = self.model(data, 50), self.model(data, 30_000)
        run = {"draws": 600, "tune": 300, "chains": 2}
        step, other = built(few, GroupedMH, data=data), built(whole, GroupedMH)
        assert not step.target.reads_all
        np.testing.assert_allclose(
            step.target.sweep.posterior.anchor, other.target.sweep.posterior.anchor, atol=0.02
        )
        one, two = sample(step, few, **run), sample(other, whole, **run)
        assert_alike(one, two, ("mean", "scale", "slope", "effects"), 0.35, 0.35)
        assert one.sample_stats["n_rows_used"].mean() < 2 * two.sample_stats["n_rows_used"].mean()

    def test_rows_are_stored_by_level_with_their_numbers(self, data):
        order = np.random.default_rng(3).permutation(30_000)
        shuffled = {name: array[order] for name, array in data.items()}
        step = built(self.model(shuffled, 50), GroupedMH, data=shuffled)
        (numbers,) = step.target.numbers.window(0, 30_000)
        assert np.array_equal(np.sort(numbers), np.arange(30_000))
        assert (np.diff(shuffled["school"][numbers]) >= 0).all()
        stored = step.target.source.window(0, 30_000)
        assert any(np.array_equal(array, shuffled["x"][numbers]) for array in stored)

    def test_is_what_austerity_mh_is(self, data):
        assert isinstance(built(self.model(data, 50), data=data, test="exact"), GroupedMH)

    @pytest.mark.exhaustive
    def test_runs_are_the_same_again_and_on_several_cores(self, data):
        model, run = self.model(data, 50), {"draws": 30, "tune": 30, "chains": 2}
        step, again = (built(model, GroupedMH, data=data) for _ in range(2))
        first = sample(step, model, **run)
        assert_same_draws(first, sample(step, model, cores=2, **run))
        assert_same_draws(first, sample(again, model, **run))
