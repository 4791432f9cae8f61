"""Models that Bambi writes, with its own families, names and non-centered effects."""

from types import SimpleNamespace

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest

from pymc_austerity import AusterityMH, GroupedMH, SettingError, pointwise
from tests import running
from tests.running import sample

bmb = pytest.importorskip("bambi")

# What Bambi's formulas do with pandas 3.
pytestmark = pytest.mark.filterwarnings("ignore:For backward compatibility, 'str' dtypes")

N_ROWS, N_GROUPS = 1_000, 6
FIT = {"draws": 40, "tune": 40, "chains": 2, "cores": 1, "random_seed": 3, "progressbar": False}
FIT |= {"compute_convergence_checks": False}


@pytest.fixture(scope="module")
def table():
    """Predictors, groups, and a response for each family."""
    rng = np.random.default_rng(15)
    x, group = rng.normal(2.0, 1.0, size=N_ROWS), rng.integers(N_GROUPS, size=N_ROWS)
    eta = 0.2 + 0.4 * (x - 2.0) + rng.normal(0.0, 0.3, size=N_GROUPS)[group]
    chance, mean = 1.0 / (1.0 + np.exp(-eta)), np.exp(eta)
    trials = rng.integers(1, 9, size=N_ROWS)
    return pd.DataFrame(
        {
            "x": x,
            "g": [f"group {i}" for i in group],
            "log_exposure": rng.normal(0.0, 0.1, size=N_ROWS),
            "coin": rng.binomial(1, chance),
            "trials": trials,
            "hits": rng.binomial(trials, chance),
            "count": rng.poisson(mean),
            "overdispersed": rng.poisson(mean * rng.gamma(3.0, 1.0 / 3.0, size=N_ROWS)),
            "number": rng.normal(eta, 0.5),
            "heavy": eta + 0.5 * rng.standard_t(4.0, size=N_ROWS),
            "positive": rng.gamma(3.0, mean / 3.0),
            "share": rng.beta(6.0 * chance, 6.0 * (1.0 - chance)).clip(1e-6, 1.0 - 1e-6),
            "kind": pd.Categorical(rng.choice(["a", "b", "c"], size=N_ROWS)),
            "grade": pd.Categorical(
                np.digitize(eta + rng.logistic(size=N_ROWS), [0, 1]), ordered=True
            ),
        }
    )


def built(formula, table, **settings):
    model = bmb.Model(formula, table, **settings)
    model.build()
    return model


@pytest.mark.parametrize(
    ("formula", "family", "factors"),
    [
        ("coin ~ x + (1|g)", "bernoulli", ["1|g_offset"]),
        ("number ~ x + (x|g)", "gaussian", ["1|g_offset", "x|g_offset"]),
    ],
)
@pytest.mark.few("coin ~ x + (1|g)-bernoulli-factors0")
def test_effects_of_groups_are_found_as_they_are_written(formula, family, factors, table):
    """Non-centered: standard normal offsets, multiplied by a standard deviation."""
    model = built(formula, table, family=family)
    step = running.built(model.backend.model)
    assert isinstance(step, GroupedMH)
    words = step.explain()
    assert f"{N_GROUPS} levels of" in words
    assert f"Moved as products with their scales (centered): {', '.join(factors)}." in words


def test_fit_and_sample_give_the_same_draws(table):
    """Bambi centers the predictors, and reports the intercept of those that were not."""
    model = built("coin ~ x + (1|g)", table, family="bernoulli")
    step, names = running.built(model.backend.model), ["Intercept", "x", "1|g"]
    inside = sample(step, model.backend.model, var_names=names, **FIT).posterior
    fitted = model.fit(step=AusterityMH(), **FIT).posterior
    for name in ("x", "1|g"):
        np.testing.assert_array_equal(fitted[name], inside[name])
    intercept = inside["Intercept"] - table["x"].mean() * inside["x"]
    np.testing.assert_allclose(fitted["Intercept"], intercept)
    assert "p" not in fitted


@pytest.mark.exhaustive
@pytest.mark.parametrize("formula", ["coin ~ x", "number ~ x + (x|g)"])
def test_fit_goes_on_from_fit(formula, table, tmp_path):
    """From the intercept for centered predictors, and offsets of groups, which Bambi drops."""
    model = built(formula, table, family="bernoulli" if "coin" in formula else "gaussian")
    fitted = model.fit(step=AusterityMH(), **FIT)
    fitted.to_netcdf(tmp_path / "fit.nc")
    step = running.built(model.backend.model, resume=az.from_netcdf(tmp_path / "fit.nc"))
    to = step.target.coordinates if isinstance(step, GroupedMH) else step.coordinates
    starts = np.array([to.outer(each) for each in step.learnt.starts])
    sizes = {name: np.size(value) for name, value in model.backend.model.initial_point().items()}
    place = sum(list(sizes.values())[: list(sizes).index("Intercept")])
    last = fitted.posterior.isel(draw=-1)
    centered = last["Intercept"] + table["x"].mean() * last["x"]
    np.testing.assert_allclose(starts[:, place], centered, rtol=1e-6)
    model.fit(step=AusterityMH(resume=fitted), **(FIT | {"tune": 0}))


def test_draws_of_fit_are_not_taken_for_those_of_the_pymc_model(table):
    """Their intercept is another one, so log-likelihoods would be wrong without a word."""
    model = built("coin ~ x", table, family="bernoulli")
    fitted = model.fit(step=AusterityMH(), **FIT)
    with model.backend.model:
        with pytest.raises(SettingError, match="idata is a result of Bambi's fit"):
            pointwise.compute_log_likelihood(fitted)
        other = SimpleNamespace(posterior=fitted.posterior)  # as other samplers leave it
        for name in ("resume", "anchor"):
            with pytest.raises(SettingError, match=f"{name} is a result of Bambi's fit"):
                AusterityMH(**{name: other})
        own = pm.sample(step=AusterityMH(), var_names=["Intercept", "x"], quiet=True, **FIT)
        pointwise.compute_log_likelihood(own, rows=[3])
    eta = own.posterior["Intercept"] + own.posterior["x"] * (table["x"][3] - table["x"].mean())
    expected = -np.logaddexp(0.0, -eta if table["coin"][3] else eta)
    np.testing.assert_allclose(own.log_likelihood["coin"].values[..., 0], expected)
