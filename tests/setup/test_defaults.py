"""AusterityMH as it comes: control variates, strata and the mixture find known posteriors."""

import re
from functools import cache

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy.optimize import minimize
from scipy.stats import binom

from pymc_austerity import (
    AusterityMH,
    AusterityWarning,
    ProposalMixture,
    RandomWalkProposal,
    SettingError,
)
from pymc_austerity.diagnostics import audit, report
from tests.running import built
from tests.running import sample as run
from tests.step_methods.models import normal_regression
from tests.step_methods.regressions import (
    covariates,
    logistic,
    normal_of_known_scale,
    regression,
    student_t,
)


def sample(model, step, **settings):
    return run(step, model, **({"draws": 4_000, "tune": 1_000, "random_seed": 7} | settings))


def moments(idata):
    """Mean, sd and effective draws of every entry of every variable, as three vectors."""
    rows = []
    for name in sorted(idata.posterior.data_vars):
        values = idata.posterior[name].values
        values = values.reshape(*values.shape[:2], -1)
        ess = np.atleast_1d(az.ess(idata, var_names=[name])[name].values).ravel()
        rows += [
            (values[..., k].mean(), values[..., k].std(), ess[k]) for k in range(values.shape[-1])
        ]
    return np.array(rows).T


def assert_agree(ours, reference, *, spreads=True):
    """Within 4 standard errors, of the means and (roughly, for a normal) of the sds."""
    mean, sd, ess = ours
    mean_0, sd_0, ess_0 = reference
    assert (np.abs(mean - mean_0) < 4 * np.sqrt(sd**2 / ess + sd_0**2 / ess_0)).all()
    too_wide = np.abs(np.log(sd / sd_0)) - 4 * np.sqrt(0.5 / ess + 0.5 / ess_0)
    assert not spreads or (too_wide < 0.02).all()


def closed_form(model):
    x = covariates(np.random.default_rng(20_000))
    y = np.asarray(model.rvs_to_values[model["y"]].data)
    covariance = np.linalg.inv(x.T @ x / 0.49 + np.eye(4))
    mean = covariance @ x.T @ y / 0.49
    return np.array([mean, np.sqrt(np.diag(covariance)), np.full(4, np.inf)])


@cache
def logistic_run():
    model = regression(logistic)
    return model, built(model), moments(sample(model, built(model)))


# ------------------------------------------------------------------ posteriors


@pytest.mark.few("settings0")
@pytest.mark.parametrize(
    "settings", [{}, {"control_variates": 1}, {"control_variates": 2}, {"sampling": "windows"}]
)
def test_closed_form_of_a_linear_regression(settings):
    model = regression(normal_of_known_scale)
    idata = sample(model, built(model, **settings))
    mean, sd, ess = moments(idata)
    assert ess.min() > (200 if settings.get("control_variates") == 1 else 1_000)
    assert_agree((mean, sd, ess), closed_form(model))
    stats = idata["sample_stats"]
    assert stats.attrs["control_variates"] == settings.get("control_variates", 2)
    if settings.get("control_variates") != 1:  # nothing is left after the second order
        assert stats["n_rows_used"].values.mean() < 1_000


# ------------------------------------------------------------------ decisions


def wrong_decisions(model, step, n=600, tune=300):
    """Number of audited decisions that were wrong, and of those audited."""
    idata = sample(model, step, draws=n, tune=tune, chains=1)
    stats = idata["sample_stats"]
    audited = stats["audited"].values
    return int((audited & ~stats["audit_agrees"].values).sum()), int(audited.sum()), idata


@pytest.mark.few("logistic-0.01")
@pytest.mark.parametrize("epsilon", [0.01, 0.05])
@pytest.mark.parametrize("family", [logistic, student_t])
def test_wrong_decisions_are_at_most_epsilon(family, epsilon):
    model = regression(family)
    n_wrong, n_audited, _ = wrong_decisions(model, built(model, audit=1.0, epsilon=epsilon))
    assert n_audited > 500
    assert n_wrong <= binom.isf(1e-4, n_audited, epsilon)


def rare_influence(n_rows=20_000):
    """Twenty rows know about ten coefficients: 0.1 % of the rows carry all of the residuals."""
    rng = np.random.default_rng(11)
    x = np.zeros((n_rows, 12))
    x[:, 0], x[:, 1] = 1.0, rng.normal(size=n_rows)
    rare = rng.choice(n_rows, 20, replace=False)
    x[rare, 2 + np.arange(20) % 10] = 3.0
    eta = x @ np.r_[0.3, -0.2, rng.normal(0.0, 0.5, size=10)]
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 2.0, shape=12)
        observed = (rng.random(n_rows) < 1 / (1 + np.exp(-eta))).astype("int8")
        pm.Bernoulli("y", logit_p=x @ beta, observed=observed)
    return model


@pytest.mark.exhaustive
def test_strata_repair_what_uniform_samples_get_wrong():
    model = rare_influence()
    walk = {"proposal": RandomWalkProposal(), "audit": 1.0}
    by_influence, n_audited, idata = wrong_decisions(model, built(model, epsilon=0.05, **walk))
    with pytest.warns(AusterityWarning, match="NOT Student's t"):
        step = built(model, sampling="windows", epsilon=0.05, **walk)
    with pytest.warns(AusterityWarning, match="decisions were wrong, more than"):
        uniform, n_audited_0, of_uniform = wrong_decisions(model, step)
    assert min(n_audited, n_audited_0) > 500
    assert by_influence <= binom.isf(1e-4, n_audited, 0.05)
    assert uniform > binom.isf(1e-4, n_audited_0, 0.05)
    assert of_uniform["sample_stats"].attrs["normality"] == "failed"
    assert all("NOT normal enough" in words for words in (repr(step), report(of_uniform)))
    with pytest.warns(AusterityWarning, match="audited decisions were wrong"):
        audit(of_uniform)
    audit(idata)  # does not warn: warnings are errors here
    assert idata["sample_stats"]["n_rows_used"].values.mean() < 2_000


def test_explain_says_what_was_chosen():
    step = built(regression(logistic), epsilon=0.05)
    what, cost, *details = step.explain().splitlines()
    assert "(Student's t-test with epsilon=0.05); expected share of wrong decisions: " in what
    rows = r"typically \d+ of 20,000 rows per decision(, \d+ on average)?"
    assert re.match(rf"Cost: {rows}; set-up took [\d.]+ s.", cost)
    assert details[0] == "Control variates of order 2 about the mode."
    assert details[1].startswith("20,000 rows sampled by influence in")
    assert "Proposals: ProposalMixture." in details


# ------------------------------------------------------------------ the user's own anchor


def test_the_anchor_is_the_mode_and_close_to_the_posterior():
    model, step, (mean, sd, _) = logistic_run()
    log_density, slope = model.compile_logp(), model.compile_dlogp()
    mode = minimize(
        lambda beta: -log_density({"beta": beta}),
        np.zeros(4),
        jac=lambda beta: -slope({"beta": beta}),
        options={"gtol": 1e-3},
    ).x
    np.testing.assert_allclose(step.anchor.point, mode, atol=0.05 * sd.min())
    np.testing.assert_allclose(step.anchor.point, mean, atol=0.3 * sd.min())
    covariance = step.anchor.root @ step.anchor.root.T
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), sd, rtol=0.1)


ANCHOR = {"beta": [0.5, -0.3, 0.2], "sigma": 1.1}


def test_anchor_as_a_dictionary_of_constrained_values():
    step = built(normal_regression(), anchor=ANCHOR)
    np.testing.assert_allclose(step.anchor.point, [0.5, -0.3, 0.2, np.log(1.1)])
    assert "about the anchor given" in step.explain()


@pytest.mark.exhaustive
def test_anchor_from_an_earlier_run():
    model = normal_regression()
    earlier = sample(model, built(model), draws=200, tune=200)
    step = built(model, anchor=earlier)
    posterior = earlier.posterior
    expected = np.r_[
        posterior["beta"].mean(("chain", "draw")).values,
        np.log(posterior["sigma"].mean(("chain", "draw")).values),
    ]
    np.testing.assert_allclose(step.anchor.point, expected)


def test_anchor_must_be_complete_and_a_point():
    model = normal_regression()
    with pytest.raises(SettingError, match="lacks 'sigma'"):
        built(model, anchor={"beta": np.zeros(3)})
    with pytest.raises(SettingError, match="not negative definite"):
        built(model, control_variates=2, anchor={"beta": [50.0, 0.0, 0.0], "sigma": 1.0})


# ------------------------------------------------------------------ proposals


def test_the_mixture_takes_the_independence_sampler_where_it_can():
    model, step, _ = logistic_run()
    assert isinstance(step.proposal, ProposalMixture)
    idata = sample(model, step, draws=400, tune=600)
    scaling = idata["sample_stats"]["scaling"].values
    assert (scaling == 1.0).mean() > 0.8
    assert idata["sample_stats"]["accepted"].values.mean() > 0.7


def test_a_product_within_a_row_has_second_derivatives_from_its_formula():
    """Stages of an ordinal response: PyTensor raises a TypeError where it joins the derivatives."""
    rng = np.random.default_rng(21)
    x, y = rng.normal(size=5_000), rng.integers(3, size=5_000)
    with pm.Model():
        passed = pm.math.invlogit(pm.Normal("cut", shape=2) - pm.Normal("b") * x[:, None])
        last = pm.math.prod(1.0 - passed, axis=1, keepdims=True)
        stages = [passed[:, :1], passed[:, 1:] * (1.0 - passed[:, :1]), last]
        pm.Categorical("y", p=pm.math.concatenate(stages, axis=1), observed=y)
        step = AusterityMH()
    assert "Control variates of order 2" in step.explain()
