"""Fields of binary variables, small enough to enumerate, and a plain Gibbs sampler."""

from itertools import combinations, product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import softmax

N_ENTRIES = 10
CONFIGURATIONS = np.array(list(product([0, 1], repeat=N_ENTRIES)))


def triples_field(spread=0.15, seed=1, n_entries=N_ENTRIES):
    """A factor for each triple of entries."""
    i, j, k = np.array(list(combinations(range(n_entries), 3))).T
    table = np.random.default_rng(seed).normal(0.0, spread, size=(i.size, 8))
    with pm.Model() as model:
        x = pm.Bernoulli("x", np.linspace(0.3, 0.7, n_entries), shape=n_entries)
        pm.Potential("factors", pt.constant(table)[np.arange(i.size), 4 * x[i] + 2 * x[j] + x[k]])
    return model


def pairs_grid(shape=(2, 5), seed=2):
    """Spins on a grid of two axes, a factor for each pair, and their strength unknown."""
    rows, columns = np.unravel_index(np.arange(np.prod(shape)), shape)
    i, j = np.triu_indices(rows.size, k=1)
    strength = np.random.default_rng(seed).normal(0.0, 0.3, size=i.size)
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.5, shape=shape)
        theta = pm.Normal("theta", 1.0, 0.5)
        spins = 2 * x - 1
        pm.Potential(
            "factors", theta * strength * spins[rows[i], columns[i]] * spins[rows[j], columns[j]]
        )
    return model


def regression(n_rows=300, seed=3):
    """Binary variables choose which coefficients, known but for that, take part."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 4))
    x[:, 1] += 0.5 * x[:, 0]
    weights = np.array([0.15, 0.1, 0.1, -0.05])
    y = x @ (weights * [1, 0, 1, 0]) + rng.normal(size=n_rows)
    with pm.Model() as model:
        gamma = pm.Bernoulli("gamma", 0.3, shape=4)
        pm.Normal("y", x @ (gamma * weights), 1.0, observed=y)
    return model


def probabilities(model, name, configurations=CONFIGURATIONS, shape=None):
    """Probability of every configuration, from the model's own log-density."""
    log_density = model.compile_logp()
    return softmax([log_density({name: c.reshape(shape or c.shape)}) for c in configurations])


def plain_gibbs(log_density, start, n_sweeps, rng, scan="systematic"):
    """Gibbs sampling on the full log-density, in its plainest form."""
    x, chain = np.array(start), []
    for _ in range(n_sweeps):
        entries = np.arange(x.size)
        if scan == "random":
            entries = rng.integers(x.size, size=x.size)
        for entry, u in zip(entries, rng.random(x.size), strict=True):
            one, zero = x.copy(), x.copy()
            one[entry], zero[entry] = 1, 0
            x = one if np.log(u / (1 - u)) < log_density(one) - log_density(zero) else zero
        chain.append(x)
    return np.array(chain)
