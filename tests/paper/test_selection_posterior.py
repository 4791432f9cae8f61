"""Variable selection through pm.sample, against the evidence of all models."""

import numpy as np
import pymc as pm
import pytest

from pymc_austerity.paper import ReversibleJumpProposal, SpikeAndSlab
from tests.paper.special_models import enumerated, over_chains, regression
from tests.running import built, sample


def sampled(model, draws, **settings):
    proposal = ReversibleJumpProposal("beta", "gamma")
    step = built(model, proposal=proposal, control_variates=None, **settings)
    posterior = sample(step, model, draws=draws, tune=2_000, random_seed=1).posterior
    gamma, beta = posterior["gamma"].values, posterior["beta"].values
    assert gamma.dtype == np.int64
    np.testing.assert_array_equal(beta != 0.0, gamma == 1)
    return posterior


def assert_close(found, expected, *, more=0.0):
    mean, error = over_chains(found)
    assert (error < 0.04).all()
    assert (np.abs(mean - expected) <= 4 * error + more).all()


@pytest.mark.exhaustive
def test_inclusion_probabilities_and_means_of_256_models():
    model, x, y = regression(150)
    inclusion, means = enumerated(x, y)
    assert ((inclusion > 0.05) & (inclusion < 0.95)).sum() >= 6
    posterior = sampled(model, 30_000, epsilon=0.0)
    assert_close(posterior["gamma"].values, inclusion, more=0.001)  # one is never out
    assert_close(posterior["beta"].values, means)


@pytest.mark.exhaustive
def test_mini_batches_come_close():
    model, x, y = regression(20_000)
    inclusion, _ = enumerated(x, y)
    posterior = sampled(model, 8_000, epsilon=0.01)
    assert_close(posterior["gamma"].values, inclusion, more=0.05)


def test_independent_inclusion_a_laplace_slab_and_other_unknowns(rng):
    """One coefficient and a mean: all of the posterior by quadrature."""
    x = rng.normal(size=60)
    y = 1.0 + 0.25 * x + rng.normal(size=60)
    with pm.Model() as model:
        gamma = pm.Bernoulli("gamma", 0.3, shape=1)
        beta = SpikeAndSlab("beta", gamma, pm.Laplace.dist(0.0, 0.5))
        mean = pm.Normal("mean", 0.0, 2.0)
        pm.Normal("y", mean + x[:, None] @ beta, 1.0, observed=y)
    m, b = np.meshgrid(np.linspace(0, 2, 201), np.linspace(-1, 1.5, 251), indexing="ij")

    def log_likelihood(m, b):
        return -0.5 * ((y - m[..., None] - b[..., None] * x) ** 2).sum(axis=-1) - m**2 / 8

    without = np.exp(log_likelihood(m[:, 0], np.zeros(201)) + 30).sum() * 0.7
    within = np.exp(log_likelihood(m, b) + 30 - np.abs(b) / 0.5) * 0.3 * 0.01
    total = without + within.sum()
    posterior = sampled(model, 15_000, epsilon=0.0)
    assert_close(posterior["gamma"].values, within.sum() / total)
    assert_close(posterior["beta"].values, (within * b).sum() / total)
    of_mean = (np.exp(log_likelihood(m[:, 0], np.zeros(201)) + 30) * m[:, 0]).sum() * 0.7
    assert_close(posterior["mean"].values, (of_mean + (within * m).sum()) / total)
