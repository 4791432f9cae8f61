"""Count, mean and spread of differences that arrive in blocks."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from pymc_austerity.parts import part

__all__ = ["ROUNDING", "Moments", "Segments", "merged", "moments_of", "sample_variance"]

ROUNDING = 8 * 2.0**-52
"""Spread relative to the mean that cannot be distinguished from rounding error."""


def _moments_in_a_loop(values: Any, start: int, stop: int) -> tuple[float, float]:
    mean, squares = 0.0, 0.0
    for i in range(start, stop):
        mean += values[i]
    mean /= stop - start
    for i in range(start, stop):
        apart = values[i] - mean
        squares += apart * apart
    return mean, squares


@part(types.UniTuple(types.float64, 2), compiled=_moments_in_a_loop)
def moments_of(values: Any, start: int, stop: int) -> tuple[float, float]:
    """Mean and centered sum of squares of some consecutive values.

    Parameters
    ----------
    values : float64 array, or a pointer to floats in compiled code
    start, stop : int
        At least one value.
    """
    values = values[start:stop]
    # np.add.reduce and dot are what sum() and var() call, without their Python wrappers
    mean = float(np.add.reduce(values)) / (stop - start)
    if not math.isfinite(mean):
        return mean, math.inf
    centered = values - mean
    return mean, float(centered.dot(centered))


@part(types.UniTuple(types.float64, 2))
def merged(
    count: Any, mean: Any, squares: Any, added: Any, mean_added: Any, squares_added: Any
) -> tuple[Any, Any]:
    """Mean and centered sum of squares of two samples together, of numbers or arrays of them.

    Blocks are centered before they are squared, so that rounding does not destroy the spread if the
    mean is far from zero.

    References
    ----------
    Chan, T. F., Golub, G. H. and LeVeque, R. J. (1983). Algorithms for computing the sample
    variance. The American Statistician 37(3), 242-247.
    """
    shift, share = mean_added - mean, added / (count + added)
    # in this order, 0 where there was nothing before, however large the shift
    return mean + shift * share, squares + (squares_added + shift * (count * share) * shift)


@part(types.float64)
def sample_variance(count: int, mean: float, squares: float) -> float:
    """Sample variance (ddof 1), 0 when the spread is not larger than rounding error."""
    variance, rounding = squares / max(count - 1, 1), ROUNDING * mean
    return variance if variance > rounding * rounding else 0.0


class Segments(NamedTuple):
    """Consecutive stretches of values, none of which is empty, and the stratum of each."""

    strata: NDArray[np.intp]
    counts: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> "Segments":
        """Stretches of so many rows of each stratum."""
        strata = np.flatnonzero(counts)
        counts = counts[strata]
        return cls(strata, counts, np.cumsum(counts) - counts)

    def moments(self, values: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and centered sum of squares of each stretch."""
        means = np.add.reduceat(values, self.starts) / self.counts
        centered = values - np.repeat(means, self.counts)
        return means, np.add.reduceat(centered * centered, self.starts)


class Moments:
    """Running count, mean and centered sum of squares.

    Attributes
    ----------
    count : int
        Number of values so far.
    mean : float
        Their mean; NaN or infinite as soon as one value is.
    centered_squares : float
        Sum of squared deviations from the mean.

    Examples
    --------
    >>> import numpy as np
    >>> moments = Moments()
    >>> moments.add(np.array([1.0, 2.0]))
    >>> moments.add(np.array([3.0]))
    >>> moments.count, moments.mean, moments.variance
    (3, 2.0, 1.0)
    """

    __slots__ = ("centered_squares", "count", "mean")

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self.centered_squares = 0.0

    def add(self, values: NDArray) -> None:
        """Add a block of values.

        Parameters
        ----------
        values : float64 array, shape (n,)
            At least one value.
        """
        self.mean, self.centered_squares = merged(
            self.count,
            self.mean,
            self.centered_squares,
            values.size,
            *moments_of(values, 0, values.size),
        )
        self.count += values.size

    @property
    def variance(self) -> float:
        """Sample variance (ddof 1), 0 when the spread is not larger than rounding error."""
        return sample_variance(self.count, self.mean, self.centered_squares)
