"""Moments of the rows seen and estimates of the sum of all, one source for Python and numba."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from pymc_austerity.parts import part
from pymc_austerity.sequential.protocols import Estimate

ROUNDING = 8 * 2.0**-52
"""Spread relative to the mean that cannot be distinguished from rounding error."""

ESTIMATE = typeof(Estimate(0.0, 0.0, 0.0, 0, 0.0))
"""Type of an `Estimate` in compiled code."""

_FEWEST_NEW_ROWS = 2
"""Fewest rows that a further look adds to every stratum that has rows left."""

_ROWS_OF_POOLED = 100
"""Weight, in rows, of the spread common to all strata, in the allocation of new rows. Without it,
a stratum whose few rows happen to be alike would get no more rows, and its spread would stay
too small: decisions were wrong a fifth more often where residuals are skewed."""


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


@part(types.float64)
def weight_of_variance(size: Any, count: Any) -> Any:
    r"""Variance of an estimated sum in units of the rows' variance, of numbers or arrays of them.

    With :math:`n` of :math:`N` rows seen, :math:`\frac{N^2}{n} \left(1 - \frac{n-1}{N-1}\right)`.
    """
    return 1.0 * size * size / count * ((size - count) / (size - 1 + (size == 1)))


@part(ESTIMATE)
def estimate_uniform(size: int, count: int, mean: float, squares: float) -> Estimate:
    """The estimate from a uniform sample: see `UniformSurvey`.

    Parameters
    ----------
    size, count : int
        Number of all rows, and rows seen.
    mean, squares : float
        Mean and centered sum of squares of their differences.
    """
    of_rows = sample_variance(count, mean, squares)
    variance, spread = weight_of_variance(size, count) * of_rows, 0.0
    if of_rows > 0.0:
        spread = size * math.sqrt(of_rows / (size - 1))
    return Estimate(size * mean, variance, float(count - 1), count, spread)


@part(ESTIMATE)
def estimate_strata(
    n_strata: int, sizes: Any, counts: Any, means: Any, squares: Any, spread: Any
) -> Estimate:
    """The estimate from samples of strata: see `StratifiedSurvey`.

    Parameters
    ----------
    n_strata : int
    sizes, counts : sequences of int, or pointers in compiled code
        Rows of each stratum, and rows seen, at least one.
    means, squares : sequences of float
        Means and centered sums of squares of their differences.
    spread : sequence of a float
        `Estimate.spread` of the look before. It is updated where this look shows spread.
    """
    total, magnitude, variance, squared, n_seen, n_left = 0.0, 0.0, 0.0, 0.0, 0, 0
    for h in range(n_strata):
        size, count = sizes[h], counts[h]
        total += size * means[h]
        magnitude += size * abs(means[h])
        free = 1.0 / max(count - 1, 1)
        own = weight_of_variance(size, count) * free * squares[h]
        variance += own
        squared += own * own * free
        n_seen += count
        n_left += size - count
    rounding = ROUNDING * magnitude
    if not variance > rounding * rounding:  # also NaN, where a difference is not finite
        return Estimate(total, 0.0, math.inf, n_seen, spread[0])
    spread[0] = math.sqrt(variance * n_seen / n_left)
    return Estimate(total, variance, variance * variance / squared, n_seen, spread[0])


@part(types.void)
def plan_further(
    n_strata: int, sizes: Any, counts: Any, squares: Any, weights: Any, new: Any
) -> None:
    """Rows to add to each stratum, so that the doubled sample is as close to Neyman's as possible.

    Spreads are shrunk to their root mean square over the strata.

    Parameters
    ----------
    n_strata : int
    sizes, counts : sequences of int, or pointers in compiled code
        Rows of each stratum, and rows seen, at least one.
    squares : sequence of float
        Centered sums of squares of their differences.
    weights : sequence of float
        Working space.
    new : sequence of int
        The result.
    """
    total, pooled, n_seen, n_open = 0.0, 0.0, 0, 0
    for h in range(n_strata):
        size, count = sizes[h], counts[h]
        weights[h] = float(size) * size * (squares[h] / max(count - 1, 1))
        if size > count:
            pooled += weights[h]
            n_seen += count
            n_open += 1
    pooled /= max(n_open, 1)
    for h in range(n_strata):
        count, weight = counts[h], 0.0
        if sizes[h] > count:
            squared = count * weights[h] + _ROWS_OF_POOLED * pooled
            weight = math.sqrt(squared / (count + _ROWS_OF_POOLED))
        weights[h] = weight
        total += weight
    for h in range(n_strata):
        count = counts[h]
        wanted = 1.0 * count
        if 0.0 < total < math.inf:  # squares of differences may overflow
            wanted = math.ceil(2.0 * n_seen * weights[h] / total - count)
            wanted = max(wanted, _FEWEST_NEW_ROWS)
        new[h] = int(min(wanted, 1.0 * (sizes[h] - count)))
