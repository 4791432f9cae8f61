"""Decisions on all rows, made for many independent proposals at once."""

import numpy as np
import pymc as pm
import pytest
from scipy.special import ndtr

from pymc_austerity import CrankNicolsonProposal
from pymc_austerity.deciding.sampling import AllRowsTogether, TotalsOfAll
from pymc_austerity.rows import ArrayRows
from pymc_austerity.setup import together as chosen
from pymc_austerity.setup.row_bounds import NotExactError
from pymc_austerity.step_methods.draws_ahead import is_independent
from tests.references import moments_of
from tests.running import built, chain_of, sample
from tests.step_methods.models import wide
from tests.step_methods.test_compiled import as_arrays, in_python, sampling


@pytest.fixture(scope="module")
def started():
    return sampling(wide(), {"max_error": 0.01}, n_tune=70)


def test_wide_models_decide_on_all_rows(started):
    step, _ = started
    assert isinstance(step.target.sampling, AllRowsTogether)
    assert is_independent(step.target, step.proposal) and not step.python_needed
    assert "no decision can be wrong" in step.summary
    assert "all 2,000 rows per decision" in step.summary
    assert "Transitions are made 64 at a time" in step.explain()


def test_decisions_are_those_of_one_after_the_other(started):
    step, point = started
    python = in_python(step)
    points, statistics = chain_of(step, point, 150)
    expected, one_by_one = chain_of(python, point, 150)
    assert len(np.unique(points, axis=0)) > 60
    np.testing.assert_array_equal(points, expected)
    found, wanted = as_arrays(statistics), as_arrays(one_by_one)
    for name in set(found) - {"standardized_mean"}:
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)


def test_tuning_is_made_in_blocks_as_well(started, monkeypatch):
    step = built(wide(), max_error=0.01)
    step.set_rng(np.random.default_rng(1))
    point, _ = step.step(step._model.initial_point())
    passes = []
    monkeypatch.setattr(TotalsOfAll, "__call__", counted(TotalsOfAll.__call__, passes))
    chain_of(step, point, 64)
    assert passes == [65]


def test_a_run_goes_on_in_the_same_way(started):
    step, _ = started
    model = step._model
    earlier = sample(step, model, draws=10, tune=0, chains=2)
    later = built(model, max_error=0.01, resume=earlier)
    assert is_independent(later.target, later.proposal)
    last = np.concatenate([earlier.posterior[v.name].isel(draw=-1) for v in model.free_RVs], -1)
    np.testing.assert_allclose(later.learnt.starts, last)
    assert sample(later, model, draws=5, tune=0, chains=1).sample_stats.attrs["resumed"] == 1


def counted(function, passes):
    def call(self, points):
        passes.append(len(points))
        return function(self, points)

    return call


@pytest.fixture
def always(monkeypatch):
    """Decide on all rows whatever it takes."""
    monkeypatch.setattr(chosen, "_WORTH", np.inf)
    monkeypatch.setattr("pymc_austerity.setup.choose.exact_sampling", no_bounds)


def no_bounds(*_, **__):
    raise NotExactError("a test wants it")


def few_successes():
    """A skewed posterior of two parameters."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=300)
    y = rng.random(300) < 0.02 + 0.02 * (x > 0.0)
    with pm.Model() as model:
        a, b = pm.Normal("a", -3.0, 2.0), pm.Normal("b", 0.0, 2.0)
        pm.Bernoulli("y", logit_p=a + b * x, observed=y)
    return model, x, y


def moments_on_a_grid(x, y):
    a, b = np.meshgrid(np.linspace(-8, 0, 400), np.linspace(-4, 4, 400), indexing="ij")
    log_density = -0.5 * (((a + 3.0) / 2.0) ** 2 + (b / 2.0) ** 2)
    for xi, yi in zip(x, y, strict=True):
        log_density -= np.logaddexp(0.0, (a + b * xi) * (1 - 2 * yi))
    return moments_of(log_density, a), moments_of(log_density, b)


def assert_close(draws, moments):
    """A third of the draws are independent."""
    mean, sd = moments
    n_independent = draws.size / 3.0
    assert draws.mean() == pytest.approx(mean, abs=4.0 * sd / np.sqrt(n_independent))
    assert draws.std() == pytest.approx(sd, rel=4.0 / np.sqrt(n_independent))


def test_a_skewed_posterior(always):
    model, x, y = few_successes()
    step = built(model, max_error=0.01)
    assert isinstance(step.target.sampling, AllRowsTogether)
    idata = sample(step, model, draws=6_000, tune=50, chains=2, random_seed=2)
    for name, moments in zip("ab", moments_on_a_grid(x, y), strict=True):
        assert_close(idata.posterior[name].values, moments)


def test_a_prior_with_bounds_rejects(always):
    """Proposals that the prior excludes are rejected by Python, with the same random numbers."""
    rng = np.random.default_rng(4)
    with pm.Model() as model:
        a = pm.Uniform("a", -1.0, 1.0, default_transform=None)
        pm.Normal("y", a, 3.0, observed=rng.normal(0.9, 3.0, size=40))
    step, point = sampling(model, {"max_error": 0.01}, n_tune=5)
    assert isinstance(step.target.sampling, AllRowsTogether)
    python = in_python(step)
    points, statistics = chain_of(step, point, 200)
    np.testing.assert_array_equal(points, chain_of(python, point, 200)[0])
    assert np.abs(points).max() <= 1.0
    assert 0 < sum(s["n_rows_used"] == 0 for s in statistics) < 150


def test_other_proposals_are_not_evaluated_together(always):
    step = built(wide(), max_error=0.01, proposal=CrankNicolsonProposal(1.0))
    assert not isinstance(step.target.sampling, AllRowsTogether)


@pytest.mark.parametrize("spread", [0.3, 1.0])
def test_acceptance_of_independent_proposals(spread, rng):
    r"""For normal log-weights it is twice the normal tail beyond sd / sqrt(2)."""
    found = chosen.acceptance(spread * rng.normal(size=4_000))
    assert found == pytest.approx(2.0 * ndtr(-spread / np.sqrt(2.0)), abs=0.03)


def test_acceptance_where_the_posterior_is_zero():
    assert chosen.acceptance(np.array([0.0, np.nan, 0.0])) == pytest.approx(0.5)
    assert chosen.acceptance(np.full(3, np.nan)) == 0.0


def test_rows_that_are_not_finite_exclude_a_point():
    totals = TotalsOfAll(lambda points, y: np.where(points[:, 0] > 0, y.sum(), -np.inf), None)
    totals = TotalsOfAll(totals.sums, ArrayRows([np.ones(3_000)]))
    np.testing.assert_array_equal(totals(np.array([[1.0], [-1.0]])), [3_000.0, np.nan])


def test_nothing_is_compiled_where_all_rows_take_too_long(monkeypatch):
    monkeypatch.setattr(chosen, "_seconds_of_some", lambda *about: 1e-6)
    monkeypatch.setattr(chosen, "row_totals", None)
    step = built(wide(), max_error=0.01)
    assert not isinstance(step.target.sampling, AllRowsTogether)
