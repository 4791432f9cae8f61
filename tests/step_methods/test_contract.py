"""AusterityMH in PyMC: tuning, compound steps, starts, interrupts; the rest is conformance."""

import pickle

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH, RandomWalkProposal, StaleDataError
from pymc_austerity.step_methods.few_rows import FewRowsStep
from tests.running import START_METHODS, assert_same_draws, built, sample
from tests.step_methods import cases
from tests.step_methods.cases import METROPOLIS, PAPER
from tests.step_methods.models import (
    changing_data,
    groups,
    normal_mean,
    normal_regression,
)


@pytest.fixture(params=METROPOLIS)
def metropolis(request):
    """A model and its step method: in the paper's setting, or as it comes."""
    return cases.built(request.param)


def test_pickles_hold_neither_rows_nor_model():
    sizes = []
    for n_rows in (2_000, 20_000):
        sizes.append(len(pickle.dumps(built(normal_regression(n_rows), epsilon=0.05))))
    assert sizes[1] < sizes[0] + 10_000


def test_state_of_other_settings_is_refused():
    a, b = (built(normal_mean(), epsilon=epsilon) for epsilon in (0.05, 0.01))
    with pytest.raises(ValueError, match="epsilon"):
        b.sampling_state = a.sampling_state


@pytest.mark.few("normal_regression-defaults", "groups-defaults")
def test_every_chain_tunes_anew(metropolis):
    model, step = metropolis
    for _ in range(2):
        idata = sample(step, model, chains=2, draws=20, tune=240, discard_tuned_samples=False)
        warmup = idata["warmup_sample_stats"]["scaling"].values
        after = idata["sample_stats"]["scaling"].values
        if isinstance(step.proposal, RandomWalkProposal):
            assert len(np.unique(warmup[0])) > 50
            assert (np.ptp(after, axis=1) == 0).all()
        else:
            assert len(np.unique(warmup)) > 15
            assert len(np.unique(after)) <= 4  # two components in each of two chains


@pytest.mark.few("normal_regression-defaults", "groups-defaults")
def test_no_tuning_if_none_is_asked_for(metropolis):
    model, step = metropolis
    idata = sample(step, model, tune=0, draws=40)
    if isinstance(step.proposal, RandomWalkProposal):
        assert np.ptp(idata["sample_stats"]["scaling"].values) == 0


@pytest.mark.few("normal_regression-defaults", "groups-defaults")
def test_what_the_statistics_of_a_run_count(metropolis):
    model, step = metropolis
    stats = sample(step, model)["sample_stats"]
    paper = step.anchor is None
    n_rows = stats.attrs["n_rows"]
    assert n_rows == 2_000
    exact = step.settings.decides_exactly
    np.testing.assert_equal(stats.attrs["epsilon"], np.nan if exact else 0.05)
    assert np.isnan(stats.attrs["max_error"]) and np.ndim(stats.attrs["max_error"]) == 0
    assert not paper or stats.attrs["batch_size"] == 100
    assert stats.attrs["subsampled"] == "y"
    assert stats.attrs["proposal"] == type(step.proposal).__name__
    assert (stats["decision_error"].values < 0.05).all()
    used, looks = stats["n_rows_used"].values, stats["n_looks"].values
    decided = looks > 0
    if paper:
        np.testing.assert_array_equal(used[decided], np.minimum(looks[decided] * 100, n_rows))
    elif exact:
        assert set(looks.ravel()) <= {0, 1}
    else:
        first = sum(stats.attrs["stratum_first_counts"])
        assert (used[looks == 1] == first).all()
        assert (used[looks > 1] > first).all()


@pytest.mark.exhaustive
def test_beside_other_step_methods():
    model = groups()
    with model:
        steps = [AusterityMH(vars=["effect"], **PAPER), pm.Slice([model["spread"]])]
        alone = AusterityMH(vars=[model["effect"]], **PAPER)
    idata = sample(steps, model, draws=300, tune=300, random_seed=1)
    with_nuts = sample(alone, model, draws=100, tune=100, random_seed=1)
    for result in (idata, with_nuts):
        assert result["sample_stats"].attrs["n_rows"] == 2_000
        effect = result.posterior["effect"].values.mean(axis=(0, 1))
        np.testing.assert_allclose(effect, np.linspace(-1, 1, 5), atol=0.35)
    assert "tree_depth" in with_nuts["sample_stats"]


@pytest.mark.parametrize("context", START_METHODS)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.few(START_METHODS[0])
def test_variables_of_other_step_methods_reach_the_workers(context):
    model = groups()
    with model:
        steps = [AusterityMH(vars=["effect"], **PAPER), pm.Metropolis([model["spread"]])]
    sequential = sample(steps, model, draws=40, tune=20)
    parallel = sample(steps, model, draws=40, tune=20, cores=2, mp_ctx=context)
    assert_same_draws(sequential, parallel)


def test_one_step_method_for_each_variable_on_shared_rows():
    model = normal_regression()
    compound = built(model, blocked=False, **PAPER)
    assert isinstance(compound, AusterityMH)
    assert compound.explain().count("AusterityMH on y") == 2
    assert [step.var_names for step in compound.methods] == [("beta",), ("sigma_log__",)]
    sources = {id(step.target.source) for step in compound.methods}
    assert len(sources) == 1
    idata = sample(compound, model, draws=200, tune=300)
    assert abs(float(idata.posterior["sigma"].mean()) - 1.0) < 0.15
    assert idata["sample_stats"]["accepted"].shape[-1] == 2


def test_chains_start_where_the_user_says():
    model = normal_mean()
    step = built(model, proposal=RandomWalkProposal([1e-16], scaling=1e-3), tune=False)
    start = sample(step, model, initvals=[{"mu": 0.25}, {"mu": 0.75}], draws=2, tune=0)
    np.testing.assert_allclose(start.posterior["mu"].values[:, 0], [0.25, 0.75])


@pytest.mark.few("2")
@pytest.mark.parametrize("cores", [1, 2])
def test_data_that_were_set_anew_are_noticed(cores):
    model = changing_data()
    with model:
        step = AusterityMH(**PAPER)
        sample(step, model, draws=5, tune=5)
        pm.set_data({"x": np.ones(2_000)})
        with pytest.raises(StaleDataError, match=r"'x'.*construct a new AusterityMH"):
            sample(step, model, draws=5, tune=5, cores=cores, mp_ctx="spawn")
        AusterityMH(**PAPER)


def test_rows_changed_in_place_are_noticed():
    y = np.random.default_rng(1).normal(size=1_000)
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=pm.Data("data", y))
        step = AusterityMH(**PAPER)
        model["data"].get_value(borrow=True)[7] = 3.0
        with pytest.raises(StaleDataError, match=r"'data' was changed after"):
            sample(step, model, draws=5, tune=5)


def test_a_state_belongs_to_its_rows():
    def step_on(seed):
        return built(normal_mean(seed=seed), **PAPER)

    state = step_on(1).sampling_state
    step_on(1).sampling_state = state
    with pytest.raises(ValueError, match="'data_fingerprint' has different values"):
        step_on(2).sampling_state = state


def test_interrupted_runs_keep_their_draws():
    model = normal_mean()
    step = built(model, **PAPER)

    def interrupt(trace, draw):
        if draw.draw_idx == 150:
            raise KeyboardInterrupt

    idata = sample(step, model, chains=1, draws=500, tune=100, callback=interrupt)
    assert 0 < idata.posterior["mu"].shape[1] <= 51
    assert np.isfinite(idata.posterior["mu"].values).all()


def test_progress_columns():
    columns, first = FewRowsStep._progressbar_config(n_chains=3)
    assert [column.get_table_column().header for column in columns] == ["Acceptance", "Rows read"]
    assert all(len(values) == 3 for values in first.values())
    (update,) = FewRowsStep._make_progressbar_update_functions()
    update({"accepted": 1.0, "n_rows_used": 2})
    shown = update({"accepted": 0.0, "n_rows_used": 4})
    assert shown == pytest.approx({"acceptance": 0.5, "rows": 3.0})
