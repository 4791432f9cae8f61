"""Influential rows that are known as they are: sums, gradients, decisions and posteriors."""

from functools import cache, partial

import numpy as np
import pymc as pm
import pytest
from scipy.special import log_expit

from pymc_austerity.proposals import SurrogateHamiltonianProposal
from pymc_austerity.rows import blocks_of
from pymc_austerity.setup import choose, kept_rows, together
from pymc_austerity.setup.row_bounds import NotExactError
from pymc_austerity.step_methods import draws_ahead, metropolis
from tests.model.splitting import by_name
from tests.references import moments_of, slopes_of
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
    return step_of(model)


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
    run = {"draws": 200, "tune": 100, "chains": 1}
    compiled = sample(step, model, **run)
    for module in (draws_ahead, metropolis):
        monkeypatch.setattr(module, "why_python", lambda *_: "of the test")
    by_python = sample(step_of(model), model, **run)
    for name in ("a", "b"):
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
    assert built(model, control_variates="auto").target.n_kept > 0


def test_as_many_as_hold_most_of_the_influence():
    scores = np.r_[np.full(10, 100.0), np.full(10_000, 1e-3)]
    assert set(kept_rows._most_influential(scores)) <= set(range(10))
    assert len(kept_rows._most_influential(np.ones(10_000))) == kept_rows._MOST
