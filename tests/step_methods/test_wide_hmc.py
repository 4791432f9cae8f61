"""Wide models with sparse designs: Hamiltonian moves on all rows."""

import cloudpickle
import numpy as np
import pymc as pm
import pytensor.sparse as ps
import pytest
from scipy import sparse

from pymc_austerity import AusterityMH
from pymc_austerity.errors import SettingError
from pymc_austerity.setup.wide import Reference, has_sparse_design, wide_reference
from pymc_austerity.step_methods import by_default
from pymc_austerity.step_methods.all_rows_nuts import AllRowsNUTS
from pymc_austerity.step_methods.request import Request
from pymc_austerity.step_methods.wide_hmc import SplitHamiltonian, WideHMC
from tests.references import slopes_of
from tests.running import assert_alike, assert_same_moves, built, sample
from tests.setup.targets import posed
from tests.step_methods.test_together import assert_close, few_successes, moments_on_a_grid


def design(n_rows, size, per_row, rng):
    columns = rng.integers(0, size, size=(n_rows, per_row))
    rows = np.repeat(np.arange(n_rows), per_row)
    return sparse.csr_matrix((rng.normal(size=rows.size), (rows, columns.ravel())), (n_rows, size))


def product(matrix, b):
    return ps.structured_dot(ps.as_sparse_variable(matrix), b[:, None]).ravel()


def step_for(model):
    its = {"problem": posed(model), "request": Request(rng=1), "model": model}
    step = WideHMC(list(model.value_vars), **its, say=str)
    step.end_setup({"trying trajectories": 1.0})
    return step


def hierarchical(rng, n_rows=2_000, size=40, *, is_dense=False):
    """Coefficients with a common scale, beside an intercept."""
    matrix = design(n_rows, size, 4, rng)
    observed = rng.poisson(np.exp(matrix @ rng.normal(scale=0.7, size=size) - 1.0))
    with pm.Model() as model:
        a, tau = pm.Normal("a"), pm.HalfNormal("tau")
        b = pm.Normal("b", 0.0, tau, shape=size)
        eta = matrix.toarray() @ b if is_dense else product(matrix, b)
        pm.Poisson("y", pm.math.exp(a + eta), observed=observed)
    return model


def test_what_the_reference_says_is_followed_without_error(rng):
    """A normal posterior: its draws are independent, and no proposal is rejected."""
    n_rows, size = 500, 12
    matrix = design(n_rows, size, 3, rng)
    y = matrix @ rng.normal(size=size) + rng.normal(size=n_rows)
    with pm.Model() as model:
        b = pm.Normal("b", 0.0, 2.0, shape=size)
        pm.Normal("y", product(matrix, b), 1.0, observed=y)
    step = step_for(model)
    moves, posterior = step._moves, step._moves.posterior
    precision = (matrix.T @ matrix).toarray() + np.eye(size) / 4.0
    mean = np.linalg.solve(precision, matrix.T @ y)
    factor = np.tril(moves.reference.factor)
    np.testing.assert_allclose(factor @ factor.T, precision, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(moves.reference.mean, mean, atol=1e-4)
    value, gradient = posterior.gradient(mean)
    assert value == pytest.approx(float(model.compile_logp()({"b": mean})))
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)
    here = moves.place(rng.standard_normal(size))
    for _ in range(5):
        there, log_ratio = moves.move(here, rng)
        assert log_ratio == pytest.approx(0.0, abs=1e-3)
        here = there


def test_trajectories_are_reversible_and_keep_volume(rng):
    """Whatever the reference is; here it is far from the posterior."""
    model, size = hierarchical(rng, 100, 5), 7
    posterior, _ = wide_reference(posed(model), str)
    factor = np.tril(rng.normal(size=(size, size)), -1) + np.diag(rng.uniform(15.0, 30.0, size))
    moves = SplitHamiltonian(posterior, Reference.of(np.zeros(size), np.asfortranarray(factor)), 3)

    def end_of(both):
        here = moves.place(both[:size])
        end, log_ratio, momentum = moves.trajectory(here, both[size:])
        return np.concatenate([end.standard, momentum]), log_ratio

    start = 0.5 * rng.normal(size=2 * size)
    end, log_ratio = end_of(start)
    back, other = end_of(np.concatenate([end[:size], -end[size:]]))
    np.testing.assert_allclose(back, [*start[:size], *-start[size:]], atol=1e-9)
    assert np.isfinite(log_ratio) and abs(log_ratio) > 0.01
    assert other == pytest.approx(-log_ratio, rel=1e-9)
    jacobian = slopes_of(lambda both: end_of(both)[0], start)
    assert abs(np.linalg.det(jacobian)) == pytest.approx(1.0, abs=1e-6)


def test_a_skewed_posterior_of_two_parameters():
    _, x, y = few_successes()
    matrix = sparse.csr_matrix(np.column_stack([np.ones_like(x), x]))
    with pm.Model() as model:
        b = pm.Normal("b", [-3.0, 0.0], 2.0)
        pm.Bernoulli("y", logit_p=product(matrix, b), observed=y)
    step = step_for(model)
    idata = sample(step, model, draws=4_000, tune=20, chains=2, random_seed=2)
    assert 0.5 < float(idata.sample_stats["accepted"].mean()) < 0.999
    for k, moments in enumerate(moments_on_a_grid(x, y)):
        assert_close(idata.posterior["b"].values[..., k], moments)


def test_starts_pickles_and_statistics(rng):
    model = hierarchical(rng)
    step = step_for(model)
    copy = cloudpickle.loads(cloudpickle.dumps(step))
    point = model.initial_point()
    assert_same_moves([step, copy], point, n_steps=3)
    _, (statistics,) = step.step(point)
    assert statistics["n_rows_used"] == 2_000 and statistics["used_all_rows"]
    assert step.constants["proposal_rows"] == step._moves.n_kicks * 2_000
    assert set(statistics) == set(step.stats_dtypes_shapes)
    assert "every decision uses all rows" in step.summary and "data @ b" in step.explain()


def test_processes_share_the_rows_and_the_factor(rng):
    model = hierarchical(rng, 20_000, 400)
    step = step_for(model)
    pickled = cloudpickle.dumps(step)
    (rows, _), columns = step._moves.posterior.parts[0], step._moves.reference.columns
    assert rows.n_bytes >= 20_000 * 4 * 12 and columns.n_bytes == 402**2 * 8
    assert len(pickled) < min(rows.n_bytes, columns.n_bytes)
    copy = cloudpickle.loads(pickled)._moves
    assert copy.posterior.parts[0][0].folder == rows.folder
    assert copy.reference.columns.folder == columns.folder
    # what the step method writes when it grows is the same for any number of rows
    more = len(cloudpickle.dumps(step_for(hierarchical(rng, 40_000, 400))))
    assert abs(more - len(pickled)) < 20_000


def test_draws_are_those_of_the_dense_model():
    """By PyMC's NUTS, on the same rows as dense covariates."""
    model = hierarchical(np.random.default_rng(1))
    found = sample(step_for(model), model, draws=1_500, tune=50, chains=2, random_seed=5)
    dense = hierarchical(np.random.default_rng(1), is_dense=True)
    nuts = built(dense, pm.NUTS)
    expected = sample(nuts, dense, draws=1_500, tune=500, chains=2, random_seed=6)
    n_independent = 1_000
    limits = 4.5 * np.sqrt(2.0 / n_independent), 4.5 / np.sqrt(n_independent)
    assert_alike(found, expected, ("a", "tau", "b"), *limits)


@pytest.mark.choice
class TestTheChoice:
    @pytest.fixture(autouse=True)
    def wide_from_ten_on(self, monkeypatch):
        monkeypatch.setattr(by_default, "_time_for_setup", lambda size: 1e3)
        monkeypatch.setattr(by_default, "MOST_ENTRIES", 10)
        monkeypatch.setattr(by_default, "_few_rows", lambda size: "")
        monkeypatch.setattr(by_default, "reason_against", lambda *args: "")  # of measured times

    def test_wide_sparse_models(self, rng):
        model = hierarchical(rng)
        step = built(model)
        assert isinstance(step, WideHMC)
        earlier = sample(step, model, draws=5, tune=5)
        later = built(model, resume=earlier)
        assert isinstance(later, WideHMC)
        point, last = later._start(), earlier.posterior["a"].isel(draw=-1).values
        assert np.isclose(last, point[0]).any()

    def test_priors_that_are_not_independent(self, rng, caplog):
        matrix = design(300, 60, 4, rng)
        with pm.Model():
            b = pm.MvNormal("b", np.zeros(60), 0.5 + 0.5 * np.eye(60))
            pm.Poisson("y", pm.math.exp(product(matrix, b)), observed=rng.poisson(1.0, 300))
            step = AusterityMH()
        assert isinstance(step, AllRowsNUTS)
        assert "priors of long variables are not independent" in step.summary


def test_dense_models_are_none(rng):
    with pm.Model() as model:
        b = pm.Normal("b", shape=3)
        pm.Poisson("y", pm.math.exp(rng.normal(size=(50, 3)) @ b), observed=np.ones(50, int))
    assert not has_sparse_design(posed(model))


def test_a_factor_that_is_too_large(rng, monkeypatch):
    monkeypatch.setattr("pymc_austerity.setup.wide._MOST_BYTES", 1e3)
    with pytest.raises(SettingError, match="factor of the precision would take"):
        step_for(hierarchical(rng))
