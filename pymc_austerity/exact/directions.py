"""Directions of the whitened data of rows with one predictor."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 8
_SAMPLE = 20_000
_CHUNK = 20_000
_ROUNDING = 1e-7
"""Rounding error of an arc cosine near one."""


@dataclass(frozen=True, eq=False)
class Directions:
    """A few directions, and the one that is nearest to each row.

    Attributes
    ----------
    vectors : float array, shape (C, d)
        Unit vectors.
    nearest : int array, shape (N,)
        The direction nearest to each row, up to its sign.
    angles : float array, shape (N,)
        Bound of the angle to it, at most a right angle, radians.
    """

    vectors: NDArray[np.float64]
    nearest: NDArray[np.int64]
    angles: NDArray[np.float64]


def any_direction(n_rows: int, size: int) -> Directions:
    """One direction for rows of unknown direction: all are within a right angle of it."""
    vectors = np.eye(1, size)
    return Directions(vectors, np.zeros(n_rows, dtype=np.int64), np.full(n_rows, np.pi / 2))


def nearest_directions(
    whitened: NDArray[np.float64],
    weights: NDArray[np.float64],
    n_directions: int,
    rng: np.random.Generator,
) -> Directions:
    """Directions by spherical k-means, up to signs, on rows drawn in proportion to weights.

    Parameters
    ----------
    whitened : float array, shape (N, d)
        Gradients of the rows' predictors in whitened coordinates.
    weights : float array, shape (N,)
        Weight of the direction of each row; not negative.
    n_directions : int
    rng : numpy.random.Generator

    Examples
    --------
    >>> rows = np.array([[2.0, 0.0], [-1.0, 0.01], [0.0, 3.0]])
    >>> found = nearest_directions(rows, np.ones(3), 2, np.random.default_rng(0))
    >>> bool(found.nearest[0] == found.nearest[1] != found.nearest[2])
    True
    """
    return directions_of(whitened, _clustered(whitened, weights, n_directions, rng))


def directions_of(whitened: NDArray[np.float64], vectors: NDArray[np.float64]) -> Directions:
    """The nearest of given directions to each row.

    Parameters
    ----------
    whitened : float array, shape (N, d)
        Gradients of the rows' predictors in whitened coordinates.
    vectors : float array, shape (C, d)
        Unit vectors.
    """
    nearest = np.empty(len(whitened), dtype=np.int64)
    angles = np.empty(len(whitened))
    for start in range(0, len(whitened), _CHUNK):
        rows = slice(start, start + _CHUNK)
        cosines = abs(_unit(whitened[rows]) @ vectors.T)
        nearest[rows] = np.argmax(cosines, axis=1)
        angles[rows] = np.arccos(np.clip(cosines.max(axis=1), 0.0, 1.0))
    return Directions(vectors, nearest, np.minimum(angles + _ROUNDING, np.pi / 2))


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0.0, lengths, 1.0)


def _clustered(
    whitened: NDArray[np.float64],
    weights: NDArray[np.float64],
    n_directions: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    shares = (weights + 1e-3 * weights.mean() + np.finfo(float).tiny).astype(np.float64)
    sample = _unit(whitened[rng.choice(len(whitened), _SAMPLE, p=shares / shares.sum())])
    vectors = _far_apart(sample, n_directions, rng)
    for _ in range(_ROUNDS):
        cosines = sample @ vectors.T
        nearest = np.argmax(abs(cosines), axis=1)
        signs = np.sign(cosines[np.arange(_SAMPLE), nearest])
        sums = np.zeros_like(vectors)
        np.add.at(sums, nearest, signs[:, None] * sample)
        found = np.linalg.norm(sums, axis=1) > 0.0
        vectors = np.where(found[:, None], _unit(sums), vectors)
    return vectors


def _far_apart(
    sample: NDArray[np.float64], n: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Members of a sample, with probabilities that grow with the distance from earlier ones."""
    vectors = [sample[rng.integers(len(sample))]]
    squares = np.zeros(len(sample))
    for _ in range(n - 1):
        squares = np.maximum(squares, (sample @ vectors[-1]) ** 2)
        far = np.clip(1.0 - squares, 0.0, 1.0) + np.finfo(float).tiny
        vectors.append(sample[rng.choice(len(sample), p=far / far.sum())])
    return np.array(vectors)
