"""Independent component analysis: four mixed signals, and a random walk on rotations.

The model of section 6.2 of the paper: with whitened signals x and orthonormal W,

    p(x | W) = prod_j 1 / (4 cosh^2(w_j' x / 2)),   W uniform on orthonormal matrices,

and the proposal W expm(A) with a random skew-symmetric A, which is symmetric.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from examples.shared.triples import Question

Floats = NDArray[np.float64]

N_SIGNALS = 4
STEP = 1.0  # in units of 1 / sqrt(rows): the posterior's scale


def mix(n_rows: int, rng: np.random.Generator) -> Floats:
    """Two signals with heavy tails and two normal ones, mixed; shape (n_rows, 4)."""
    heavy, normal = rng.laplace(size=(n_rows, 2)), rng.normal(size=(n_rows, 2))
    return np.column_stack([heavy, normal]) @ rng.normal(size=(N_SIGNALS, N_SIGNALS))


def whitened(signals: Floats) -> Floats:
    """Linear transform with mean 0 and unit covariance."""
    centered = signals - signals.mean(axis=0)
    _, scales, axes = np.linalg.svd(centered, full_matrices=False)
    return centered @ (axes.T / scales) * np.sqrt(len(signals))


def log_likelihood(weights: Floats, signals: Floats) -> Floats:
    """Log-density of every row, shape (n_rows,); the rows of the weights are orthonormal."""
    half = np.abs(signals @ weights.T) / 2.0
    return -2.0 * np.sum(half + np.log1p(np.exp(-2.0 * half)), axis=1)


def rotate(weights: Floats, scale: float, rng: np.random.Generator) -> Floats:
    """A random rotation; as likely as the one back."""
    normal = rng.normal(scale=scale, size=weights.shape)
    return weights @ expm(np.triu(normal, 1) - np.triu(normal, 1).T)


def decisions(
    signals: Floats, n: int, thin: int, rng: np.random.Generator
) -> Iterator[tuple[Question, Floats]]:
    """Decisions of exact Metropolis-Hastings and their differences, one in `thin`.

    The chain starts at the best of a short random search and is left to settle for as long as it
    takes to make a tenth of the decisions.
    """
    weights = settled(signals, rng)
    current = log_likelihood(weights, signals)
    for step in range((n + n // 10) * thin):
        proposed = rotate(weights, STEP / np.sqrt(len(signals)), rng)
        log_u = np.log1p(-rng.random())
        at_proposed = log_likelihood(proposed, signals)
        differences = at_proposed - current
        if step >= (n // 10) * thin and step % thin == 0:
            yield Question(weights.ravel(), proposed.ravel(), log_u, log_u), differences
        if differences.sum() > log_u:
            weights, current = proposed, at_proposed


def settled(signals: Floats, rng: np.random.Generator) -> Floats:
    """A point near a mode: a walk that only climbs, with steps that get smaller."""
    some = signals[:20_000]
    weights = np.eye(N_SIGNALS)
    best = log_likelihood(weights, some).sum()
    for scale in np.geomspace(1.0, STEP / np.sqrt(len(signals)), 600):
        proposed = rotate(weights, scale, rng)
        value = log_likelihood(proposed, some).sum()
        if value > best:
            weights, best = proposed, value
    return weights
