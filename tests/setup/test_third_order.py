"""The order of the expansion: three where it is asked for, or where it saves rows."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import AusterityMH, RandomWalkProposal
from pymc_austerity.control_variates import differences_of_all
from pymc_austerity.errors import SettingError
from pymc_austerity.setup import row_functions
from tests.running import sample
from tests.step_methods.models import normal_regression


def logistic(n_rows=4_000, dtype="float64"):
    """Binary outcomes by five columns."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n_rows, 5)).astype(dtype)
    y = rng.random(n_rows) < 1.0 / (1.0 + np.exp(2.0 - x @ [0.7, -0.5, 0.3, 0.0, 0.0]))
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 3.0, shape=5)
        pm.Bernoulli("y", logit_p=x @ beta, observed=y)
    return model


def rare_columns(n_rows=60_000, n_columns=20):
    """Columns that are zero in most rows, with few events: the other rows have the influence."""
    rng = np.random.default_rng(1)
    known = rng.random((n_rows, n_columns)) < 0.01
    x = np.column_stack([np.ones(n_rows), known * rng.normal(size=(n_rows, n_columns))])
    y = rng.random(n_rows) < 0.018
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 3.0, shape=n_columns + 1)
        pm.Bernoulli("y", logit_p=x @ beta, observed=y)
    return model


def student(n_rows=4_000):
    """Rows with two predictors."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(n_rows, 2))
    with pm.Model() as model:
        beta, sigma = pm.Normal("beta", shape=2), pm.HalfNormal("sigma")
        y = x @ [1.0, -0.5] + rng.standard_t(4.0, size=n_rows)
        pm.StudentT("y", nu=4.0, mu=x @ beta, sigma=sigma, observed=y)
    return model


def built(model, **settings):
    with model:
        return AusterityMH(**settings)


def pair(target, h=1.0, seed=3):
    rng, anchor = np.random.default_rng(seed), target.anchor
    return [anchor.point + h * (anchor.draw(rng) - anchor.point) for _ in range(2)]


@pytest.fixture(scope="module", params=[logistic, student])
def cubic(request):
    """Rows that are sampled uniformly, all of them with terms of third order."""
    return built(request.param(), epsilon=0.05, control_variates=3, batch_size=30).target


@pytest.fixture(scope="module")
def rare():
    return rare_columns()


@pytest.fixture(scope="module")
def steps(rare):
    return {order: built(rare, epsilon=0.05, control_variates=order) for order in (2, "auto")}


@pytest.mark.few("logistic")
def test_residuals_and_expansion_add_up_to_the_difference(cubic):
    new, old = pair(cubic)
    (*data, constants) = cubic.source.window(0, cubic.source.n_rows)
    differences = cubic.row_function.differences(new, old, *data).sum()
    left = cubic.row_function(new, old, *data, constants).sum()
    assert cubic.anchor.order == 3
    assert left + cubic.expansion(new, old) == pytest.approx(differences, rel=1e-9)


@pytest.mark.few("logistic")
def test_what_the_expansion_leaves_is_of_fourth_order(cubic):
    def size(h):
        left = differences_of_all(cubic.row_function, *pair(cubic, h), cubic.source)
        return np.linalg.norm(left)

    assert size(0.1) / size(0.05) == pytest.approx(16.0, rel=0.15)


def test_chosen_where_it_saves_rows(steps):
    assert steps["auto"].target.anchor.order == 3
    assert "Control variates of order 3" in steps["auto"].explain()


def test_only_rows_with_influence_have_third_order_terms(steps):
    target = steps["auto"].target
    n_rows = target.source.n_rows
    third = target.source.window(0, n_rows)[-1][:, 3]
    assert 0 < np.count_nonzero(third) < n_rows / 10
    new, old = pair(target)
    (*data, _) = target.source.window(0, n_rows)
    differences = target.row_function.differences(new, old, *data).sum()
    left = differences_of_all(target.row_function, new, old, target.source).sum()
    assert left + target.expansion(new, old) == pytest.approx(differences, rel=1e-8)


def test_fewer_rows_for_the_same_posterior(rare, steps):
    rows, moments = {}, {}
    for order, step in steps.items():
        trace = sample(step, rare, draws=4_000, tune=500, chains=1, random_seed=1)
        beta = trace.posterior["beta"].values[0]
        rows[order] = trace.sample_stats["n_rows_used"].values.mean()
        moments[order] = beta.mean(axis=0), beta.std(axis=0)
    assert rows["auto"] < 0.6 * rows[2]
    (mean, sd), (expected, wanted) = moments["auto"], moments[2]
    assert np.abs((mean - expected) / wanted).max() < 0.6
    np.testing.assert_allclose(sd, wanted, rtol=0.4)


@pytest.mark.few("settings0")
@pytest.mark.parametrize("settings", [{"epsilon": 0.05}, {"epsilon": 0.05, "control_variates": 1}])
def test_other_models_keep_their_order(settings):
    step = built(normal_regression(20_000), **settings)
    assert step.target.anchor.order == settings.get("control_variates", 2)
    assert step.target.anchor.third is None


def test_a_trial_that_saves_nothing_leaves_no_trace(rare, steps, monkeypatch):
    """Random numbers included: rows are stored in the same order."""
    monkeypatch.setattr("pymc_austerity.setup.by_influence._SHARE", 0.0)  # one row
    found, expected = built(rare, epsilon=0.05).target, steps[2].target
    assert found.details == expected.details
    np.testing.assert_array_equal(found.anchor.point, expected.anchor.point)
    for ours, theirs in zip(found.source.window(0, 99), expected.source.window(0, 99), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_with_all_rows_decisions_are_those_of_any_order():
    """At the strictest, no decision depends on how the rows are expanded."""
    walk = RandomWalkProposal(covariance=1e-3 * np.eye(5), scaling=1.0)
    chains, rows = [], []
    for order in (None, 2, 3):
        model = logistic(2_000)
        step = built(model, control_variates=order, epsilon=0.0, proposal=walk, tune=False, rng=5)
        points, point = [], model.initial_point()
        for _ in range(200):
            point, (stats,) = step.step(point)
            points.append(point["beta"])
            rows.append(stats["n_rows_used"])
        chains.append(np.array(points))
    assert set(rows) == {2_000}
    assert len(np.unique(chains[0][:, 0])) > 20
    for chain in chains[1:]:
        np.testing.assert_array_equal(chain, chains[0])


@pytest.mark.exhaustive
def test_rows_in_single_precision():
    target = built(logistic(dtype="float32"), epsilon=0.05, control_variates=3).target
    new, old = pair(target)
    arrays = target.source.window(0, target.source.n_rows)
    assert sorted({array.dtype.name for array in arrays if array.dtype.kind == "f"})[0] == "float32"
    differences = target.row_function.differences(new, old, *arrays[:-1]).sum()
    left = target.row_function(new, old, *arrays).sum()
    assert left + target.expansion(new, old) == pytest.approx(differences, rel=1e-9)


@pytest.mark.exhaustive
def test_rows_in_sources():
    """Third derivatives are added up in one more pass over them."""
    rng, n_example = np.random.default_rng(0), 50
    x = rng.normal(size=(4_000, 2))
    y = (rng.random(4_000) < 1.0 / (1.0 + np.exp(2.0 - x[:, 0]))).astype(int)
    with pm.Model() as model:
        data = pm.Data("x", x[:n_example])
        pm.Bernoulli("y", logit_p=data @ pm.Normal("beta", shape=2), observed=y[:n_example])
    with pm.Model() as in_memory:
        pm.Bernoulli("y", logit_p=x @ pm.Normal("beta", shape=2), observed=y)
    settings = {"epsilon": 0.05, "control_variates": 3, "batch_size": 30}
    found = built(model, data={"x": x, "y": y}, **settings).target.anchor
    expected = built(in_memory, **settings).target.anchor
    assert found.order == 3
    np.testing.assert_allclose(found.third.sums, expected.third.sums, rtol=0.05, atol=0.05)


def test_exact_decisions_are_of_second_order():
    with pytest.raises(SettingError, match="expansion of second order"):
        built(logistic(), test="exact", control_variates=3)


@pytest.mark.exhaustive
def test_rows_that_are_functions_of_many_predictors(monkeypatch):
    monkeypatch.setattr(row_functions, "_MOST_STORED", 0)
    with pytest.raises(SettingError, match="control_variates=3 is not possible because rows are"):
        built(logistic(), epsilon=0.05, control_variates=3)
