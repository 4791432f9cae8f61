"""Small models on which only special moves work, with posteriors known by other means."""

from itertools import product

import numpy as np
import pymc as pm
from scipy import stats
from scipy.special import comb

from pymc_austerity.paper import InclusionIndicators, SpikeAndSlab, UniformStiefel

SLAB, NOISE, RATE = 0.35, 1.0, 2.0


def rotated_rows(n_rows, p, noise, seed=1):
    """Rows of two numbers, seen rotated and noisy; with p=1, only one of the two.

    Returns the model, and the log-likelihoods of matrices.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 2))
    y = x @ np.array([[0.6, -0.8], [0.8, 0.6]])[:, :p] + noise * rng.normal(size=(n_rows, p))
    with pm.Model() as model:
        W = UniformStiefel("W", n=2, p=p)
        pm.Normal("y", pm.math.dot(x, W), noise, observed=y)

    def log_likelihoods(matrices):
        return -0.5 * ((y - x @ matrices) ** 2).sum(axis=(1, 2)) / noise**2

    return model, log_likelihoods


def matrices_of_the_plane(p, n_angles=1_000):
    """All matrices with p orthonormal columns in two dimensions, on a grid of angles."""
    a = (np.arange(n_angles) + 0.5) * 2 * np.pi / n_angles
    turn = np.moveaxis(np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]), 2, 0)
    return turn[:, :, :1] if p == 1 else np.concatenate([turn, turn * np.array([1.0, -1.0])])


def regression(n_rows, seed=2):
    """A linear regression with eight coefficients, of which few are in the model."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 8))
    x[:, 1] += 0.7 * x[:, 0]
    beta = np.array([0.5, 0.0, 0.25, 0.0, 0.0, 0.15, 0.0, 0.0]) * np.sqrt(150 / n_rows)
    y = x @ beta + NOISE * rng.normal(size=n_rows)
    with pm.Model() as model:
        gamma = InclusionIndicators("gamma", 8, pm.Poisson.dist(RATE))
        beta = SpikeAndSlab("beta", gamma, pm.Normal.dist(0.0, SLAB * np.sqrt(150 / n_rows)))
        pm.Normal("y", pm.math.dot(x, beta), NOISE, observed=y)
    return model, x, y


def enumerated(x, y):
    """Inclusion probabilities and mean coefficients, from the evidence of all 256 models."""
    n_rows, n = x.shape
    spread = SLAB * np.sqrt(150 / n_rows)
    subsets = np.array(list(product([False, True], repeat=n)))
    log_weights, means = np.empty(len(subsets)), np.zeros(subsets.shape)
    for i, subset in enumerate(subsets):
        k, inside = subset.sum(), x[:, subset]
        precision = inside.T @ inside / NOISE**2 + np.eye(k) / spread**2
        means[i, subset] = np.linalg.solve(precision, inside.T @ y / NOISE**2)
        log_evidence = 0.5 * means[i, subset] @ precision @ means[i, subset]
        log_evidence -= 0.5 * np.linalg.slogdet(precision)[1] + k * np.log(spread)
        log_weights[i] = log_evidence + stats.poisson(RATE).logpmf(k) - np.log(comb(n, k))
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    return weights @ subsets, weights @ means


def mean_and_error(values, n_batches=50):
    """Mean over chains and draws, and its standard error from the means of batches.

    `values` has shape (chains, draws, ...).
    """
    chains, draws, *rest = values.shape
    batches = values.reshape(chains * n_batches, draws // n_batches, *rest).mean(axis=1)
    return batches.mean(axis=0), batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
