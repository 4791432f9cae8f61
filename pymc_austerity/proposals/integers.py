"""Moves on integer and categorical entries, as PyMC's Metropolis samplers make them."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["integer_moves"]

_SMALLEST_SD = 0.5
"""Below this, a rounded normal step would hardly ever move."""


def integer_moves(
    moves: NDArray[np.float64],
    sds: NDArray[np.float64],
    point: NDArray,
    n_categories: NDArray[np.int64],
    scaling: float,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Turn the real moves of integer entries into symmetric integer ones.

    Integers move by the rounded real move (as ``pymc.Metropolis``). Each binary or categorical
    entry changes with probability ``1 - 0.5**scaling`` (as ``pymc.BinaryMetropolis``), to each of
    the other categories with the same probability (as ``pymc.CategoricalGibbsMetropolis`` with
    its uniform proposal).

    Parameters
    ----------
    moves : float array, shape (d,)
        Normal moves; those of real entries are returned unchanged.
    sds : float array, shape (d,)
        Their standard deviations; those of integers are raised to at least 0.5.
    point : array, shape (d,)
        Where the move starts.
    n_categories : int array, shape (d,)
        See `Layout`.
    scaling : float
        Size of the proposal.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    float array, shape (d,)
    """
    integer = n_categories > 0
    moves = np.where(integer, np.round(moves * np.maximum(1.0, _SMALLEST_SD / sds)), moves)
    categorical = np.flatnonzero(n_categories > 1)
    if categorical.size:
        changed = rng.random(categorical.size) < 1.0 - 0.5**scaling
        k = n_categories[categorical]
        shift = rng.integers(1, k)
        old = point[categorical].astype(np.int64)
        moves[categorical] = np.where(changed, (old + shift) % k - old, 0)
    return moves
