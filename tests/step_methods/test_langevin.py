"""Langevin moves in a step method: gradients, posteriors, statistics, refusals."""

import functools
import warnings

import numpy as np
import pymc as pm
import pytensor
import pytest
from scipy.special import expit

from pymc_austerity import AusterityMH, AusterityWarning, LangevinProposal, SettingError
from pymc_austerity.sequential import BarkerTest
from tests.model.splitting import bessel, by_name
from tests.references import moments_of
from tests.running import assert_moments, built, refused_in_a_sentence, sample, walk
from tests.step_methods.models import groups, normal_mean, normal_regression, switch_point
from tests.zoo.registry import written

PAPER = {"control_variates": None, "sampling": "windows", "batch_size": 100}
SLOW = {"compile_kwargs": {"mode": "FAST_COMPILE"}}  # quick to compile
N_ROWS = 300


@functools.cache
def rows_of_logistic(n_columns=1):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(N_ROWS, n_columns))
    return x, rng.binomial(1, expit(x @ np.linspace(0.8, -0.4, n_columns)))


def logistic(n_columns=1):
    x, y = rows_of_logistic(n_columns)
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 1.0, shape=n_columns)
        pm.Bernoulli("y", logit_p=x @ beta, observed=y)
    return model


def gradients_of(model, langevin=None, **settings):
    """A step method and its gradients; where it takes no steps it need not be fast."""
    step = built(model, proposal=langevin or LangevinProposal(batch_size=50), **settings)
    return step, step.proposal.gradients


class TestGradients:
    @pytest.mark.few("logistic")
    @pytest.mark.parametrize("build", [normal_regression, groups, logistic])
    def test_all_rows_give_that_of_the_model(self, build, rng):
        model = build()
        step, gradients = gradients_of(model, LangevinProposal(batch_size="all"), **PAPER, **SLOW)
        expected = model.compile_dlogp()
        for _ in range(3):
            point = rng.normal(scale=0.5, size=step.target.start.size)
            values = by_name(point, model.value_vars, model.initial_point())
            found = gradients.draw(rng)(point)
            np.testing.assert_allclose(found, expected(values), rtol=1e-8, atol=1e-8)
        assert gradients.batch_size == step.n_rows == step.proposal.n_rows_read

    @pytest.mark.few("None", "2")
    @pytest.mark.parametrize("order", [None, 1, 2])
    def test_mini_batches_give_what_the_formula_says(self, order, rng):
        """Brute force, for the rows of the mini-batch, read off the design matrix."""
        x, y = rows_of_logistic(2)
        step, gradients = gradients_of(logistic(2), control_variates=order, batch_size=150, **SLOW)

        def gradient(beta, x, y):
            return x.T @ (y - expit(x @ beta))

        def hessian(beta, x):
            p = expit(x @ beta)
            return -(x.T * p * (1 - p)) @ x

        for _ in range(3):
            batch, beta = gradients.draw(rng), rng.normal(size=2)
            (blocks,) = batch.args
            drawn = np.concatenate([next(a for a in b if a.ndim == 2) for b in blocks])
            rows = [np.flatnonzero((x == row).all(axis=1))[0] for row in drawn]
            assert len(rows) == 50 and len(set(rows)) > 35
            some = x[rows], y[rows]
            expected = N_ROWS / 50 * gradient(beta, *some) - beta
            if order:
                star = step.anchor.point
                expected += gradient(star, x, y) - N_ROWS / 50 * gradient(star, *some)
            if order and order > 1:  # gradients have terms up to the second order
                left = hessian(star, x) - N_ROWS / 50 * hessian(star, some[0])
                expected += left @ (beta - star)
            np.testing.assert_allclose(batch(beta), expected, rtol=1e-7, atol=1e-7)

    def test_single_precision(self, rng):
        with pytensor.config.change_flags(floatX="float32"):
            x, y = rows_of_logistic(2)
            with pm.Model() as model:
                beta = pm.Normal("beta", 0.0, 1.0, shape=2)
                pm.Bernoulli("y", logit_p=(x.astype("float32") * beta).sum(axis=1), observed=y)
                step = AusterityMH(proposal=LangevinProposal(batch_size=50), **PAPER, **SLOW)
            points = walk(step, model.initial_point(), 20)
            assert points.dtype == np.float32
            assert np.isfinite(points).all() and (points[-1] != 0.0).all()


@functools.cache
def exact():
    """Mean and standard deviation of the posterior of one coefficient, by quadrature."""
    x, y = rows_of_logistic()
    beta = np.linspace(-2.0, 4.0, 6_001)
    logit = np.outer(beta, x[:, 0])
    log_density = (y * logit - np.logaddexp(0.0, logit)).sum(axis=1) - 0.5 * beta**2
    return moments_of(log_density, beta)


RESIDUALS = {"epsilon": 1e-6, "control_variates": 2, "batch_size": 150}

VARIANTS = {
    "MALA": ({"batch_size": "all"}, {"epsilon": 0.0}),
    "small batches": ({"batch_size": 30}, {"epsilon": 0.0}),
    "small batches, fixed large steps": (
        {"batch_size": 150, "step_size": 0.02},
        {"epsilon": 0.0, "tune": False},
    ),
    "given preconditioner": (
        {"batch_size": 100, "preconditioner": [0.02]},
        {"epsilon": 0.0},
    ),
    "schedule": (
        {"batch_size": 100, "step_size": lambda n: 0.02 if n % 2 else 0.005},
        {"epsilon": 0.0},
    ),
    "control variates": ({"batch_size": 20}, RESIDUALS),
    "no control variates in the gradient": (
        {"batch_size": 100, "control_variates": False},
        RESIDUALS,
    ),
    "Barker": ({"batch_size": 30}, {"test": BarkerTest(), "batch_size": 100}),
}


@pytest.mark.few("control variates")
@pytest.mark.parametrize("variant", VARIANTS)
def test_posterior_is_that_of_quadrature(variant):
    of_proposal, of_step = VARIANTS[variant]
    model = logistic()
    step = built(model, proposal=LangevinProposal(**of_proposal), **of_step)
    idata = sample(step, model, draws=3_000, tune=700, random_seed=2)
    assert_moments(idata.posterior["beta"][..., 0], *exact(), at_least=100)


class TestContract:
    def test_step_size_is_tuned_and_then_kept(self):
        model = normal_mean()
        step, _ = gradients_of(model, **PAPER)
        idata = sample(step, model, tune=1_000, draws=1_000, discard_tuned_samples=False)
        tuned, kept = (idata[g]["scaling"] for g in ("warmup_sample_stats", "sample_stats"))
        assert len(np.unique(tuned[0])) > 500 and np.ptp(kept.values, axis=1).max() == 0.0
        assert float(idata.sample_stats["accepted"].mean()) == pytest.approx(0.574, abs=0.08)


class TestUncorrected:
    def test_statistics(self):
        model = normal_mean()
        langevin = LangevinProposal(step_size=1e-4, batch_size=20)
        step, _ = gradients_of(model, langevin, test=None, **PAPER)
        assert "no test" in step.summary
        statistics = sample(step, model)["sample_stats"]
        assert (statistics["accepted"] == 1.0).all()
        assert (statistics["n_rows_used"] == 0).all() and (statistics["n_looks"] == 0).all()
        assert not statistics["used_all_rows"].any() and not statistics["audited"].any()
        assert np.unique(statistics["scaling"]) == pytest.approx([1e-4])
        assert statistics.attrs["proposal_rows"] == 20

    def test_decreasing_steps_are_counted_from_the_start_of_every_chain(self):
        model = normal_mean()
        langevin = LangevinProposal(step_size=lambda n: 1e-3 / (1 + n))
        step, _ = gradients_of(model, langevin, test=None, **PAPER)
        for _ in range(2):
            scaling = sample(step, model, tune=10, draws=20)["sample_stats"]["scaling"].values
            np.testing.assert_allclose(scaling, [1e-3 / np.arange(11, 31)] * 2)

    @pytest.mark.few("normal_mean-1.0")
    @pytest.mark.parametrize(
        ("build", "step_size"),
        [
            (normal_mean, 1.0),  # grows until its density is zero, then stays where it is
            (normal_mean, lambda n: 1e300),  # never goes anywhere
            (logistic, 1.0),  # a bounded gradient throws it to and fro
        ],
    )
    def test_a_chain_that_runs_away_is_warned_of_once(self, build, step_size):
        model = build()
        langevin = LangevinProposal(step_size=step_size, batch_size=50)
        step, _ = gradients_of(model, langevin, test=None, **PAPER)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            step.set_rng(np.random.default_rng(1))
            walk(step, model.initial_point(), 300)
        (message,) = [str(w.message) for w in caught if w.category is AusterityWarning]
        assert "test=None diverges" in message and "step_size smaller than" in message

    @pytest.mark.few("normal_mean")
    @pytest.mark.parametrize("build", [normal_mean, logistic])
    def test_a_chain_that_follows_the_posterior_is_not_warned_of(self, build):
        model = build()
        step, _ = gradients_of(model, LangevinProposal(step_size=1e-4), test=None, **PAPER)
        with warnings.catch_warnings():
            warnings.simplefilter("error", AusterityWarning)
            step.set_rng(np.random.default_rng(1))
            walk(step, model.initial_point(), 300)


class TestRefusals:
    @staticmethod
    def refused(*words, build=logistic, langevin=None, **settings):
        with build(), refused_in_a_sentence(SettingError, *words):
            AusterityMH(proposal=langevin or LangevinProposal(), **settings, **PAPER, **SLOW)

    def test_discrete_variables(self):
        self.refused("'flip'", "'tau'", "discrete", build=switch_point)

    def test_no_step_size_without_test(self):
        self.refused("test=None", "step_size", test=None)

    def test_control_variates_that_are_not_there(self):
        langevin = LangevinProposal(batch_size=50, control_variates=True)
        self.refused("control_variates=True", "has none", langevin=langevin)

    def test_operations_without_gradient(self):
        self.refused("no gradient", "RandomWalkProposal()", build=lambda: written(bessel))
