"""What PyMC expects of every step method, and the statistics that ours record."""

import pickle

import arviz as az
import cloudpickle
import numpy as np
import pytest
from pymc.sampling.mcmc import assign_step_methods

from tests.running import START_METHODS, assert_same_draws, chain_of, draws_of, sample, walk
from tests.step_methods.cases import CASES, built

STATISTICS = {
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
    "test_epsilon",
}
"""Of all step methods. Names are public."""
STATISTICS_OF_ONE = {
    "AusterityMH": {"scaling"},
    "FireflyMH": {"scaling", "n_bright"},
    "GroupedMH": {"scaling"}
    | {
        f"{what}_{block}"
        for what in ("accepted", "n_rows")
        for block in ("untouched", "a", "common", "joint")
    },
    "AusterityGibbs": set(),
}


@pytest.fixture(params=CASES)
def case(request):
    return request.param


@pytest.mark.few("normal_regression-paper")
def test_runs_are_reproducible_and_chains_dispersed(case):
    model, step = built(case)
    first, again, other = (sample(step, model, random_seed=seed) for seed in (3, 3, 4))
    assert_same_draws(first, again)
    draws, others = draws_of(first), draws_of(other)
    assert any(not np.array_equal(draws[name], others[name]) for name in draws)
    apart = [np.ptp(values[:, 0], axis=0) > 0 for values in draws.values()]
    assert any(each.any() for each in apart)
    if not model.discrete_value_vars:
        assert all(each.all() for each in apart)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.few("groups-paper")
def test_parallel_chains_are_the_sequential_ones(case):
    model, step = built(case)
    context = CASES[case].context if CASES[case].context in START_METHODS else START_METHODS[0]
    sequential = sample(step, model)
    assert_same_draws(sequential, sample(step, model, cores=2, mp_ctx=context))


@pytest.mark.parametrize("module", [pickle, cloudpickle])
@pytest.mark.few(
    "normal_regression-paper-pickle",
    "groups-defaults-cloudpickle",
    "exact-pickle",
    "exact-cloudpickle",
    "levels-pickle",
    "reversible-jump-pickle",
    "gibbs-random-pickle",
)
def test_a_pickle_continues_where_the_original_was(case, module):
    model, step = built(case)
    point = model.initial_point()
    step.set_rng(np.random.default_rng(8))
    walk(step, point, 30)
    copy = module.loads(module.dumps(step))
    np.testing.assert_equal(chain_of(step, point, 80), chain_of(copy, point, 80))


@pytest.mark.few("normal_regression-defaults", "groups-defaults", "firefly")
def test_the_sampling_state_continues_where_it_was_taken(case):
    model, step = built(case)
    point = model.initial_point()
    step.set_rng(np.random.default_rng(8))
    walk(step, point, 75)
    state = pickle.loads(pickle.dumps(step.sampling_state))
    first = walk(step, point, 80)
    assert len(np.unique(first, axis=0)) > 5
    step.stop_tuning()
    walk(step, point, 5)
    step.sampling_state = state
    assert step.tune
    np.testing.assert_array_equal(walk(step, point, 80), first)


@pytest.mark.few(
    "normal_mean-paper",
    "normal_regression-paper",
    "switch_point-paper",
    "groups-paper",
    "normal_regression-defaults",
    "groups-defaults",
    "exact",
    "firefly",
    "levels",
    "max_error",
    "stiefel",
    "reversible-jump",
    "gibbs-random",
)
def test_statistics(case):
    model, step = built(case)
    stats = sample(step, model)["sample_stats"]
    declared = step.stats_dtypes_shapes
    assert (
        set(stats.data_vars) == STATISTICS | STATISTICS_OF_ONE[type(step).__name__] == set(declared)
    )
    for name, (dtype, _) in declared.items():
        assert stats[name].shape == (2, 60)
        assert stats[name].dtype == dtype, name
    assert stats.attrs["sampler"] == type(step).__name__
    used, n_steps = stats["n_rows_used"].values, stats.attrs["steps_per_draw"]
    n_rows, epsilon = stats.attrs["n_rows"], stats["test_epsilon"].values
    np.testing.assert_allclose(stats["data_fraction"].values, used / (n_steps * n_rows))
    np.testing.assert_array_equal(stats["used_all_rows"].values, used == n_steps * n_rows)
    errors = stats["decision_error"].values
    assert ((errors >= 0) & ((errors < epsilon) | (errors == 0))).all()
    assert (errors[used == n_steps * n_rows] == 0).all()
    accepted = stats["accepted"].values
    assert ((accepted >= 0) & (accepted <= 1)).all() and accepted.any()
    n_audited, n_wrong = stats["n_audited"].values, stats["n_wrong"].values
    np.testing.assert_array_equal(stats["audited"].values, n_audited > 0)
    np.testing.assert_array_equal(stats["audit_agrees"].values, n_wrong == 0)
    assert (n_wrong <= n_audited).all()


@pytest.mark.few("normal_regression-paper")
def test_runs_can_be_saved_and_loaded(case, tmp_path):
    model, step = built(case)
    idata = sample(step, model, draws=400, tune=200)  # long enough for all to have moved
    path = tmp_path / "draws.nc"
    idata.to_netcdf(path)
    loaded = az.from_netcdf(path)
    kept, stored = (x["sample_stats"] for x in (idata, loaded))
    for name in kept.data_vars:
        np.testing.assert_array_equal(stored[name].values, kept[name].values)
    for name, value in kept.attrs.items():  # the same from disk
        np.testing.assert_array_equal(stored.attrs[name], value, err_msg=name)
    assert len(az.summary(loaded)) == sum(x[0, 0].size for x in draws_of(idata).values())


@pytest.mark.few(
    "normal_regression-defaults", "groups-defaults", "exact", "gibbs-random", "reversible-jump"
)
def test_never_chosen_without_being_asked_for(case):
    model, step = built(case)
    _, chosen = assign_step_methods(model)
    assert type(step) not in chosen
