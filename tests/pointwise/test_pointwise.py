"""Log-likelihoods and replications of rows, against PyMC's own."""

import warnings
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

from pymc_austerity._pymc import PYMC_GENERATION
from pymc_austerity.errors import (
    AusterityWarning,
    NotRowwiseError,
    SettingError,
    SettingTypeError,
    StorageError,
)
from pymc_austerity.pointwise import (
    compute_log_likelihood,
    loo_subsample,
    sample_posterior_predictive,
)
from pymc_austerity.pointwise.request import PointwiseRequest, predictive_rows

HAS_SUBSAMPLING = find_spec("arviz_stats") is not None and hasattr(
    import_module("arviz_stats"), "loo_subsample"
)
"""PyMC 5 may have a part of ArviZ 1 beside it that has not."""

N = 300
RNG = np.random.default_rng(3)
X, GROUP = RNG.normal(size=(N, 2)), RNG.integers(5, size=N)


MORE_KINDS = ["bernoulli", "mixture", "zeros"]


def unknowns():
    """Of all kinds of rows: two predictors, and a spread."""
    a, b = pm.Normal("a", shape=5), pm.Normal("b", shape=2)
    return a[GROUP], X @ b, pm.HalfNormal("s")


def model_of_persons():
    return pm.Model(coords={"person": [f"p{k}" for k in range(N)]})


@pytest.fixture(scope="module")
def model():
    with model_of_persons() as model:
        first, second, s = unknowns()
        eta, both = first + second, pm.math.stack([first, second], axis=1)
        pm.Normal("normal", eta, s, observed=RNG.normal(size=N), dims="person")
        pm.MvNormal("pair", mu=both, cov=np.eye(2), observed=RNG.normal(size=(N, 2)))
        pm.Poisson("counts", pm.math.exp(both), observed=RNG.poisson(1.0, size=(N, 2)))
        clipped = np.clip(RNG.normal(size=N), -1.0, 1.0)
        pm.Censored("censored", pm.Normal.dist(eta, s), -1.0, 1.0, observed=clipped)
    return model


@pytest.fixture(scope="module")
def more_kinds():
    with model_of_persons() as model:
        first, second, s = unknowns()
        eta = first + second
        pm.Bernoulli("bernoulli", logit_p=eta, observed=RNG.integers(2, size=N))
        components = [pm.Normal.dist(first, s), pm.Normal.dist(second, 1.0)]
        pm.Mixture("mixture", [0.3, 0.7], components, observed=RNG.normal(size=N))
        pm.ZeroInflatedPoisson("zeros", 0.4, pm.math.exp(eta), observed=RNG.poisson(1.0, size=N))
    return model


def draws(model, n=4):
    """A run of two chains, as the user's generation of PyMC returns it."""
    rng, values = np.random.default_rng(8), {}
    for variable in model.free_RVs:
        shape = tuple(variable.shape.eval())
        drawn = 0.5 * rng.normal(size=(2, n, *shape))
        dims = [f"{variable.name}_dim_{k}" for k in range(len(shape))]
        values[variable.name] = (
            ("chain", "draw", *dims),
            np.exp(drawn) if variable.name == "s" else drawn,
        )
    return wrapped(xr.Dataset(values, {"chain": [0, 1], "draw": np.arange(n)}))


def wrapped(posterior, facts=None):
    groups = {"posterior": posterior}
    if facts is not None:
        groups["sample_stats"] = xr.Dataset({"accepted": 1.0}, attrs=facts)
    return az.InferenceData(**groups) if PYMC_GENERATION < 6 else xr.DataTree.from_dict(groups)


def group(idata, name):
    found = getattr(idata, name)
    return found.to_dataset() if isinstance(found, xr.DataTree) else found


@pytest.fixture(scope="module")
def run(model):
    return draws(model)


log_likelihood = partial(compute_log_likelihood, extend_inferencedata=False, progressbar=False)
predictive = partial(sample_posterior_predictive, extend_inferencedata=False, progressbar=False)


def by_pymc(model, run):
    with model:
        return pm.compute_log_likelihood(run, extend_inferencedata=False, progressbar=False)


@pytest.fixture(scope="module")
def expected(model, run):
    return by_pymc(model, run)


def names(model):
    return [v.name for v in model.observed_RVs]


def test_log_likelihoods_are_those_of_pymc(model, run, expected):
    found = log_likelihood(run, model=model)
    assert list(found) == names(model)
    for name in names(model):
        assert found[name].dims == expected[name].dims
        np.testing.assert_allclose(found[name].values, expected[name].values, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(found["person"], expected["person"])


@pytest.mark.few("normal")
@pytest.mark.parametrize("name", ["normal", "counts"])
def test_parts_are_computed_by_themselves(model, run, expected, name):
    found = log_likelihood(run, model=model)[name]
    dims = expected[name].dims
    for key in [
        {dims[2]: [7, 3, 3]},
        {dims[2]: 11, "draw": slice(None, None, -1)},
        {dims[2]: slice(5, 50, 7), "chain": 1},
        {dims[-1]: 1, "chain": [1, 0], "draw": [2, 0]},
    ]:
        np.testing.assert_allclose(
            found.isel(key).values, expected[name].isel(key).values, atol=1e-9
        )


def test_no_more_is_computed_than_is_asked_for(model, run, monkeypatch):
    asked = []
    evaluated = PointwiseRequest.evaluated
    monkeypatch.setattr(
        PointwiseRequest,
        "evaluated",
        lambda self, where, samples: (
            asked.append((len(where), len(samples))) or evaluated(self, where, samples)
        ),
    )
    found = log_likelihood(run, model=model)
    assert not asked
    found["normal"].isel(person=[3, 5], draw=[0]).load()
    assert asked == [(2, 2)]


def test_rows_are_chosen_by_their_numbers(model, run, expected):
    rows = [5, 299, 0]
    found = log_likelihood(run, model=model, var_names=["normal"], rows=rows)
    np.testing.assert_array_equal(found["person"], ["p5", "p299", "p0"])
    np.testing.assert_allclose(found["normal"], expected["normal"].isel(person=rows), atol=1e-9)


def test_a_store_has_what_memory_has(model, run, expected, tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    monkeypatch.setattr("pymc_austerity.pointwise.request._NUMBERS", 800)  # 100 rows at a time
    found = log_likelihood(run, model=model, store=tmp_path / "run.zarr")
    for name in names(model):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-7)
        assert found[name].dims == expected[name].dims
    np.testing.assert_array_equal(found["person"], expected["person"])
    with pytest.raises(StorageError, match="exists already"):
        compute_log_likelihood(run, model=model, store=tmp_path / "run.zarr")
    kwargs = {"model": model, "var_names": ["normal", "counts"], "random_seed": 4}
    stored = predictive(run, store=tmp_path / "new.zarr", **kwargs)
    kept = predictive(run, **kwargs)
    xr.testing.assert_equal(stored.load(), kept)


def test_the_run_gets_the_group(model):
    run = draws(model)
    for _ in range(2):  # the second one takes the place of the first
        same = compute_log_likelihood(run, model=model, var_names=["normal"], rows=[0])
        assert same is run
        assert group(run, "log_likelihood")["normal"].shape == (2, 4, 1)
    with model:
        sample_posterior_predictive(run, var_names=["pair"], rows=[2, 1], random_seed=1)
    assert group(run, "posterior_predictive")["pair"].shape == (2, 4, 2, 2)


@pytest.mark.few("counts", "pair", "normal", "censored")
@pytest.mark.parametrize(
    "name", ["normal", "bernoulli", "pair", "counts", "mixture", "zeros", "censored"]
)
def test_replications_have_the_distribution_of_pymcs(request, name):
    """Two rows at one draw, many times: a draw that is repeated as the posterior."""
    model = request.getfixturevalue("more_kinds" if name in MORE_KINDS else "model")
    once = group(draws(model), "posterior").isel(chain=[1], draw=[2])
    many = wrapped(once.isel(draw=np.zeros(2_000, dtype=int)).assign_coords(draw=range(2_000)))
    rows = [4, 200]
    found = predictive(many, model=model, var_names=[name], rows=rows, random_seed=5)
    found = found[name].values[0]
    with model:
        theirs = pm.sample_posterior_predictive(
            many, var_names=[name], random_seed=6, progressbar=False
        )
    theirs = group(theirs, "posterior_predictive")[name].values[0][:, rows]
    for own, other in zip(found.reshape(2_000, -1).T, theirs.reshape(2_000, -1).T, strict=True):
        assert stats.ks_2samp(own, other).pvalue > 1e-4
    assert abs(np.corrcoef(found.reshape(2_000, -1)[:, [0, -1]].T)[0, 1]) < 0.1


def test_seeds(model, run):
    def made(seed, **kwargs):
        drawn = predictive(run, model=model, var_names=["normal"], random_seed=seed, **kwargs)
        return drawn["normal"].values

    np.testing.assert_array_equal(made(1), made(1))
    assert (made(1) != made(2)).all()
    assert np.unique(made(None)).size == made(1).size


def test_rows_along_another_axis():
    with pm.Model() as model:
        a = pm.Normal("a", shape=(2, 1))
        pm.Normal("y", a, 1.0, observed=RNG.normal(size=(2, 50)))
    run = draws(model)
    found = log_likelihood(run, model=model, axis=1, rows=[7, 40])["y"]
    expected = by_pymc(model, run)["y"].isel(y_dim_1=[7, 40])
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_minibatches_are_undone():
    x, y = pm.Minibatch(X[:, 0], RNG.normal(size=N), batch_size=10)
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("a") * x, 1.0, observed=y, total_size=N)
    run = wrapped(xr.Dataset({"a": (("chain", "draw"), [[0.5, 2.0]])}))
    assert log_likelihood(run, model=model)["y"].shape == (1, 2, N)
    drawn = predictive(run, model=model, random_seed=1)["y"].values[0]
    noise = drawn - np.outer([0.5, 2.0], X[:, 0])
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-3


@pytest.mark.skipif(not HAS_SUBSAMPLING, reason="comes with ArviZ 1")
def test_cross_validation_of_a_sample_is_that_of_all_rows():
    y = RNG.normal(0.3, 1.0, size=N)
    with pm.Model() as model:
        mu, s = pm.Normal("mu"), pm.HalfNormal("s")
        pm.Normal("y", mu, s, observed=y)
    center = RNG.normal(y.mean(), 1.0 / np.sqrt(N), size=(2, 500))
    scale = np.exp(RNG.normal(np.log(y.std()), 1.0 / np.sqrt(2 * N), size=(2, 500)))
    dims = ("chain", "draw")
    run = wrapped(xr.Dataset({"mu": (dims, center), "s": (dims, scale)}))
    few = loo_subsample(run, 60, model=model, reff=1.0, seed=3)
    compute_log_likelihood(run, model=model)
    every = import_module("arviz_stats").loo(run, reff=1.0)
    assert few.n_data_points == every.n_data_points == N
    assert abs(few.elpd - every.elpd) < 4.0 * few.subsampling_se + 1e-6
    assert few.subsampling_se < 0.1 * every.se


@pytest.fixture
def elsewhere(tmp_path):
    """The same model of all rows and of a few, which are all zero, and where all rows are."""
    x, y = X.astype("float32"), RNG.poisson(1.0, size=N)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)

    def model(x, y):
        with pm.Model() as model:
            data = pm.Data("x", x)
            b = pm.Normal("b", shape=2)
            pm.Poisson("y", pm.math.exp(pm.math.log(1.0 + data**2) @ b), observed=y)
        return model

    sources = {name: tmp_path / f"{name}.npy" for name in ("x", "y")}
    return model(x, y), model(np.zeros((5, 2)), np.zeros(5, dtype=int)), sources


def test_rows_may_be_elsewhere(elsewhere, monkeypatch):
    monkeypatch.setattr("pymc_austerity.pointwise.request._NUMBERS", 800)
    whole, example, data = elsewhere
    run = draws(whole)
    expected = log_likelihood(run, model=whole)["y"]
    found = log_likelihood(run, model=example, data=data)["y"]
    assert found.shape == (2, 4, N)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    some = {"y_dim_0": [250, 3, 3], "draw": 1}
    np.testing.assert_allclose(found.isel(some), expected.isel(some), rtol=1e-6)
    for rows in (None, [7, 290]):
        expected = predictive(run, model=whole, rows=rows, random_seed=3)
        found = predictive(run, model=example, data=data, rows=rows, random_seed=3)
        xr.testing.assert_equal(found, expected)


def test_rows_of_the_model_after_a_run_elsewhere_are_warned_of(elsewhere):
    _, example, data = elsewhere
    run = draws(example)
    run = wrapped(group(run, "posterior"), {"data": "x, y", "n_rows": N})
    with pytest.warns(AusterityWarning, match=r"read 300 rows of data= \(x, y\), .* holds 5, "):
        log_likelihood(run, model=example)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log_likelihood(run, model=example, data=data)


@pytest.mark.skipif(HAS_SUBSAMPLING, reason="only where it is missing")
def test_cross_validation_needs_arviz_stats(model, run):
    with pytest.raises(SettingError, match="needs arviz-stats"):
        loo_subsample(run, 10, model=model)


@pytest.mark.skipif(not HAS_SUBSAMPLING, reason="comes with ArviZ 1")
def test_cross_validation_of_rows_that_there_are_not(model, run):
    with pytest.raises(SettingError, match=r"observations=301 is not .* 1 to 300: .* data="):
        loo_subsample(run, 301, model=model, var_name="normal")
    with pytest.raises(SettingError, match="rows must be from 0 to 299"):
        loo_subsample(run, [3, 300], model=model, var_name="normal")


def test_a_series_with_one_log_density():
    with pm.Model() as model:
        rho, start = pm.Normal("rho", 0.0, 0.5, shape=1), pm.Normal.dist()
        pm.AR("y", rho, init_dist=start, observed=np.zeros(20))
        run = pm.sample_prior_predictive(3)
    run = run.prior.to_dataset() if hasattr(run.prior, "to_dataset") else run.prior
    with pytest.raises(NotRowwiseError, match="of 'y' is one number for all of its values"):
        compute_log_likelihood(run, model=model, extend_inferencedata=False)


def test_what_cannot_be_asked_for(model, run):
    with pytest.raises(SettingError, match=r"'normalx' is not an observed variable.*'normal' may"):
        compute_log_likelihood(run, model=model, var_names=["normalx"])
    with pytest.raises(SettingError, match=r"from 3 to 300: leave .* data="):
        compute_log_likelihood(run, model=model, rows=[3, 300])
    for rows in ([0.5], [], [[1]]):
        with pytest.raises(SettingError, match="rows must be the numbers"):
            compute_log_likelihood(run, model=model, rows=rows)
    with pytest.raises(SettingError, match="axis=1 is not an axis of 'normal'"):
        compute_log_likelihood(run, model=model, axis=1)
    with pytest.raises(SettingTypeError, match="with a group 'posterior', not int"):
        compute_log_likelihood(3, model=model)
    missing = wrapped(group(run, "posterior").drop_vars("s"))
    with pytest.raises(SettingError, match="no draws of 's'"):
        compute_log_likelihood(missing, model=model)
    other = wrapped(group(run, "posterior").isel(a_dim_0=slice(0, 3)))
    with pytest.raises(SettingError, match=r"draws of 'a' have shape \(3,\) instead of \(5,\)"):
        compute_log_likelihood(other, model=model)


def test_rows_that_are_drawn_together_are_refused():
    with pm.Model() as model:
        rho = pm.Normal("rho")
        start = pm.Normal.dist(0.0, 1.0, shape=1)
        pm.AR("series", rho=rho[None], init_dist=start, observed=RNG.normal(size=N))
    with pytest.raises(NotRowwiseError, match="use PyMC's function"):
        predictive_rows(model, "series")


def shared_noise(mu, size):
    return pm.Normal.dist(mu + pm.Normal.dist(0.0, 1.0), 0.1, size=size)


def test_draws_that_rows_share_are_refused():
    with pm.Model() as model:
        pm.CustomDist("y", pm.Normal("mu"), dist=shared_noise, observed=RNG.normal(size=N))
    with pytest.raises(NotRowwiseError, match="many rows read the same draw"):
        predictive_rows(model, "y")


def test_observed_variables_that_depend_on_each_other_are_refused():
    counts = RNG.poisson(5.0, size=N)
    with pm.Model() as model:
        total = pm.Poisson("total", pm.Exponential("rate", 1.0), observed=counts)
        pm.Binomial("part", total, 0.5, observed=counts // 2)
    assert predictive_rows(model, "total").generators
    with pytest.raises(NotRowwiseError, match="'part' depends on 'total'"):
        predictive_rows(model, "part")
