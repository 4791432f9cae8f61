"""Exact decisions through the step method: statistics, words, refusals, rows that break bounds."""

import dataclasses
import re

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_austerity import AusterityMH, CrankNicolsonProposal
from pymc_austerity.control_variates import differences_of_all
from pymc_austerity.deciding.exact import RowBoundError
from pymc_austerity.diagnostics import audit, data_usage, report
from pymc_austerity.errors import SettingError
from pymc_austerity.model import split_log_density
from pymc_austerity.plots import plot_audit, plot_data_usage, plot_decision_errors
from tests.running import built, sample, walk
from tests.step_methods.models import logistic
from tests.zoo.registry import written

N_ROWS = 4_000


@pytest.fixture(scope="module")
def model():
    return logistic(N_ROWS, np.full(4, 0.4), seed=1)


@pytest.fixture(scope="module")
def step(model):
    return built(model, test="exact")


@pytest.fixture(scope="module")
def run(step, model):
    return sample(step, model, draws=400, tune=400)


def residuals_and_pairs(step, n):
    """Residuals of all rows between pairs of draws of the normal approximation."""
    target, rng = step.target, np.random.default_rng(0)
    mean, root = target.approximation.mean, target.approximation.root
    for _ in range(n):
        one, other = (mean + root @ rng.standard_normal(mean.size) for _ in range(2))
        yield one, other, differences_of_all(target.row_function, one, other, target.source)


class TestRun:
    def test_words(self, step, run):
        what, cost = step.summary.splitlines()
        assert what.endswith(
            "exact Metropolis-Hastings on some of the rows; no decision can be wrong."
        )
        few = "(less than one|typically ([1-9]|none))"
        assert re.match(
            f"Cost: {few} of {N_ROWS:,} rows per decision(, . on average)?; set-up", cost
        )
        page = report(run)
        assert "Every decision is exact: rows were drawn at rates that bound" in page
        assert "there is nothing to audit" in page
        assert "What to change\n  - Nothing stands out." in page
        assert (data_usage(run)["exact_fraction"] == 1.0).all()
        assert audit(run).loc["all", "n_audited"] == 0

    def test_plots(self, run):
        assert plot_data_usage(run) is not None
        with pytest.raises(SettingError, match="Every decision is exact: there is nothing to aud"):
            plot_audit(run)
        with pytest.raises(SettingError, match="Every decision of the run is exact"):
            plot_decision_errors(run)

    def test_nothing_is_tuned_after_tuning(self, step, model):
        sample(step, model, draws=1, tune=150, chains=1)
        before = step.decider.state
        sampling_state = step.sampling_state
        step.set_rng(np.random.default_rng(0))
        step.sampling_state = sampling_state
        walk(step, model.initial_point(), 150)
        assert step.decider.state.inflation.value == before.inflation.value
        assert step.decider.state.inflation.tries == 0.0

    def test_the_cost_was_expected(self, step):
        sampling, rng = step.target.sampling, np.random.default_rng(1)
        made = [
            sampling.decide(one, other, 0.0, sampling.inflation, rng).n_rows_used
            for one, other, _ in residuals_and_pairs(step, 200)
        ]
        assert 0.5 * sampling.expected_rows < np.mean(made) < 2.0 * sampling.expected_rows


class TestBounds:
    def test_no_residual_exceeds_its_bound(self, step):
        sampling = step.target.sampling
        groups = sampling.groups
        for one, other, residuals in residuals_and_pairs(step, 20):
            u, v = sampling.whitened(one), sampling.whitened(other)
            reach = max(np.linalg.norm(u), np.linalg.norm(v))
            constants = groups.largest[np.searchsorted(groups.radii, reach)]
            bounds = constants * (np.linalg.norm(u) ** 3 + np.linalg.norm(v) ** 3) / 6.0
            assert (abs(residuals) <= np.repeat(bounds, np.diff(groups.starts)) + 1e-12).all()

    def test_a_row_that_exceeds_it_is_named_by_its_number_in_the_data(self, step, model):
        sampling = step.target.sampling
        tight = dataclasses.replace(sampling.groups, largest=sampling.groups.largest * 1e-3)
        broken = dataclasses.replace(sampling, groups=tight, inflation=1.0)
        (number,) = broken.numbers.window(0, N_ROWS)
        assert sorted(number) == list(range(N_ROWS))
        rng = np.random.default_rng(0)
        pairs = residuals_and_pairs(step, 3_000)
        with pytest.raises(RowBoundError, match=r"row \d+ of the data changed by"):
            [broken.decide(one, other, 0.0, 1.0, rng) for one, other, _ in pairs]

    def test_rows_that_are_stored_are_those_of_the_data(self, step, model):
        """Position by position, whatever the order of storage."""
        sampling = step.target.sampling
        (number,) = sampling.numbers.window(0, N_ROWS)
        stored = sampling.source.window(0, N_ROWS)
        leaves = [leaf.array for leaf in split_log_density(model).leaves]
        for one, other in zip(stored, leaves, strict=False):
            np.testing.assert_array_equal(one, other[number])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"batch_size": 100}, "batch_size=100 has no effect"),
        ({"sampling": "strata"}, "sampling='strata' has no effect"),
        ({"control_variates": None}, "control_variates=None is not possible with test='exact'"),
        ({"control_variates": 1}, "control_variates=1 is not possible with test='exact'"),
        ({"epsilon": 0.1}, "epsilon and test each say how strict the test is"),
    ],
)
def test_settings_without_use_are_refused(settings, words, model):
    with model, pytest.raises(SettingError, match=words):
        AusterityMH(test="exact", **settings)


def test_an_operation_without_a_bound_is_named():
    y = np.random.default_rng(0).normal(size=300)
    words = (
        "test='exact' is not possible because the rows have no bound .bounds of arctan are unknown"
    )
    with pm.Model():
        pm.Normal("y", pt.arctan(pm.Normal("angle")), 1.0, observed=y)
        with pytest.raises(SettingError, match=words):
            AusterityMH(test="exact")


def zero_inflated_counts(rng):
    counts = np.where(rng.random(2_000) < 0.3, 0, rng.poisson(2.0, size=2_000))
    psi, log_mean = pm.Beta("psi", 2.0, 2.0), pm.Normal("log_mean")
    pm.ZeroInflatedPoisson("y", psi, pm.math.exp(log_mean), observed=counts)


def categories(rng):
    x, y = rng.normal(size=2_000), rng.integers(3, size=2_000)
    slopes = pm.Normal("slopes", shape=2)
    pm.Categorical(
        "y", logit_p=pt.stack([0.0 * x, *(x * slopes[k] for k in (0, 1))], 1), observed=y
    )


@pytest.mark.few("categories")
@pytest.mark.parametrize("write", [zero_inflated_counts, categories])
def test_sums_of_exponentials_are_bounded(write):
    model = written(write, np.random.default_rng(0))
    idata = sample(built(model, test="exact"), model, draws=100, tune=100, chains=1)
    assert idata.sample_stats["n_rows_used"].mean() < 400
    assert idata.sample_stats["decision_error"].max() == 0.0


def test_models_without_control_variates_are_refused():
    with pm.Model():
        k = pm.Poisson("k", 3.0)
        pm.Normal("y", k, 1.0, observed=np.random.default_rng(0).normal(size=300))
        with pytest.raises(SettingError, match="test='exact' is not possible without control"):
            AusterityMH(test="exact")


def test_known_posterior_with_a_scale():
    """Normal data with a known mean: the precision has a gamma posterior."""
    y = np.random.default_rng(3).normal(0.0, 2.0, size=400)
    with pm.Model() as model:
        precision = pm.Gamma("precision", 2.0, 1.0)
        pm.Normal("y", 0.0, tau=precision, observed=y)
        step = AusterityMH(test="exact", proposal=CrankNicolsonProposal(0.9))
    draws = sample(step, model, draws=4_000, tune=300, chains=1).posterior["precision"].values
    posterior = stats.gamma(2.0 + 200.0, scale=1.0 / (1.0 + 0.5 * (y**2).sum()))
    ranks = posterior.cdf(draws.ravel())
    effective = 4_000 * 0.4
    for moment in (1, 2):
        error = np.mean(ranks**moment) - 1.0 / (moment + 1)
        assert abs(error) < 4.0 * np.std(ranks**moment) / np.sqrt(effective)
