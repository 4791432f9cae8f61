"""The first numbers of a random permutation, without a list of all of them."""

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["chances", "first_of_permutation"]

_ODD, _FIRST, _SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
_DENSE = 4
"""A list of all numbers is made if at least one in this many of them is drawn."""


@numba.njit(cache=True)
def _uniform(key: int, k: int) -> float:
    """The k-th number in [0, 1) of the generator SplitMix64 whose seed is a key."""
    x = np.uint64(key) + _ODD * np.uint64(k + 2)
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    x = x ^ (x >> np.uint64(31))
    return float(x >> np.uint64(11)) * 2.0**-53


@numba.njit(cache=True)
def chances(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """A number in [0, 1) for each key, independent of the permutation of this key."""
    numbers = np.empty(keys.size)
    for i in range(keys.size):
        numbers[i] = _uniform(keys[i], -1)
    return numbers


@numba.njit(cache=True)
def first_of_permutation(n: int, m: int, key: int) -> NDArray[np.int64]:
    """The first m numbers of the random permutation of 0, 1, ..., n - 1 that a key determines.

    Parameters
    ----------
    n, m : int
        Length of the permutation, and how many of its numbers to draw, at most n.
    key : int
        A random number, drawn anew for each permutation.

    Returns
    -------
    int array, shape (m,)
        With a smaller m, the beginning of the same array.

    Notes
    -----
    The shuffle of Fisher and Yates. A table holds the places that were swapped; every other place
    has its own number. Random numbers are those of SplitMix64 (Steele, Lea and Flood, 2014).

    References
    ----------
    Steele, G. L., Lea, D. and Flood, C. H. (2014). Fast splittable pseudorandom number generators.
    OOPSLA.

    Examples
    --------
    >>> sorted(first_of_permutation(5, 5, 123).tolist())
    [0, 1, 2, 3, 4]
    """
    numbers = np.empty(m, dtype=np.int64)
    if _DENSE * m >= n:
        every = np.arange(n)
        for k in range(m):
            j = k + int(_uniform(key, k) * (n - k))
            numbers[k], every[j] = every[j], every[k]
        return numbers
    size = 2
    while size < 4 * m:
        size *= 2
    places, contents = np.full(size, -1), np.empty(size, dtype=np.int64)
    for k in range(m):
        j = k + int(_uniform(key, k) * (n - k))
        slot, own = _slot(places, j), _slot(places, k)
        moved = contents[own] if places[own] == k else k
        numbers[k] = contents[slot] if places[slot] == j else j
        places[slot], contents[slot] = j, moved
    return numbers


@numba.njit(cache=True)
def _slot(places: NDArray[np.int64], place: int) -> int:
    """Where a place is in the table, or would be: the next free slot after its own."""
    last = places.size - 1
    slot = int((np.uint64(place) * _ODD) >> np.uint64(40)) & last
    while places[slot] != place and places[slot] >= 0:
        slot = (slot + 1) & last
    return slot
