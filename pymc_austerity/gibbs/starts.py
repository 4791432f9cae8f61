"""Where chains of binary variables start."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["flipped_at_random"]

_RETRIES = 10


def flipped_at_random(
    point: NDArray, is_possible: Callable[[NDArray], bool], rng: np.random.Generator
) -> NDArray:
    """Overdispersed start: every entry is zero or one with probability one half.

    Parameters
    ----------
    point : int array, shape (d,)
        Common starting point of the chains.
    is_possible : callable
        Whether the log-density at a point is finite.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    int array, shape (d,)
        The first possible one of ten candidates, each with half as many flips as the previous one;
        the point itself if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> start = np.zeros(4, dtype=int)
    >>> flipped_at_random(start, lambda point: point[0] == 0, np.random.default_rng(2))
    array([0, 0, 1, 1])
    """
    probability = 0.5
    for _ in range(_RETRIES):
        candidate = np.where(rng.random(point.size) < probability, 1 - point, point)
        candidate = candidate.astype(point.dtype)
        if is_possible(candidate):
            return candidate
        probability /= 2.0
    return point
