"""What PyMC expects of every step method."""

import pickle

import cloudpickle
import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH, RandomWalkProposal, StaleDataError
from tests.step_methods.models import (
    changing_data,
    groups,
    normal_mean,
    normal_regression,
    switch_point,
)

QUIET = {"progressbar": False, "compute_convergence_checks": False, "quiet": True}

PAPER = {"control_variates": None, "batch_size": 100}
CASES = [
    (normal_mean, "-paper"),
    (normal_regression, "-paper"),
    (switch_point, "-paper"),
    (groups, "-paper"),
    (normal_regression, "-defaults"),
    (groups, "-defaults"),
]


def draws(idata):
    return {name: values.values for name, values in idata.posterior.items()}


def assert_same_draws(first, second):
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name])


def one_walk(step, point, n_steps):
    points = []
    for _ in range(n_steps):
        point, _ = step.step(point)
        points.append(np.concatenate([np.ravel(value) for value in point.values()]))
    return np.array(points)


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case[0].__name__ + case[1])
def built(request):
    build, settings = request.param
    model = build()
    with model:
        return model, AusterityMH(**(PAPER if settings == "-paper" else {}))


def sample(step, model, **kwargs):
    settings = {"draws": 60, "tune": 60, "chains": 2, "cores": 1, "random_seed": 3}
    with model:
        return pm.sample(step=step, model=model, **(settings | QUIET | kwargs))


def test_reproducible_reusable_and_dispersed(built):
    model, step = built
    first, again, other = (draws(sample(step, model, random_seed=s)) for s in (3, 3, 4))
    assert_same_draws(first, again)
    assert any(not np.array_equal(first[name], other[name]) for name in first)
    assert all(np.ptp(values[:, 0], axis=0).size for values in first.values())
    assert any((np.ptp(values[:, 0], axis=0) > 0).all() for values in first.values())


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_parallel_chains_are_the_sequential_ones(built, context):
    model, step = built
    sequential = draws(sample(step, model))
    parallel = draws(sample(step, model, cores=2, mp_ctx=context))
    assert_same_draws(sequential, parallel)


@pytest.mark.parametrize("module", [pickle, cloudpickle])
def test_pickle_goes_on_where_the_original_was(built, module):
    model, step = built
    step.set_rng(np.random.default_rng(8))
    point = model.initial_point()
    one_walk(step, point, 30)
    copy = module.loads(module.dumps(step))
    np.testing.assert_array_equal(one_walk(step, point, 80), one_walk(copy, point, 80))


def test_pickles_hold_neither_rows_nor_model():
    sizes = []
    for n_rows in (2_000, 20_000):
        with normal_regression(n_rows):
            sizes.append(len(pickle.dumps(AusterityMH())))
    assert sizes[1] < sizes[0] + 10_000


def test_sampling_state_round_trip(built):
    model, step = built
    point = model.initial_point()
    step.set_rng(np.random.default_rng(8))
    one_walk(step, point, 75)
    state = pickle.loads(pickle.dumps(step.sampling_state))
    first = one_walk(step, point, 80)
    step.stop_tuning()
    one_walk(step, point, 5)
    step.sampling_state = state
    assert step.tune
    np.testing.assert_array_equal(one_walk(step, point, 80), first)


def test_state_of_other_settings_is_refused():
    model = normal_mean()
    with model:
        a, b = AusterityMH(epsilon=0.05), AusterityMH(epsilon=0.01)
    with pytest.raises(ValueError, match="epsilon"):
        b.sampling_state = a.sampling_state


def test_every_chain_tunes_anew(built):
    model, step = built
    for _ in range(2):
        idata = sample(step, model, chains=2, draws=20, tune=120, discard_tuned_samples=False)
        warmup = idata["warmup_sample_stats"]["scaling"].values
        after = idata["sample_stats"]["scaling"].values
        if isinstance(step.proposal, RandomWalkProposal):
            assert len(np.unique(warmup[0])) > 50
            assert (np.ptp(after, axis=1) == 0).all()
        else:
            assert len(np.unique(warmup)) > 15
            assert len(np.unique(after)) <= 4  # two components in each of two chains


def test_no_tuning_if_none_is_asked_for(built):
    model, step = built
    idata = sample(step, model, tune=0, draws=40)
    if isinstance(step.proposal, RandomWalkProposal):
        assert np.ptp(idata["sample_stats"]["scaling"].values) == 0


def test_statistics(built):
    model, step = built
    idata = sample(step, model)
    stats = idata["sample_stats"]
    paper = step.anchor is None
    assert set(stats.data_vars) == {
        "accepted",
        "n_rows_used",
        "data_fraction",
        "n_looks",
        "decision_error",
        "standardized_mean",
        "used_all_rows",
        "audited",
        "audit_agrees",
        "n_audited",
        "n_wrong",
        "scaling",
        "test_epsilon",
    }
    assert all(stats[name].shape == (2, 60) for name in stats.data_vars)
    n_rows = stats.attrs["n_rows"]
    assert n_rows == 2_000
    assert stats.attrs["epsilon"] == 0.05
    assert np.isnan(stats.attrs["max_error"]) and np.ndim(stats.attrs["max_error"]) == 0
    assert stats.attrs["sampler"] == "AusterityMH"
    assert not paper or stats.attrs["batch_size"] == 100
    assert stats.attrs["subsampled"] == "y"
    used = stats["n_rows_used"].values
    np.testing.assert_array_equal(stats["data_fraction"].values, used / n_rows)
    np.testing.assert_array_equal(stats["used_all_rows"].values, used == n_rows)
    looks = stats["n_looks"].values
    decided = looks > 0
    if paper:
        np.testing.assert_array_equal(used[decided], np.minimum(looks[decided] * 100, n_rows))
    else:
        first = sum(stats.attrs["stratum_first_counts"])
        assert (used[looks == 1] == first).all()
        assert (used[looks > 1] > first).all()
    errors = stats["decision_error"].values
    assert ((errors >= 0) & (errors < 0.05)).all()
    assert (errors[used == n_rows] == 0).all()


def test_saved_and_loaded(built, tmp_path):
    import arviz as az

    model, step = built
    idata = sample(step, model, draws=400)  # long enough for every unknown to have moved
    path = tmp_path / "draws.nc"
    idata.to_netcdf(path)
    loaded = az.from_netcdf(path)
    for name in idata["sample_stats"].data_vars:
        np.testing.assert_array_equal(
            loaded["sample_stats"][name].values, idata["sample_stats"][name].values
        )
    for name in ("n_rows", "epsilon", "max_error", "audit", "normality"):  # the same from disk
        kept, stored = (x["sample_stats"].attrs[name] for x in (idata, loaded))
        assert kept == stored or np.isnan([kept, stored]).all()
    assert loaded["sample_stats"].attrs["proposal"] == type(step.proposal).__name__
    assert len(az.summary(loaded)) == sum(values[0, 0].size for values in draws(idata).values())
    assert "mu" in az.ess(loaded) or len(az.ess(loaded)) > 0


def test_beside_other_step_methods():
    model = groups()
    with model:
        steps = [AusterityMH(vars=["effect"], **PAPER), pm.Slice([model["spread"]])]
        idata = pm.sample(
            step=steps, draws=300, tune=300, chains=2, cores=1, random_seed=1, **QUIET
        )
        with_nuts = pm.sample(
            step=AusterityMH(vars=[model["effect"]], **PAPER),
            draws=100,
            tune=100,
            chains=2,
            cores=1,
            random_seed=1,
            **QUIET,
        )
    for result in (idata, with_nuts):
        assert result["sample_stats"].attrs["n_rows"] == 2_000
        effect = result.posterior["effect"].values.mean(axis=(0, 1))
        np.testing.assert_allclose(effect, np.linspace(-1, 1, 5), atol=0.35)
    assert "tree_depth" in with_nuts["sample_stats"]


@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_variables_of_other_step_methods_reach_the_workers(context):
    model = groups()
    with model:
        steps = [AusterityMH(vars=["effect"], **PAPER), pm.Metropolis([model["spread"]])]
        settings = {"draws": 40, "tune": 20, "chains": 2, "random_seed": 1} | QUIET
        sequential = pm.sample(step=steps, cores=1, **settings)
        parallel = pm.sample(step=steps, cores=2, mp_ctx=context, **settings)
    assert_same_draws(draws(sequential), draws(parallel))


def test_one_step_method_for_each_variable_on_shared_rows():
    model = normal_regression()
    with model:
        compound = AusterityMH(blocked=False, **PAPER)
    assert [step.var_names for step in compound.methods] == [("beta",), ("sigma_log__",)]
    sources = {id(step.target.source) for step in compound.methods}
    assert len(sources) == 1
    idata = sample(compound, model, draws=200, tune=300)
    assert abs(float(idata.posterior["sigma"].mean()) - 1.0) < 0.15
    assert idata["sample_stats"]["accepted"].shape[-1] == 2


def test_chains_start_where_the_user_says():
    model = normal_mean()
    with model:
        step = AusterityMH(proposal=RandomWalkProposal([1e-16], scaling=1e-3), tune=False)
        start = pm.sample(
            step=step,
            initvals=[{"mu": 0.25}, {"mu": 0.75}],
            draws=2,
            tune=0,
            chains=2,
            cores=1,
            random_seed=1,
            **QUIET,
        )
    np.testing.assert_allclose(start.posterior["mu"].values[:, 0], [0.25, 0.75])


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
        with pm.Model():
            y = np.random.default_rng(seed).normal(size=1_000)
            pm.Normal("y", pm.Normal("mu"), 1.0, observed=y)
            return AusterityMH(**PAPER)

    state = step_on(1).sampling_state
    step_on(1).sampling_state = state
    with pytest.raises(ValueError, match="'data_fingerprint' has different values"):
        step_on(2).sampling_state = state


def test_interrupted_runs_keep_their_draws():
    model = normal_mean()
    with model:
        step = AusterityMH(**PAPER)

    def interrupt(trace, draw):
        if draw.draw_idx == 150:
            raise KeyboardInterrupt

    idata = sample(step, model, chains=1, draws=500, tune=100, callback=interrupt)
    assert 0 < idata.posterior["mu"].shape[1] <= 51
    assert np.isfinite(idata.posterior["mu"].values).all()


def test_progress_columns():
    columns, first = AusterityMH._progressbar_config(n_chains=3)
    assert [column.get_table_column().header for column in columns] == ["Acceptance", "Data read"]
    assert all(len(values) == 3 for values in first.values())
    (update,) = AusterityMH._make_progressbar_update_functions()
    update({"accepted": 1.0, "data_fraction": 0.2})
    shown = update({"accepted": 0.0, "data_fraction": 0.4})
    assert shown == pytest.approx({"acceptance": 0.5, "data": 0.3})


def test_never_chosen_without_being_asked_for():
    from pymc.sampling.mcmc import assign_step_methods

    model = normal_mean()
    _, chosen = assign_step_methods(model)
    assert AusterityMH not in chosen
