"""Regressions on columns as they come: the checks at set-up pass for every family and link."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_austerity.model import Kernel, differences_agree, find_predictors, kernel_of, verify
from tests.model.splitting import at_start

N_ROWS = 80
COUNTS = np.arange(N_ROWS) % 5
SHARES = (np.arange(N_ROWS) + 1.0) / (N_ROWS + 2.0)


def three_categories(eta):
    return pt.stack([pt.zeros_like(eta), eta, -eta], axis=1)


FAMILIES = {
    "logit": lambda eta: pm.Bernoulli("y", logit_p=eta, observed=COUNTS % 2),
    "sigmoid": lambda eta: pm.Bernoulli("y", p=pm.math.sigmoid(eta), observed=COUNTS % 2),
    "written": lambda eta: pm.Bernoulli("y", p=1 / (1 + pt.exp(-eta)), observed=COUNTS % 2),
    "probit": lambda eta: pm.Bernoulli("y", p=pm.math.invprobit(eta), observed=COUNTS % 2),
    "cloglog": lambda eta: pm.Bernoulli("y", p=1 - pt.exp(-pt.exp(eta)), observed=COUNTS % 2),
    "binomial": lambda eta: pm.Binomial("y", n=COUNTS + 2, logit_p=eta, observed=COUNTS),
    "poisson": lambda eta: pm.Poisson("y", pt.exp(eta), observed=COUNTS),
    "negative_binomial": lambda eta: pm.NegativeBinomial(
        "y", mu=pt.exp(eta), alpha=pm.Exponential("alpha", 1.0), observed=COUNTS
    ),
    "zero_inflated": lambda eta: pm.ZeroInflatedNegativeBinomial(
        "y", psi=0.6, mu=pt.exp(eta), alpha=2.0, observed=COUNTS
    ),
    "gamma": lambda eta: pm.Gamma("y", 2.0, 2.0 / pt.exp(eta), observed=COUNTS + 0.5),
    "beta": lambda eta: pm.Beta("y", mu=pm.math.sigmoid(eta), nu=5.0, observed=SHARES),
    "ordered": lambda eta: pm.OrderedLogistic("y", eta, [-1.0, 0.0, 1.0, 2.0], observed=COUNTS),
    "categorical": lambda eta: pm.Categorical(
        "y", logit_p=three_categories(eta), observed=COUNTS % 3
    ),
    "softmax": lambda eta: pm.Categorical(
        "y", p=pm.math.softmax(three_categories(eta), axis=1), observed=COUNTS % 3
    ),
    "normal": lambda eta: pm.Normal("y", eta, pm.HalfNormal("sigma"), observed=SHARES),
}  # fmt: skip


@pytest.mark.few(
    "normal-100.0",
    "normal-10000.0",
    "poisson-100.0",
    "gamma-100.0",
    "probit-100.0",
    "softmax-100.0",
    "binomial-100.0",
    "poisson-10000.0",
)
@pytest.mark.parametrize("scale", [1e2, 1e4])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_written_for_rows_is_found_right(family, scale, rng):
    columns = scale * rng.normal(size=(N_ROWS, 3))
    with pm.Model() as model:
        FAMILIES[family](pm.Normal("a") + columns @ pm.Normal("b", shape=3))
    at = at_start(model)
    verified = verify(at.likelihood, at.point, rng=rng)
    kernel = kernel_of(find_predictors(at), 0)
    assert isinstance(kernel, Kernel), kernel
    assert differences_agree(kernel.differences, at, verified, rng)


def test_few_digits_of_a_log_likelihood_are_no_dependence_of_rows(rng):
    """Those of a beta-binomial with a count of 1e-13, in PyMC's formula and in the cut one."""
    columns = 2_000.0 + 100.0 * rng.normal(size=(N_ROWS, 3))
    with pm.Model():
        p = pm.math.sigmoid(pm.Normal("a") + columns @ pm.Normal("b", shape=3, initval=[0.005] * 3))
        pm.BetaBinomial("y", n=10, alpha=5.0 * p, beta=5.0 * (1.0 - p), observed=10 - COUNTS % 2)
        at = at_start(pm.modelcontext(None))
    verify(at.likelihood, at.point, rng=rng)
