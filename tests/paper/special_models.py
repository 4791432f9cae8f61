"""Small models on which only special moves work, with posteriors known by other means."""

from itertools import product

import numpy as np
import pymc as pm
from scipy import stats
from scipy.special import comb, softmax

from pymc_austerity.paper import InclusionIndicators, SpikeAndSlab, UniformStiefel
from tests.references import mean_and_error

SLAB, RATE = 0.35, 2.0


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
    y = x @ beta + rng.normal(size=n_rows)
    with pm.Model() as model:
        gamma = InclusionIndicators("gamma", 8, pm.Poisson.dist(RATE))
        beta = SpikeAndSlab("beta", gamma, pm.Normal.dist(0.0, SLAB * np.sqrt(150 / n_rows)))
        pm.Normal("y", pm.math.dot(x, beta), 1.0, observed=y)
    return model, x, y


def all_models(x, y, spread, rate):
    """Every subset of the columns, its weight, and the mean and precision of its coefficients.

    The noise is of variance one, and weights are the evidence by the prior.
    """
    n = x.shape[1]
    subsets = np.array(list(product([False, True], repeat=n)))
    log_weights, parts = [], []
    for subset in subsets:
        k, inside = subset.sum(), x[:, subset]
        precision = inside.T @ inside + np.eye(k) / spread**2
        mean = np.linalg.solve(precision, inside.T @ y)
        log_evidence = 0.5 * (mean @ precision @ mean - np.linalg.slogdet(precision)[1])
        log_evidence -= k * np.log(spread)
        log_weights.append(log_evidence + stats.poisson(rate).logpmf(k) - np.log(comb(n, k)))
        parts.append((mean, precision))
    return subsets, softmax(log_weights), parts


def enumerated(x, y):
    """Inclusion probabilities and mean coefficients, from the evidence of all 256 models."""
    subsets, weights, parts = all_models(x, y, SLAB * np.sqrt(150 / len(x)), RATE)
    means = np.zeros(subsets.shape)
    means[subsets] = np.concatenate([mean for mean, _ in parts])
    return weights @ subsets, weights @ means


def over_chains(values):
    """Mean over chains and draws, shape (chains, draws, ...), and its standard error."""
    return mean_and_error(np.concatenate(values), 50 * len(values))
