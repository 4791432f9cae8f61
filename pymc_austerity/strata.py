"""Strata: stretches of stored rows that are sampled separately; and rows in random order."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from pymc_austerity.parts import compiled_once, part


@dataclass(frozen=True, eq=False)
class Strata:
    """Sizes of the strata, and the number of rows that a decision first reads from each.

    Parameters
    ----------
    sizes : int array, shape (H,)
        Number of rows in each stratum, in storage order, :math:`N_h`.
    first_counts : int array, shape (H,)
        Number of rows of each that the first look reads: at least two, or all (a take-all stratum).

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.strata import Strata
    >>> strata = Strata(np.array([10, 990]), np.array([10, 90]))
    >>> strata.n_rows, strata.n_first, strata.offsets.tolist()
    (1000, 100, [0, 10])
    """

    sizes: NDArray[np.int64]
    first_counts: NDArray[np.int64]

    @classmethod
    def single(cls, n_rows: int, batch_size: int) -> "Strata":
        """One stratum: uniform samples."""
        return cls(np.array([n_rows]), np.array([batch_size]))

    def with_first_look(self, n_rows: int) -> "Strata":
        """The same strata with a first look of `n_rows` rows or more, at most all of them.

        As many times as many rows of each stratum, a power of two; small strata are read
        completely first.
        """
        counts = self.first_counts
        while counts.sum() < min(n_rows, self.n_rows):
            counts = np.minimum(2 * counts, self.sizes)
        return Strata(self.sizes, counts)

    @cached_property
    def n_rows(self) -> int:
        """Number of rows in all strata."""
        return int(self.sizes.sum())

    @cached_property
    def n_first(self) -> int:
        """Number of rows of the first look."""
        return int(self.first_counts.sum())

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Position of the first row of each stratum, shape (H,)."""
        return np.cumsum(self.sizes) - self.sizes


_SMALL, _FEW_ROUNDS, _MANY_ROUNDS = 1_000, 8, 16
_ODD, _FIRST, _SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
_HALF = np.uint64(32)


@part(types.uint64)
def mixed(number: Any) -> Any:
    """An unsigned integer whose bits look random: the generator SplitMix64 of such a state."""
    number = (number ^ (number >> np.uint64(30))) * _FIRST
    number = (number ^ (number >> np.uint64(27))) * _SECOND
    return number ^ (number >> np.uint64(31))


@part(types.int64)
def key_of(rng: np.random.Generator) -> int:
    """A random number that determines a permutation."""
    return int(rng.random() * 2.0**53)


@part(types.UniTuple(types.int64, 2))
def first_run(n_rows: int, n_runs: int, rng: np.random.Generator) -> tuple[int, int]:
    """Where the runs of a sample begin, and how far one lies from the next; see `place_in_runs`."""
    start = int(rng.random() * n_rows)
    return start, 1 + int(rng.random() * (n_runs - 1))


@part(types.int64)
def place_in_runs(k: Any, n_rows: int, n_runs: int, length: int, start: int, factor: int) -> Any:
    """Where the k-th row lies in a sample of runs, for numbers or arrays of them.

    Parameters
    ----------
    k : int
        Counted from 0.
    n_rows, n_runs, length : int
        Number of all rows, a prime number of runs, and the length of one.
    start, factor : int
        As in `pymc_austerity.rows.draws.Windows`.
    """
    run, rank = k // length, k % length
    is_run = run < n_runs  # rows that remain come last
    place = is_run * (run * factor % n_runs) + (1 - is_run) * run
    return (place * length + start + rank) % n_rows


@part(types.int64)
def drawn_number(k: int, n: int, key: int) -> int:
    """The k-th number of the random permutation of 0, 1, ..., n - 1 that a key determines.

    Compiled functions call it, and `first_of_permutation` does for Python.

    Parameters
    ----------
    k, n : int
        Place in the permutation, counted from 0, and its length.
    key : int
        A random number, drawn anew for each permutation.

    Notes
    -----
    A Feistel cipher on pairs of numbers below the root of n, rounded up; its rounds are those of
    SplitMix64. Numbers beyond n are enciphered again, so that what is left is a permutation.

    References
    ----------
    Black, J. and Rogaway, P. (2002). Ciphers with arbitrary finite domains. CT-RSA.
    Steele, G. L., Lea, D. and Flood, C. H. (2014). Fast splittable pseudorandom number generators.
    OOPSLA.
    """
    side, number, end = np.uint64(math.ceil(math.sqrt(n))), np.uint64(k), np.uint64(n)
    while True:
        left, right = number // side, number % side
        state = np.uint64(key)
        for _ in range(_MANY_ROUNDS if n < _SMALL else _FEW_ROUNDS):
            state += _ODD
            left += ((mixed(right + state) >> _HALF) * side) >> _HALF
            left, right = right, left - side if left >= side else left
        number = left * side + right
        if number < end:
            return int(number)


@compiled_once
def first_of_permutation(n: int, m: int, key: int, first: int = 0) -> NDArray[np.int64]:
    """The first m numbers of the random permutation of 0, 1, ..., n - 1 that a key determines.

    Parameters
    ----------
    n, m : int
        Length of the permutation, and how many of its numbers to draw, at most n.
    key : int
        As for `drawn_number`.
    first : int
        How many of them to leave out.

    Returns
    -------
    int array, shape (m - first,)

    Examples
    --------
    >>> sorted(first_of_permutation(5, 5, 123).tolist())
    [0, 1, 2, 3, 4]
    """
    numbers = np.empty(m - first, dtype=np.int64)
    for k in range(first, m):
        numbers[k - first] = drawn_number(k, n, key)
    return numbers
