"""AusterityMH(data=...): the model on a few rows, and all rows where they are."""

import pickle
import tracemalloc

import cloudpickle
import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH, LangevinProposal
from pymc_austerity.errors import SettingError
from pymc_austerity.setup import exact_from_sources
from tests.running import assert_same_draws, sample
from tests.setup.sources import Recorded, logistic, rows_of_regression

N_ROWS = 70_000
Y = np.random.default_rng(4).normal(1.0, 2.0, N_ROWS)


def built(model, **settings):
    with model:
        return AusterityMH(**settings)


def moments(idata, name):
    values = idata.posterior[name]
    return values.mean(("chain", "draw")).values, values.std(("chain", "draw")).values


@pytest.fixture(scope="module", autouse=True)
def pools_of_a_few_thousand_draws():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(exact_from_sources, "_MOST_DECISIONS", exact_from_sources._DECISIONS)
        yield


@pytest.fixture(scope="module")
def normal_mean():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mean", 0.0, 10.0), 2.0, observed=Y[:20])
    return model


@pytest.fixture(scope="module", params=["in any order", "by time"])
def regression(request):
    data = rows_of_regression(N_ROWS, by_time=request.param == "by time")
    model = logistic(data)
    sources = {name: Recorded(array) for name, array in data.items()}
    return data, model, sources, built(model, data=sources)


class TestPosterior:
    def test_of_a_normal_mean(self, normal_mean):
        step = built(normal_mean, data={"y": Y})
        idata = sample(step, normal_mean, draws=2_000, tune=200, chains=2)
        precision = N_ROWS / 4.0 + 0.01
        mean, sd = Y.sum() / 4.0 / precision, precision**-0.5
        found = moments(idata, "mean")
        assert abs(found[0] - mean) < 0.1 * sd
        assert abs(found[1] / sd - 1.0) < 0.1
        assert (idata.sample_stats["n_rows_used"] == 0).all()  # the expansion is exact
        assert idata.sample_stats.attrs["data"] == "y"

    @pytest.mark.few("by time")
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
        for name in ("slopes", "effects"):
            (one, sd), (two, expected) = (moments(idata, name) for idata in runs)
            assert (abs(one - two) < 0.12 * expected).all()
            assert (abs(sd / expected - 1.0) < 0.12).all()


class TestPasses:
    def test_a_few_and_said(self, regression):
        data, model, _, _ = regression
        sources = {name: Recorded(array) for name, array in data.items()}
        step = built(model, data=sources)
        n_passes = step.target.source.rows.n_passes
        assert 5 <= n_passes <= 15
        assert f"drawn beforehand, in {n_passes} passes over all" in step.explain()
        for source in sources.values():
            assert n_passes * N_ROWS <= source.n_read < (n_passes + 1) * N_ROWS

    def test_chains_read_no_sources(self, regression):
        _, model, sources, step = regression
        before = sources["x"].n_read
        sample(step, model, draws=100, tune=100)
        assert sources["x"].n_read == before

    def test_the_same_on_any_number_of_threads(self, regression, monkeypatch):
        data, model, _, step = regression
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        other = built(model, data=data)
        for name in ("point", "gradient", "hessian"):
            assert np.array_equal(
                getattr(step.target.anchor, name), getattr(other.target.anchor, name)
            )
        one, two = (s.target.sampling.pool.stored for s in (step, other))
        assert np.array_equal(one.numbers.window(0, 5_000), two.numbers.window(0, 5_000))


class TestRuns:
    def test_are_the_same_again_and_on_several_cores(self, regression):
        _, model, _, step = regression
        run = {"draws": 50, "tune": 50, "chains": 3}
        first = sample(step, model, **run)
        assert_same_draws(first, sample(step, model, **run))
        assert_same_draws(first, sample(step, model, cores=2, **run))
        assert_same_draws(first, sample(built(model, data=regression[0]), model, **run))

    def test_steps_travel_to_new_processes(self, regression):
        step = regression[-1]
        copy = pickle.loads(cloudpickle.dumps(step))
        point = {name: value + 0.01 for name, value in regression[1].initial_point().items()}
        following = []
        for own in (step, copy):
            own.set_rng(np.random.default_rng(2))
            following.append(own.step(point)[0])
        for name, value in following[0].items():
            np.testing.assert_array_equal(following[1][name], value)

    def test_compiled_transitions_are_those_of_python(self, regression):
        _, model, _, step = regression
        run = {"draws": 8_000, "tune": 20, "chains": 1}  # long enough for a refill
        assert not step.python_needed
        compiled = sample(step, model, **run)
        assert step.decider.draws.n_refills > 0
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
        for _ in range(20):
            point, _ = step.step(point)
        if not tuning:
            step.stop_tuning()
            for _ in range(20):
                point, _ = step.step(point)
        state, rng = step.sampling_state, step.rng.bit_generator.state
        assert state.decision_state.draws.part == 2
        following = [step.step(point)[0] for _ in range(5)]
        step.sampling_state = state
        step.rng.bit_generator.state = rng
        again = [step.step(point)[0] for _ in range(5)]
        for one, other in zip(following, again, strict=True):
            np.testing.assert_array_equal(one["slopes"], other["slopes"])


def test_memory_does_not_grow_with_the_rows(normal_mean):
    peaks = []
    for n_rows in (200_000, 500_000):
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


class TestRefused:
    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"epsilon": 0.0}, "epsilon=0.0 is not possible with data="),
            ({"control_variates": None}, "control_variates=None is not possible with data="),
            ({"test": None, "proposal": LangevinProposal()}, "test=None is not possible with"),
            ({"proposal": LangevinProposal()}, "reads rows for its gradients"),
        ],
    )
    def test_what_reads_rows_in_other_ways(self, normal_mean, settings, words):
        with pytest.raises(SettingError, match=words):
            built(normal_mean, data={"y": Y}, **settings)

    def test_a_run_that_goes_on(self, normal_mean):
        """It would use the rows that were drawn for the earlier one again."""
        step = built(normal_mean, data={"y": Y})
        idata = sample(step, normal_mean, draws=60, tune=20)
        with pytest.raises(SettingError, match="resume= is not possible with data="):
            built(normal_mean, data={"y": Y}, resume=idata)

    @pytest.mark.parametrize("settings", [{"vars": ["slopes"]}, {"blocked": False}])
    def test_several_step_methods(self, regression, settings):
        data, model, _, _ = regression
        with pytest.raises(SettingError, match="one step method for all that rows depend on"):
            built(model, data=data, **settings)

    def test_rows_without_derivatives(self):
        with pm.Model() as model:
            pm.Laplace("y", pm.Normal("mean"), 1.0, observed=Y[:20])
        with pytest.raises(SettingError, match="data= is not possible because"):
            built(model, data={"y": Y[:5_000]})


class TestRowsThatAreGone:
    @pytest.fixture
    def step_and_path(self, tmp_path):
        data = rows_of_regression(N_ROWS)
        for name, array in data.items():
            np.save(tmp_path / f"{name}.npy", array)
        paths = {name: tmp_path / f"{name}.npy" for name in data}
        model = logistic(data)
        return model, built(model, data=paths), paths["x"]

    @pytest.mark.parametrize("cores", [1, 2])
    def test_the_draws_so_far_are_kept(self, step_and_path, caplog, cores):
        model, step, path = step_and_path
        path.unlink()
        with caplog.at_level("ERROR", logger="pymc.austerity"), model:
            # the pool lasts for some thousand draws: then rows have to be read
            idata = pm.sample(
                100_000,
                tune=100,
                step=step,
                chains=cores,
                cores=cores,
                random_seed=1,
                progressbar=False,
                compute_convergence_checks=False,
            )
        assert 1_000 < idata.posterior.sizes["draw"] < 100_000
        if cores == 1:  # the logs of workers are their own
            assert "with the draws so far, because data['x'] cannot be read" in caplog.text
