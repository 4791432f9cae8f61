"""Slow, obviously right versions of what the package does."""

import math

import numpy as np
from scipy import stats
from scipy.special import softmax


def sequential_t_test(differences, order, log_threshold, epsilon, batch_size):
    """Algorithm 1 of Korattikara, Chen and Welling (2014), line by line.

    Returns (accept, rows used, looks, tail probability at the decision).
    """
    n_rows = len(differences)
    mu_0 = log_threshold / n_rows
    n_seen, n_looks = 0, 0
    while True:
        n_seen = min(n_seen + batch_size, n_rows)
        n_looks += 1
        seen = differences[order[:n_seen]]
        mean = seen.mean()
        if n_seen == n_rows:
            return bool(mean > mu_0), n_seen, n_looks, 0.0
        s = seen.std(ddof=1) / math.sqrt(n_seen) * math.sqrt(1 - (n_seen - 1) / (n_rows - 1))
        if s == 0:
            continue
        delta = 1 - stats.t.cdf(abs((mean - mu_0) / s), df=n_seen - 1)
        if delta < epsilon:
            return bool(mean > mu_0), n_seen, n_looks, delta


def metropolis(log_density, proposal, start, n_steps, rng):
    """Random-walk Metropolis on the full log-density, in its plainest form."""
    chain = [np.asarray(start, dtype=float)]
    for _ in range(n_steps):
        current = chain[-1]
        proposed = proposal(current, rng)
        log_ratio = log_density(proposed) - log_density(current)
        accept = math.log(rng.random()) < log_ratio
        chain.append(proposed if accept else current)
    return np.array(chain[1:])


def thinned(residuals, bounds, rng):
    """What each candidate of a Poisson process adds to a log weight, 0 where it is not kept."""
    phi = bounds - np.maximum(0.0, residuals)
    kept = rng.random(bounds.size) * bounds < phi
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(kept, np.log1p(residuals / phi), 0.0)


def log_weight(residuals, bounds, rng):
    """The log weight of a decision, from all its candidates."""
    return thinned(residuals, bounds, rng).sum()


def exact_decision(residuals, bounds, thinned, log_ratio, rng):
    """An exact decision with a Poisson variable for every thinned row; the others are summed."""
    phi = bounds - np.maximum(0.0, residuals)
    psi = phi + residuals
    counts = rng.poisson(np.where(thinned, phi, 0.0))
    with np.errstate(divide="ignore"):
        terms = np.where(counts > 0, counts * (np.log(psi) - np.log(phi)), 0.0)
    total = log_ratio + terms.sum() + residuals[~thinned].sum()
    return math.log(rng.random()) < total


def moments_of(log_density, values):
    """Mean and standard deviation of values, from a log-density on a grid, up to a constant."""
    weights = softmax(log_density)
    mean = (weights * values).sum()
    return mean, np.sqrt((weights * (values - mean) ** 2).sum())


def mean_and_error(values, n_batches=40):
    """Mean of a chain along its first axis, and its standard error from the means of batches."""
    batches = np.array([part.mean(axis=0) for part in np.array_split(values, n_batches)])
    return batches.mean(axis=0), batches.std(axis=0, ddof=1) / np.sqrt(n_batches)


def slopes_of(function, point, step=1e-5):
    """Central differences of a function along each entry of a point, stacked in front."""
    moves = step * np.eye(point.size)
    return np.array([(function(point + h) - function(point - h)) / (2 * step) for h in moves])
