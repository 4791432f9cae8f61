"""Sums over all rows, estimated from the moments of a sample, and how the sample grows."""

import math
from typing import Any

from numba import typeof, types

from pymc_austerity.parts import part
from pymc_austerity.sequential.moments import ROUNDING, sample_variance
from pymc_austerity.sequential.protocols import Estimate

__all__ = [
    "ESTIMATE",
    "estimate_strata",
    "estimate_uniform",
    "plan_further",
    "weight_of_variance",
]

ESTIMATE = typeof(Estimate(0.0, 0.0, 0.0, 0, 0.0))
"""Type of an `Estimate` in compiled code."""

_FEWEST_NEW_ROWS = 2
"""Fewest rows that a further look adds to every stratum that has rows left."""

_ROWS_OF_POOLED = 100
"""Weight, in rows, of the spread common to all strata, in the allocation of new rows. Without it,
a stratum whose few rows happen to be alike would get no more rows, and its spread would stay
too small: decisions were wrong a fifth more often where residuals are skewed."""


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
