"""Influential rows that are known as they are: sums, gradients, decisions and posteriors."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pymc as pm
import pytest
from scipy.special import log_expit

from pymc_austerity.proposals import SurrogateHamiltonianProposal
from pymc_austerity.rows import blocks_of
from pymc_austerity.setup import choose, kept_rows, representing_rows, together
from pymc_austerity.setup.row_bounds import NotExactError
from pymc_austerity.step_methods import draws_ahead, metropolis
from tests.model.splitting import by_name
from tests.references import mean_and_error, moments_of, slopes_of
from tests.running import built, sample

N_ROWS, N_RARE = 30_000, 6

# The model's own log-density has its rows in it, which PyTensor 3 tells Numba not to cache.
pytestmark = pytest.mark.filterwarnings("ignore:Cannot cache compiled function")


@cache
def rows():
    """Six binary columns that few rows have, always with the same response."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(N_ROWS, N_RARE + 2))
    x[:, :N_RARE] = rng.random((N_ROWS, N_RARE)) < 1e-3
    y = rng.random(N_ROWS) < 1.0 / (1.0 + np.exp(2.0 - x[:, N_RARE:] @ [0.5, -0.3]))
    y[x[:, :N_RARE].any(axis=1)] = False
    return x, y


def rare_levels():
    x, y = rows()
    with pm.Model() as model:
        b = pm.Normal("b", 0.0, 5.0, shape=N_RARE + 2)
        pm.Bernoulli("y", logit_p=pm.Normal("a", 0.0, 5.0) + x @ b, observed=y)
    return model


step_of = partial(built, control_variates="auto", epsilon=0.05)


@pytest.fixture(scope="module")
def model():
    return rare_levels()


@pytest.fixture(scope="module")
def step(model):
    """With rows that are kept, where others could stand for all."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        without_standing(monkeypatch)
        return step_of(model)


def without_standing(monkeypatch):
    monkeypatch.setattr(choose, "represent", lambda *args: None)


def points_near(step, rng, n=4):
    return [step.proposal.surrogate.dispersed(1.5, rng) for _ in range(n)]


def test_rows_are_kept_where_the_posterior_is_not_normal(step):
    assert step.target.n_kept > 20
    assert step.target.n_rows == N_ROWS == step.target.source.n_rows + step.target.n_kept
    assert isinstance(step.proposal, SurrogateHamiltonianProposal)
    assert f"The {step.target.n_kept:,} rows with the most influence" in step.explain()


def test_known_part_expansion_and_residuals_are_the_posterior(model, step, rng):
    target, density, start = step.target, model.compile_logp(), model.initial_point()
    new, old = points_near(step, rng, 2)
    residuals = sum(target.row_function(new, old, *b).sum() for b in blocks_of(target.source))
    found = target.row_free_part(new, old) + target.expansion(new, old) + residuals
    after, before = (float(density(by_name(x, model.value_vars, start))) for x in (new, old))
    np.testing.assert_allclose(found, after - before, rtol=1e-7)


def test_gradient_of_the_surrogate_is_that_of_its_value(step, rng):
    exact = step.proposal.surrogate.exact
    (point,) = points_near(step, rng, 1)
    slopes = slopes_of(lambda x: exact(x)[0], point)
    np.testing.assert_allclose(exact(point)[1], slopes, rtol=1e-5, atol=1e-4)


def test_a_surrogate_without_expansion_has_all_rows(step, rng):
    new, old = points_near(step, rng, 2)
    target, surrogate = step.target, step.proposal.surrogate
    known = target.row_free_part(new, old) + target.expansion(new, old)
    np.testing.assert_allclose(surrogate.difference(new, old), known, rtol=1e-8)


def test_compiled_transitions_are_those_of_python(step, model, monkeypatch):
    without_standing(monkeypatch)
    assert_alike_in_python(step, model, monkeypatch, ("a", "b"))


def assert_alike_in_python(step, model, monkeypatch, names):
    run = {"draws": 200, "tune": 100, "chains": 1}
    compiled = sample(step, model, **run)
    for module in (draws_ahead, metropolis):
        monkeypatch.setattr(module, "why_python", lambda *_: "of the test")
    by_python = sample(step_of(model), model, **run)
    for name in names:
        here, there = compiled.posterior[name], by_python.posterior[name]
        np.testing.assert_allclose(here, there, rtol=1e-9, atol=1e-9)
    for name in ("n_rows_used", "n_looks", "accepted"):
        np.testing.assert_array_equal(compiled.sample_stats[name], by_python.sample_stats[name])


def moments_by_quadrature(x, intercept, slopes, column):
    """Mean and standard deviation of a coefficient, given what many rows tell."""
    own = x[x[:, column] == 1.0, N_RARE:] @ slopes + intercept
    grid = np.linspace(-35.0, 8.0, 4_000)
    return moments_of(log_expit(-(grid[:, None] + own)).sum(axis=1) - 0.5 * (grid / 5.0) ** 2, grid)


def test_skewed_directions_have_the_moments_of_quadrature(model, step):
    posterior = sample(step, model, draws=5_000, tune=500).posterior
    found, slopes = posterior["b"].values, posterior["b"].mean(("chain", "draw")).values[N_RARE:]
    for column in range(N_RARE):
        mean, spread = moments_by_quadrature(
            rows()[0], float(posterior["a"].mean()), slopes, column
        )
        own = found[..., column]
        assert abs(own.mean() - mean) < 4.0 * spread / np.sqrt(1_500.0)
        assert abs(np.log(own.std() / spread)) < 0.1


def test_rows_are_counted_as_used(step, model):
    idata = sample(step, model, draws=100, tune=100, chains=1)
    used = idata.sample_stats["n_rows_used"].values
    assert ((used == 0) | (used > step.target.n_kept)).all()
    np.testing.assert_allclose(idata.sample_stats["data_fraction"], used / N_ROWS)


@pytest.mark.filterwarnings("ignore:The t statistic")  # expected of such rows in some orders
@pytest.mark.parametrize(
    "settings", [{"control_variates": 2}, {"proposal": SurrogateHamiltonianProposal()}]
)
def test_not_where_the_user_has_chosen_otherwise(model, settings):
    assert built(model, epsilon=0.05, **settings).target.n_kept == 0


def test_not_where_a_normal_approximation_does_as_well(rng):
    x = rng.normal(size=(N_ROWS, 3))
    with pm.Model() as model:
        y = rng.poisson(np.exp(x @ [0.2, -0.1, 0.3]))
        pm.Poisson("y", pm.math.exp(x @ pm.Normal("b", shape=3)), observed=y)
    assert step_of(model).target.n_kept == 0


def test_before_all_rows_are_read_for_proposals_that_are_rejected(model, monkeypatch):
    def refused(*args, **kwargs):
        raise NotExactError("their bounds are wide")

    monkeypatch.setattr(choose, "exact_sampling", refused)
    monkeypatch.setattr(together, "_WORTH", np.inf)
    monkeypatch.setattr(together, "_seconds_of_all", lambda *args: 0.0)
    monkeypatch.setattr(together, "acceptance", lambda log_weights: 0.6)
    without_standing(monkeypatch)
    assert built(model, control_variates="auto").target.n_kept > 0


def test_as_many_as_hold_most_of_the_influence():
    scores = np.r_[np.full(10, 100.0), np.full(10_000, 1e-3)]
    assert set(kept_rows._most_influential(scores)) <= set(range(10))
    assert len(kept_rows._most_influential(np.ones(10_000))) == kept_rows._MOST


# ------------------------------------------------------------------ rows that stand for all


@cache
def beginning():
    """A curve that saturates where there are no data."""
    rng = np.random.default_rng(2)
    x = rng.uniform(0.0, 1.0, N_ROWS)
    return x, rng.normal(6.0 * x / (4.0 + x), 3.0)


@pytest.fixture(scope="module")
def curve():
    x, y = beginning()
    with pm.Model() as model:
        top, half = pm.LogNormal("top", 1.0, 1.0), pm.LogNormal("half", 1.0, 1.0)
        pm.Normal("y", top * x / (half + x), 3.0, observed=y)
    return model


@pytest.fixture(scope="module")
def standing(curve):
    return step_of(curve)


def test_few_rows_stand_for_all(curve, standing, rng):
    """What is known is the posterior but for little, for which decisions sample all rows."""
    target, surrogate = standing.target, standing.proposal.surrogate
    assert target.n_kept == 0 and target.source.n_rows == N_ROWS
    n_standing = surrogate.exact.rows.weights.size
    assert 0 < n_standing < 20
    assert f"{n_standing} rows with weights stand for all" in standing.explain()
    density, start = curve.compile_logp(), curve.initial_point()
    new, old = points_near(standing, rng, 2)
    after, before = (float(density(by_name(x, curve.value_vars, start))) for x in (new, old))
    assert abs(surrogate.difference(new, old) - (after - before)) < 0.02
    known = target.row_free_part(new, old) + target.expansion(new, old)
    residuals = [target.row_function(new, old, *b) for b in blocks_of(target.source)]
    assert np.abs(np.concatenate(residuals)).sum() < 1.0
    found = known + sum(values.sum() for values in residuals)
    np.testing.assert_allclose(found, after - before, rtol=1e-8)
    assert surrogate.difference(new, old) == pytest.approx(known, abs=1e-3)


def test_rows_share_functions_of_few_of_them(standing, rng):
    """Of each row a combination of functions is known, as brute force has it."""
    target, points = standing.target, points_near(standing, rng, 2)
    kernel, anchor = target.row_function, standing.target.surrogate.expansion.point
    *data, known = next(blocks_of(target.source))
    common, n_known = kernel.common, kernel.n_constants
    alone = replace(kernel, common=None)
    residuals = [alone(point, anchor, *data, known[:, :n_known].copy()) for point in points]
    of_few = [alone(point, anchor, *common.block) @ common.combinations for point in points]
    expected = residuals[0] - residuals[1] - known[:, n_known:] @ (of_few[0] - of_few[1])
    found = kernel(*points, *data, known)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)
    assert np.abs(found).sum() < 0.05 * np.abs(residuals[0] - residuals[1]).sum()
    weights = standing.proposal.surrogate.exact.rows.weights
    total = sum(block[-1][:, n_known:].sum(axis=0) for block in blocks_of(target.source))
    np.testing.assert_allclose(
        np.sort(common.combinations @ total)[-weights.size :], np.sort(weights)
    )


def test_weights_are_in_all_derivatives(standing, rng):
    rows, exact = standing.proposal.surrogate.exact.rows, standing.proposal.surrogate.exact
    (point,) = points_near(standing, rng, 1)
    assert np.ptp(rows.weights) > 0.0
    np.testing.assert_allclose(rows(point)[0], rows.weights @ rows.values(point))
    slopes = slopes_of(lambda x: exact(x)[0], point)
    np.testing.assert_allclose(exact(point)[1], slopes, rtol=1e-5, atol=1e-3)
    alone = rows.some(np.array([3]), np.array([2.0]))
    np.testing.assert_allclose(alone(point)[0], 2.0 * rows.values(point)[3])


def test_what_they_leave_open_is_decided_alike_in_compiled_code(curve, standing, monkeypatch):
    assert_alike_in_python(standing, curve, monkeypatch, ("top", "half"))


def test_a_posterior_far_from_normal_has_the_moments_of_quadrature(curve, standing):
    x, y = beginning()
    half = np.linspace(-1.0, 6.0, 300)  # logarithms, as those of the top
    top = np.linspace(-1.0, 6.0, 3_000)[:, None]
    shapes = [x / (np.exp(h) + x) for h in half]
    products = np.array([s @ y for s in shapes])
    squares = np.array([s @ s for s in shapes])
    log_density = (np.exp(top) * products - 0.5 * np.exp(2.0 * top) * squares) / 9.0
    log_density -= 0.5 * (top - 1.0) ** 2 + 0.5 * (half - 1.0) ** 2
    expected = moments_of(np.logaddexp.reduce(log_density, axis=0), half)
    idata = sample(standing, curve, draws=4_000, tune=500)
    found = np.log(idata.posterior["half"].values)
    mean, error = zip(*(mean_and_error(chain) for chain in found), strict=True)
    assert abs(np.mean(mean) - expected[0]) < 4.0 * np.linalg.norm(error) / len(error)
    assert abs(np.log(found.std() / expected[1])) < 0.1
    assert float(idata.sample_stats["accepted"].mean()) > 0.9


@pytest.mark.parametrize("limits", [["_CLOSE"], ["_SPREAD", "_MOST_SPREAD"]])
def test_none_stand_for_all_that_do_not_hold_at_draws_of_the_surrogate(limits, curve, monkeypatch):
    for limit in limits:
        monkeypatch.setattr(representing_rows, limit, 0.0)
    assert step_of(curve).target.surrogate is None


def test_draws_of_the_surrogate_are_points_of_the_next_choice(curve, monkeypatch):
    numbers, choose_rows = [], representing_rows._weights_of

    def noted(rows, about, points, left):
        numbers.append(len(points))
        monkeypatch.setattr(representing_rows, "_SPREAD", 0.0 if len(numbers) == 1 else 1.0)
        return choose_rows(rows, about, points, left)

    monkeypatch.setattr(representing_rows, "_weights_of", noted)
    assert "stand for all" in step_of(curve).explain()
    assert numbers == [96, 96 + 64]


def test_rows_stand_for_all_where_decisions_on_all_rows_would_stay_in_tails(curve, monkeypatch):
    """Three in four draws of the normal approximation are accepted, which would do elsewhere."""
    monkeypatch.setattr(together, "_WORTH", np.inf)
    monkeypatch.setattr(together, "_seconds_of_all", lambda *args: 0.0)
    monkeypatch.setattr(together, "acceptance", lambda log_weights: 0.76)
    assert "stand for all" in built(curve, control_variates="auto").explain()
    without_standing(monkeypatch)
    assert "64 of them are evaluated on all rows" in built(curve, control_variates="auto").explain()
