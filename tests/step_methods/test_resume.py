"""Going on with an earlier run, without tuning again."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

from pymc_austerity import AusterityMH, GroupedMH, SettingError, SettingTypeError, report
from pymc_austerity.proposals import GaussianApproximation
from pymc_austerity.setup.build import better_of
from pymc_austerity.setup.earlier_run import earlier_run
from pymc_austerity.step_methods import by_default
from pymc_austerity.step_methods.all_rows_nuts import AllRowsNUTS
from pymc_austerity.step_methods.few_rows import FewRowsStep
from pymc_austerity.step_methods.grouped_mh import GroupedStep
from tests.running import assert_alike, built, sample
from tests.step_methods.models import logistic, normal_mean, normal_regression


@pytest.fixture(scope="module")
def first():
    """A model, and a tuned run."""
    model = normal_regression(n_rows=20_000)
    return model, sample(built(model, epsilon=0.05), model, draws=200, tune=500)


@pytest.fixture(scope="module")
def second(first):
    """The step method that goes on."""
    model, earlier = first
    return built(model, epsilon=0.05, resume=earlier)


def test_it_goes_on_as_tuned(first, second):
    model, earlier = first
    later = sample(second, model, draws=300, tune=0)
    accepted, before = (float(run.sample_stats["accepted"].mean()) for run in (later, earlier))
    assert accepted > before - 0.1
    assert_alike(later, earlier, ("beta", "sigma"), 0.4, 0.7)


def test_chains_start_at_last_draws(first, second):
    (_, earlier), step = first, second
    last = earlier.posterior["beta"].isel(draw=-1).values
    starts = step.learnt.starts
    np.testing.assert_allclose(starts[:, :3], last)
    np.testing.assert_allclose(
        np.exp(starts[:, 3]), earlier.posterior["sigma"].isel(draw=-1).values
    )
    step.set_rng(1)
    assert any(np.array_equal(step._start(), start) for start in starts)


def test_every_chain_begins_with_the_same(first, second):
    (model, _), step = first, second
    step.reset_tuning()
    begun = step.proposal_state
    sample(step, model, draws=20, tune=30, chains=1)
    assert step.proposal_state is not begun
    step.reset_tuning()
    assert step.proposal_state is begun
    assert step.decider.state.n_draws == step.learnt.decision_state.n_draws


def test_moments_of_few_draws_do_not_replace_an_approximation_of_many_entries():
    model = logistic(20_000, np.linspace(-0.5, 0.5, 40), seed=6)
    earlier = sample(built(model, epsilon=0.05), model, draws=200, tune=500)
    later = sample(built(model, epsilon=0.05, resume=earlier), model, draws=200, tune=0)
    accepted = [float(run.sample_stats["accepted"].mean()) for run in (earlier, later)]
    assert accepted[1] > accepted[0] - 0.05


def test_moments_of_draws_replace_an_approximation_that_fits_worse():
    draws = np.random.default_rng(1).normal(size=(500, 3))
    wide = GaussianApproximation(np.zeros(3), 1.5 * np.eye(3))
    near = GaussianApproximation(np.zeros(3), np.eye(3))
    assert better_of(draws, near) is near
    np.testing.assert_array_equal(better_of(draws, wide).mean, draws.mean(axis=0))
    assert better_of(draws[:1], wide) is wide
    assert better_of(draws, None) is not None


@pytest.fixture(scope="module")
def groups():
    """A model with groups, and a tuned run."""
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(60), 6)
    with pm.Model() as model:
        tau = pm.HalfNormal("tau")
        effect = tau * pm.Normal("z", shape=60)
        y = rng.poisson(np.exp(rng.normal(0.5, 0.4, size=60))[group])
        pm.Poisson("y", pm.math.exp(pm.Normal("mu") + effect[group]), observed=y)
        step = AusterityMH()
    return model, sample(step, model, draws=200, tune=300)


@pytest.mark.exhaustive
def test_groups_go_on_too(groups):
    """From the last draws, in the coordinates of the sweep, with what 1,000 sweeps have learned."""
    model, earlier = groups
    step = built(model, resume=earlier)
    assert isinstance(step, GroupedMH)
    outer = np.array([step.target.coordinates.outer(start) for start in step.learnt.starts])
    last = earlier.posterior.isel(draw=-1)
    np.testing.assert_allclose(np.exp(outer[:, 0]), last["tau"])
    np.testing.assert_allclose(outer[:, 1:61], last["z"], atol=1e-12)
    np.testing.assert_allclose(outer[:, 61], last["mu"], atol=1e-12)
    begun = step.sweep_state
    assert begun is step.learnt.proposal_state
    assert repr(begun) != repr(step.target.sweep.init())
    later = sample(step, model, draws=300, tune=0)
    step.reset_tuning()
    assert step.sweep_state is begun
    accepted, before = (float(run.sample_stats["accepted"].mean()) for run in (later, earlier))
    assert accepted > before - 0.1
    assert_alike(later, earlier, ("mu", "tau"), 0.5, 0.7)


def test_few_levels_go_on_as_levels():
    """A new run would move everything at once."""
    rng, group = np.random.default_rng(3), np.repeat(np.arange(4), 100)
    with pm.Model() as model:
        effect = pm.Normal("effect", 0.0, pm.HalfNormal("tau"), shape=4)
        y = rng.poisson(np.exp(0.4 * rng.normal(size=4))[group])
        pm.Poisson("y", pm.math.exp(effect[group]), observed=y)
        assert type(AusterityMH()) is FewRowsStep
        earlier = sample(GroupedMH(), model, draws=20, tune=20)
        step = AusterityMH(resume=earlier)
    assert type(step) is GroupedStep
    assert step.learnt is not None


def test_as_many_transitions_are_in_a_draw_as_before(first):
    model, earlier = first
    before = earlier.sample_stats.attrs["steps_per_draw"]
    changed = earlier.copy()
    changed.sample_stats.attrs["steps_per_draw"] = 3
    assert built(model, epsilon=0.05, resume=changed).steps_per_draw == 3
    assert built(model, epsilon=0.05, resume=changed, steps_per_draw=2).steps_per_draw == 2
    earlier.sample_stats.attrs["steps_per_draw"] = before


def test_effects_that_sum_to_zero_go_on_as_levels_with_a_free_mean():
    rng, group = np.random.default_rng(3), np.repeat(np.arange(8), 40)
    with pm.Model() as model:
        effect = pm.ZeroSumNormal("effect", pm.HalfNormal("tau"), shape=8)
        y = rng.poisson(np.exp(0.4 * rng.normal(size=8))[group])
        pm.Poisson("y", pm.math.exp(pm.Normal("mu") + effect[group]), observed=y)
        earlier = sample(GroupedMH(), model, draws=20, tune=20)
        step = GroupedMH(resume=earlier)
    assert step.target.coordinates.absorbed
    outer = np.array([step.target.coordinates.outer(start) for start in step.learnt.starts])
    sizes = {v.name: np.size(model.initial_point()[v.name]) for v in step.vars}
    place = sum(sizes[name] for name in list(sizes)[: list(sizes).index("mu")])
    last = earlier.posterior.isel(draw=-1)
    np.testing.assert_allclose(outer[:, place], last["mu"], atol=1e-9)


def test_bounds_that_are_variables_come_from_the_run_too():
    """x = upper / 2 is 0 in unconstrained space, whatever the bound."""
    with pm.Model() as model:
        upper = pm.HalfNormal("upper", 3.0)
        x = pm.Uniform("x", 0.0, upper)
        pm.Normal("y", x, 1.0, observed=np.ones(1_000))
    values = np.linspace(1.0, 5.0, 20)[None]
    draws = {"upper": (("chain", "draw"), values), "x": (("chain", "draw"), values / 2.0)}
    run = xr.DataTree.from_dict({"posterior": xr.Dataset(draws)})
    found = earlier_run(run, *2 * [[model.rvs_to_values[x]]], model)
    np.testing.assert_allclose(found.points, 0.0, atol=1e-12)
    assert found.last.shape == (1, 1)


def test_other_runs_are_refused(first):
    model, earlier = first
    with normal_mean(), pytest.raises(SettingError, match="no draws of 'mu'"):
        AusterityMH(resume=earlier)
    with pytest.raises(SettingTypeError, match="resume of type dict"):  # before it has a model
        AusterityMH(resume={"beta": 1.0})
    with model, pytest.raises(SettingError, match="resume has no effect with tune=False"):
        AusterityMH(resume=earlier, tune=False)
    with pm.Model():
        beta = pm.Normal("beta", shape=2)
        pm.Normal("y", beta[0], 1.0, observed=np.zeros(1_000))
        with pytest.raises(SettingError, match=r"draws of shape \(3,\) of 'beta'"):
            AusterityMH(resume=earlier)


@pytest.fixture
def of_nuts():
    """Few rows, correlated and of unequal scales, and a run that the default makes with NUTS."""
    rng = np.random.default_rng(4)
    x = 100.0 + rng.normal(size=100)
    with pm.Model() as model:
        b = pm.Normal("b", 0.0, [100.0, 1.0], shape=2)
        pm.Normal("y", b[0] + b[1] * (x - 99.0), 0.01, observed=rng.normal(x, 0.01))
        step = AusterityMH()
    return model, sample(step, model, draws=200, tune=500)


@pytest.mark.choice
def test_runs_of_another_model_are_refused_before_nuts_is_compiled(of_nuts, monkeypatch):
    monkeypatch.setattr(by_default, "on_all_rows", None)
    with normal_mean(), pytest.raises(SettingError, match="no draws of 'mu'"):
        AusterityMH(resume=of_nuts[1])


@pytest.mark.choice
def test_nuts_goes_on_as_tuned(of_nuts):
    model, earlier = of_nuts
    step = built(model, resume=earlier)
    assert isinstance(step, AllRowsNUTS)
    assert "the earlier run is one of NUTS" in step.summary
    last = earlier.posterior["b"].isel(draw=-1).values
    np.testing.assert_allclose(step.learnt.own_last, last)
    later = sample(step, model, draws=400, tune=0)
    accepted, before = (
        float(run.sample_stats["acceptance_rate"].mean()) for run in (later, earlier)
    )
    assert abs(accepted - before) < 0.15
    steps, before = (float(run.sample_stats["n_steps"].mean()) for run in (later, earlier))
    assert steps < 2.0 * before
    assert not later.sample_stats["diverging"].any()
    assert_alike(later, earlier, ("b",), 0.4, 0.7)
    assert later.sample_stats.attrs["resumed"] == 1
    assert "tune=0" not in report(later)


@pytest.mark.choice
def test_a_run_of_pymc_leaves_the_choice(of_nuts):
    model, _ = of_nuts
    with model:
        plain = pm.sample(draws=50, tune=100, chains=1, progressbar=False, random_seed=1)
    step = built(model, resume=plain)
    assert isinstance(step, AllRowsNUTS)
    assert "too few" in step.summary
    assert len(step.learnt.own_last) == 1


@pytest.mark.choice
def test_steps_of_pymc_without_gradients_learn_nothing():
    with pm.Model() as model:
        pm.Normal("y", pm.Poisson("k", 3.0), 1.0, observed=np.ones(5))
        run = pm.sample(draws=50, tune=50, chains=1, progressbar=False, random_seed=1)
    with model, pytest.raises(SettingError, match="resume has no effect, because no variable"):
        AusterityMH(resume=run)
