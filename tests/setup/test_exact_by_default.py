"""Exact decisions are the default where they are cheap, and explain() says why."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_austerity.deciding.exact import PoissonSampling
from pymc_austerity.model.bounds import constants
from pymc_austerity.setup import choose, row_bounds
from tests.running import built
from tests.step_methods.models import logistic, normal_regression


def squares_of_heavy_tails():
    """Rare events, and columns in which few rows are far from the others."""
    rng = np.random.default_rng(1)
    x = rng.standard_t(4, size=(8_000, 3))
    y = rng.random(8_000) < 1.0 / (1.0 + np.exp(5.0 - 0.8 * x[:, 0] + 0.1 * x[:, 0] ** 2))
    with pm.Model() as model:
        eta = pm.Normal("a", -4.0, 3.0) + np.column_stack([x, x**2]) @ pm.Normal("b", shape=6)
        pm.Bernoulli("y", logit_p=eta, observed=y.astype(int))
    return model


@pytest.fixture(scope="module")
def model():
    return logistic(20_000, np.full(3, 0.2), seed=1)


def test_fewer_rows_than_a_first_look(model):
    step = built(model)
    assert isinstance(step.target.sampling, PoissonSampling)
    assert step.settings.decides_exactly
    assert (
        "exact Metropolis-Hastings on some of the rows; no decision can be wrong." in step.summary
    )
    assert "A sequential test would read 160 rows or more at its first look." in step.explain()
    assert step.target.sampling.expected_rows < 160


@pytest.mark.few("settings0")
@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 0.05},
        {"batch_size": 1_000},
        {"sampling": "windows"},
        {"control_variates": 1},
    ],
)
def test_who_asks_for_a_sequential_test_gets_it(model, settings):
    step = built(model, **settings)
    assert not isinstance(step.target.sampling, PoissonSampling)
    assert "no decision can be wrong" not in step.summary


@pytest.mark.few("settings2-and there is nothing to audit.")
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_error": 0.01}, "no decision can be wrong."),
        ({"audit": 0.1}, "no decision can be wrong, and there is nothing to audit."),
        ({"test": "exact", "audit": 0.1}, "and there is nothing to audit."),
    ],
)
def test_exact_decisions_satisfy_any_promise_and_any_audit(model, settings, words):
    step = built(model, **settings)
    assert isinstance(step.target.sampling, PoissonSampling)
    assert step.summary.splitlines()[0].endswith(words)
    assert step.constants["audit"] == 0.0
    assert np.isnan(step.constants["max_error"])


@pytest.fixture
def one_by_one(monkeypatch):
    """No decisions on all rows for many proposals."""
    monkeypatch.setattr("pymc_austerity.setup.choose.together", lambda about, **_: None)


def test_a_sequential_test_where_it_reads_fewer_rows(one_by_one):
    step = built(logistic(1_000, np.full(40, 0.2), seed=1))
    assert not isinstance(step.target.sampling, PoissonSampling)
    assert "No exact decisions because they are expected to read" in step.explain()


@pytest.mark.exhaustive
def test_exact_with_several_predictors():
    step = built(normal_regression(20_000))
    assert isinstance(step.target.sampling, PoissonSampling)
    assert step.target.sampling.expected_rows < 20.0


@pytest.mark.parametrize(
    ("module", "limits"),
    [
        (constants, {"_FEW_PRODUCTS": 10_000}),
        # they take long beside all that comes before them
        (row_bounds, {"_LEAST_SECONDS": 0.0, "_TIMES": 0.0}),
    ],
)
def test_a_sequential_test_where_bounds_take_long(monkeypatch, one_by_one, module, limits):
    for name, value in limits.items():
        monkeypatch.setattr(module, name, value)
    step = built(normal_regression(20_000))
    assert not isinstance(step.target.sampling, PoissonSampling)
    assert "No exact decisions because their bounds take long to compute" in step.explain()


def test_a_sequential_test_where_there_are_no_bounds(one_by_one):
    rng = np.random.default_rng(2)
    with pm.Model() as model:
        mean = pt.arctan(pm.Normal("angle"))
        pm.Normal("y", mean, 1.0, observed=rng.normal(size=2_000))
    step = built(model)
    assert not isinstance(step.target.sampling, PoissonSampling)
    reason = "No exact decisions because the rows have no bound (bounds of arctan are unknown)"
    assert reason in step.explain()


def test_exact_decisions_on_a_mixture():
    rng = np.random.default_rng(2)
    with pm.Model() as model:
        mean = pm.Normal("mean")
        weights, centers = np.array([0.5, 0.5]), pm.math.stack([mean, mean + 0.5])
        pm.NormalMixture("y", weights, centers, 1.0, observed=rng.normal(size=2_000))
    step = built(model)
    assert isinstance(step.target.sampling, PoissonSampling)


@pytest.mark.filterwarnings("ignore:The t statistic of the first look")
def test_not_where_draws_of_a_normal_approximation_are_rejected(monkeypatch):
    monkeypatch.setattr(choose, "represent", lambda *args: None)
    step = built(squares_of_heavy_tails(), control_variates="auto")
    assert step.target.n_kept > 0
    assert "No exact decisions because they accept" in step.explain()
