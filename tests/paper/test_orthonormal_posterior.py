"""Orthonormal matrices through pm.sample, against what is known of the posterior."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import softmax

from pymc_austerity.paper import StiefelProposal, UniformStiefel
from tests.paper.special_models import matrices_of_the_plane, over_chains, rotated_rows
from tests.running import built, sample


def sampled(model, draws, **settings):
    step = built(model, proposal=StiefelProposal(), control_variates=None, **settings)
    W = sample(step, model, draws=draws, tune=1_000, random_seed=1).posterior["W"].values
    gram = np.swapaxes(W, -1, -2) @ W
    assert np.abs(gram - np.eye(W.shape[-1])).max() < 1e-12
    return W


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.exhaustive
def test_posterior_of_a_rotation_of_the_plane(p):
    """Mean matrix and share of the determinants, by quadrature over the angle."""
    model, log_likelihoods = rotated_rows(n_rows=40, p=p, noise=4.0)
    matrices = matrices_of_the_plane(p)
    weights = softmax(log_likelihoods(matrices))
    W = sampled(model, 8_000, epsilon=0.0)
    found, error = over_chains(W)
    expected = np.tensordot(weights, matrices, 1)
    assert (error < 0.05).all()
    assert (np.abs(found - expected) < 4 * error).all()
    if p == 2:
        share, error = over_chains(np.linalg.det(W) > 0)
        assert 0.2 < share < 0.8
        assert abs(share - weights[:1_000].sum()) < 4 * error


@pytest.mark.exhaustive
def test_without_information_the_chain_is_uniform():
    """The law of an entry is known: its square is Beta; so are the moments of the trace."""
    with pm.Model() as model:
        W = UniformStiefel("W", n=3)
        pm.Normal("y", 0.0 * W[0, 0], 1.0, observed=np.zeros(20))
    W = sampled(model, 10_000, epsilon=0.0)
    for function, expected in [
        (lambda w: w**2, np.full((3, 3), 1 / 3)),
        (lambda w: w, np.zeros((3, 3))),
        (lambda w: np.trace(w, axis1=2, axis2=3) ** 2, 1.0),
        (lambda w: np.linalg.det(w) > 0, 0.5),
    ]:
        found, error = over_chains(function(W))
        assert (np.abs(found - expected) < 4 * error).all()
    for i, j in [(0, 0), (1, 2)]:
        thinned = W[:, ::40, i, j].ravel() ** 2
        assert stats.kstest(thinned, stats.beta(0.5, 1.0).cdf).pvalue > 1e-4
