"""Rows with kinks: the curvature that they have on average, and exact decisions about them."""

from functools import partial

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH, FireflyMH, SettingError
from pymc_austerity.control_variates import anchor
from pymc_austerity.control_variates.anchor import have_kinks
from pymc_austerity.deciding.exact import PoissonSampling
from pymc_austerity.step_methods import by_default
from pymc_austerity.step_methods.few_rows import FewRowsStep
from tests.model.splitting import by_name
from tests.references import moments_of
from tests.running import assert_moments, built, sample
from tests.step_methods.models import logistic

N_ROWS = 2_000
KINDS = {
    "laplace": lambda mu: pm.Laplace("y", mu, 1.0, observed=DATA),
    "quantile": lambda mu: pm.AsymmetricLaplace("y", mu=mu, b=1.0, q=0.8, observed=DATA),
}
DATA = np.random.default_rng(1).standard_t(4, size=N_ROWS) + 2.0


def location(kind):
    with pm.Model() as model:
        KINDS[kind](pm.Normal("mu", 0.0, 10.0))
    return model


def regression(n_rows=3_000, n_columns=3, seed=2):
    """With a scale, and an intercept that only the priors tell from the effects of two groups."""
    rng = np.random.default_rng(seed)
    x, g = rng.normal(size=(n_rows, n_columns)), np.arange(n_rows) % 2
    y = x.sum(axis=1) + rng.laplace(size=n_rows)
    with pm.Model() as model:
        a, b = pm.Normal("a", 0.0, 2.0), pm.Normal("b", 0.0, 2.0, shape=n_columns)
        effects = pm.Normal("effects", 0.0, 0.5, shape=2)
        pm.Laplace("y", a + x @ b + effects[g], pm.HalfNormal("s", 2.0), observed=y)
    return model


def moments(kind):
    """Mean and standard deviation of the location, by summation over a grid."""
    logp, grid = location(kind).compile_logp(), np.linspace(1.8, 3.4, 4_001)
    return moments_of(np.array([logp({"mu": mu}) for mu in grid]), grid)


@pytest.mark.parametrize("make", [partial(AusterityMH, test="exact"), FireflyMH])
@pytest.mark.parametrize("kind", KINDS)
def test_decisions_are_exact(kind, make):
    mean, sd = moments(kind)
    model = location(kind)
    step = built(model, make)
    assert isinstance(step.target.sampling, PoissonSampling)
    assert 0 < step.target.n_kept < N_ROWS / 4
    assert "a kink near the mode" in step.explain()
    assert f"of {N_ROWS:,} rows per decision" in step.summary
    approximation = step.target.approximation
    assert abs(approximation.mean[0] - mean) < sd
    assert approximation.root[0, 0] == pytest.approx(sd, rel=0.25)
    idata = sample(step, model, draws=2_000, tune=500, random_seed=4)
    assert_moments(idata.posterior["mu"].values, mean, sd, at_least=800)
    used = idata.sample_stats["n_rows_used"].values
    besides = used[used > 0] - step.target.n_kept  # as the line of costs says
    assert besides.min() >= 0
    assert np.median(besides) < N_ROWS / 10


def test_the_mode_is_found_from_few_rows_that_are_rounded(monkeypatch):
    """Each of the rows that the search begins with stands for 33, and turns as many at once."""
    monkeypatch.setattr(anchor, "_SOME_ROWS", 2_000)
    rng, n_rows = np.random.default_rng(1), 66_000
    first, second = np.minimum(rng.geometric(0.25, n_rows), 15) - 1, rng.integers(12, size=n_rows)
    hour = rng.integers(5, 24, size=n_rows).astype(float)
    y = rng.normal(0.0, 10.0, size=15)[first] + hour + rng.gamma(0.4, 30.0, size=n_rows)
    with pm.Model() as model:
        u, v = pm.Normal("u", 0.0, 30.0, shape=15), pm.Normal("v", 0.0, 30.0, shape=12)
        mu = u[first] + v[second] + pm.Normal("b", 0.0, 10.0) * hour
        scale = pm.HalfNormal("s", 10.0)
        pm.AsymmetricLaplace("y", mu=mu, b=1.0 / scale, q=0.9, observed=y.round())
    step = built(model, test="exact")
    assert isinstance(step.target.sampling, PoissonSampling)
    assert step.target.n_kept < n_rows / 4


def test_decisions_are_those_of_all_rows():
    """Ratios of the known part and of all other rows add up to those of the model."""
    model = regression()
    target = built(model, test="exact").target
    rng, density, start = np.random.default_rng(5), model.compile_logp(), model.initial_point()
    center, root = target.approximation.mean, target.approximation.root
    rows = target.source.window(0, target.source.n_rows)
    for scale in (0.3, 1.0, 4.0):
        old, new = (center + scale * root @ rng.normal(size=center.size) for _ in range(2))
        found = target.row_free_part(new, old) + target.expansion(new, old)
        found += target.row_function(new, old, *rows).sum()
        after, before = (float(density(by_name(x, model.value_vars, start))) for x in (new, old))
        assert found == pytest.approx(after - before, abs=1e-6)


@pytest.mark.choice
def test_are_chosen_by_default(monkeypatch):
    for limit, value in (("_few_rows", ""), ("_time_for_setup", 1_000.0)):
        monkeypatch.setattr(by_default, limit, lambda _, value=value: value)
    assert type(built(regression())) is FewRowsStep


def test_exact_decisions_need_rows_that_can_be_kept():
    with pytest.raises(SettingError, match="kink"):
        built(regression(n_rows=30), test="exact")


def test_a_sequential_test_samples_rows_as_they_are():
    step = built(regression(), epsilon=0.1)
    assert step.target.anchor is None
    assert "because its rows have kinks" in step.summary


def test_a_mode_between_two_kinks_has_no_curvature_of_its_own():
    """The gradient vanishes there, and only the prior is curved."""
    y = np.random.default_rng(7).laplace(size=1_000)
    with pm.Model() as model:
        pm.Laplace("y", pm.Normal("mu", 0.0, 10.0), 1.0, observed=y)
    target = built(model, test="exact").target
    assert target.approximation.root[0, 0] == pytest.approx(1_000**-0.5, rel=0.25)


class Turning:
    """A log-density that falls on both sides of 0, where it is steep, and turns at some place.

    The gradient falls by 2 within about 2 / `rate`.
    """

    def __init__(self, rate, place):
        self.rate, self.place = rate, place

    def row_gradient(self, point):
        return -np.tanh(self.rate * (point - self.place)) - 0.1 * point

    def row_hessian(self, point):
        slope = self.rate * (1.0 - np.tanh(self.rate * (point - self.place)) ** 2)
        return np.diag(-slope - 0.1)

    def gradient(self, point):
        away = self.rate * (point - self.place)
        fall = np.logaddexp(away, -away) / self.rate + 0.05 * point**2
        return -float(fall.sum()), self.row_gradient(point)


@pytest.mark.parametrize(("rate", "is_kink"), [(1.0, False), (15.0, False), (1e4, True)])
@pytest.mark.parametrize("place", [0.0, 0.13, 0.41])
def test_narrow_curvature_is_no_kink(rate, place, is_kink, rng):
    """Few rows with extreme predictors turn within a small part of a standard deviation."""
    at = np.array([0.0 if place else 1e-3])
    assert have_kinks(Turning(rate, place), at, rng) == is_kink


def test_rows_without_kinks_have_the_usual_plan(monkeypatch):
    """Where curvature is too narrow for any number of points."""
    monkeypatch.setattr(anchor, "have_kinks", lambda *args: True)
    monkeypatch.setattr(anchor, "falls_as_curved", lambda *args: False)
    step = built(logistic(N_ROWS, np.zeros(3), seed=3))
    assert isinstance(step.target.sampling, PoissonSampling)
    assert "kink" not in step.explain()
