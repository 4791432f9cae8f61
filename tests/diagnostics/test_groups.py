"""Statistics are found in whatever holds them."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr

from pymc_austerity import SettingError, SettingTypeError
from pymc_austerity.diagnostics import audit, data_usage, report, statistics_of
from tests.diagnostics.runs import real, synthetic
from tests.running import built, sample
from tests.step_methods.models import groups, normal_mean, normal_regression


@pytest.fixture(scope="module")
def run():
    return real(normal_mean, audit=0.5)


@pytest.fixture(scope="module")
def compound():
    return real(normal_regression, blocked=False, audit=0.3)


def forms(run, folder):
    """The same run in all the forms that it may have."""
    path = folder / "run.nc"
    run.to_netcdf(path)
    group = run["sample_stats"]
    dataset = group if isinstance(group, xr.Dataset) else group.to_dataset()
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset(), "sample_stats": dataset})
    return {
        "group": group,
        "dataset": dataset,
        "tree": tree,
        "loaded": az.from_netcdf(path),
        "itself": statistics_of(run),
    }


@pytest.mark.parametrize("kind", ["run", "compound"])
@pytest.mark.few("run")
def test_every_form_says_the_same(kind, request, tmp_path):
    run = request.getfixturevalue(kind)
    expected = statistics_of(run)
    usage, text = data_usage(run), report(run)
    without_draws = report(expected)
    assert "The largest r_hat" in text
    assert "The largest r_hat" not in without_draws
    for form, other in forms(run, tmp_path).items():
        xr.testing.assert_equal(statistics_of(other), expected)
        assert data_usage(other).equals(usage), form
        assert audit(other, limit=1.0).equals(audit(run, limit=1.0)), form
        assert report(other) == (text if form == "loaded" else without_draws), form


def test_statistics_are_those_of_the_run(run):
    statistics = statistics_of(run)
    assert statistics["n_rows_used"].dims == ("chain", "draw", "step_method")
    for name in run["sample_stats"].data_vars:
        found, expected = statistics[name].values[..., 0], run["sample_stats"][name].values
        np.testing.assert_array_equal(found, expected)
    assert statistics["epsilon"].values.tolist() == [0.05]
    assert statistics["n_rows"].values.tolist() == [2_000]


@pytest.mark.parametrize("n_step_methods", [1, 2])
def test_numbered_step_methods_of_a_zarr_trace(n_step_methods):
    """Beside one of PyMC, which has no decisions."""
    expected = statistics_of(synthetic(n_step_methods=n_step_methods, attrs={}))
    group = xr.Dataset({"sampler_0__accepted": expected["accepted"].isel(step_method=0)})
    for k in range(n_step_methods):
        own = expected.isel(step_method=k).data_vars
        group = group.assign({f"sampler_{k + 1}__{name}": each for name, each in own.items()})
    found = statistics_of(group.drop_vars("step_method", errors="ignore"))
    xr.testing.assert_equal(
        found.drop_vars(list(found.coords)), expected.drop_vars(list(expected.coords))
    )


@pytest.mark.exhaustive
def test_an_axis_of_step_methods(compound):
    statistics = statistics_of(compound)
    assert statistics["accepted"].shape == (2, 200, 2)
    assert statistics["epsilon"].values.tolist() == [0.05, 0.05]
    second = statistics_of(compound, step_method=1)
    expected = compound["sample_stats"]["n_rows_used"].values[..., 1:]
    np.testing.assert_array_equal(second["n_rows_used"].values, expected)


def test_constants_belong_to_their_step_methods():
    run = synthetic(n_step_methods=2, attrs={"epsilon": [0.01, 0.1]})
    assert statistics_of(run)["epsilon"].values.tolist() == [0.01, 0.1]
    assert statistics_of(run, step_method=1)["epsilon"].values.tolist() == [0.1]
    assert statistics_of(statistics_of(run, step_method=1))["epsilon"].values.tolist() == [0.1]


@pytest.mark.exhaustive
def test_statistics_shared_with_other_kinds_of_step_methods_are_unknown(tmp_path):
    run = real(
        groups, vars=["effect"], beside=lambda: pm.Metropolis([pm.modelcontext(None)["spread"]])
    )
    assert run["sample_stats"]["accepted"].shape == (2, 200, 2)
    for form in (run, *forms(run, tmp_path).values()):
        assert np.isnan(statistics_of(form)["accepted"].values).all()
        usage = data_usage(form)
        assert usage["acceptance"].isna().all()
        assert usage.drop(columns="acceptance").notna().all(axis=None)
        assert "other kinds" in report(form)


def test_chosen_chains_and_draws_can_be_passed(run):
    last = run.sel(chain=[1], draw=slice(100, None))
    assert data_usage(last).index.tolist() == [1, "all"]
    assert data_usage(last).loc["all", "n_decisions"] == 100


@pytest.mark.parametrize("what", [None, 3, [1, 2], {"posterior": 1}, np.zeros(3)])
def test_something_else_is_refused(what):
    with pytest.raises(SettingTypeError, match=f"not {type(what).__name__}"):
        data_usage(what)


def test_runs_of_other_step_methods_are_refused():
    model = normal_mean()
    run = sample(built(model, pm.Slice), model, draws=5, tune=5, chains=1)
    with pytest.raises(SettingError, match="no statistics of AusterityMH"):
        data_usage(run)


def test_a_run_without_statistics_is_refused():
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset({"mu": ("draw", [1.0])})})
    with pytest.raises(SettingError, match=r"no group sample_stats|no statistics"):
        data_usage(tree)


def test_what_lacks_is_named():
    with pytest.raises(SettingError, match="lacks 'n_looks', 'accepted'"):
        data_usage(synthetic().drop_vars(["n_looks", "accepted"]))
    run = synthetic()
    del run.attrs["epsilon"]
    with pytest.raises(SettingError, match="lacks 'epsilon'"):
        audit(run)


def test_step_methods_that_are_not_there():
    with pytest.raises(SettingError, match=r"from 0 to 1.*not 2"):
        data_usage(synthetic(n_step_methods=2), step_method=2)


@pytest.mark.parametrize("value", [-1, "0", True, 0.0])
def test_step_methods_are_counted(value):
    with pytest.raises(SettingError, match="give an integer of at least 0"):
        data_usage(synthetic(), step_method=value)
