"""Samples of rows that grow from look to look, and estimates of the sum of all from them."""

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Protocol

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from pymc_austerity.parts import part
from pymc_austerity.sequential.protocols import DifferenceStream, Estimate
from pymc_austerity.strata import Strata

ROUNDING = 8 * 2.0**-52
"""Spread relative to the mean that cannot be distinguished from rounding error."""

ESTIMATE = typeof(Estimate(0.0, 0.0, 0.0, 0, 0.0))
"""Type of an `Estimate` in compiled code."""

_NO_ROW = 1e-6
"""Share of a row that may be rounding, which differs between Python and compiled code."""

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
            wanted = math.ceil(2.0 * n_seen * weights[h] / total - count - _NO_ROW)
            wanted = max(wanted, _FEWEST_NEW_ROWS)
        new[h] = int(min(wanted, 1.0 * (sizes[h] - count)))


@part(types.int64)
def n_of_look(count: int, n_rows: int, batch_size: int, growth: float) -> int:
    """Rows that a look of a uniform sample adds to those seen; see `UniformSurvey`."""
    return min(max(batch_size, math.ceil((growth - 1.0) * count)), n_rows - count)


_MOST_AT_ONCE = 65_536
"""Number of rows of a stratum that are evaluated together when all remaining rows are read."""


@dataclass(slots=True)
class UniformSurvey:
    r"""Uniform sampling without replacement, in batches of equal or growing size.

    With :math:`n` of :math:`N` rows seen, :math:`\bar l` and :math:`s_l` the mean and standard
    deviation of their differences,

    .. math:: T = N \bar l, \qquad V = N^2 \frac{s_l^2}{n} \left(1 - \frac{n-1}{N-1}\right)

    Parameters
    ----------
    stream : DifferenceStream
        Provides the differences of rows in random order.
    n_rows : int
        Number of all rows, :math:`N`.
    batch_size : int
        Rows of the first look, :math:`m`.
    growth : float
        Factor by which each further look multiplies the rows read; 1 adds :math:`m` rows each time.
    largest_difference : float
        Bound on the absolute differences, nats; infinite if it is not known.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, section 4.
    """

    stream: DifferenceStream
    _: KW_ONLY
    n_rows: int
    batch_size: int
    growth: float = 1.0
    largest_difference: float = math.inf
    count: int = field(default=0, init=False)
    mean: float = field(default=0.0, init=False)
    squares: float = field(default=0.0, init=False)

    def look(self) -> Estimate:
        """Read the next batch."""
        return self._see(n_of_look(self.count, self.n_rows, self.batch_size, self.growth))

    def finish(self) -> Estimate:
        """Read all remaining rows."""
        return self._see(self.n_rows - self.count)

    @property
    def total(self) -> float:
        """Estimated sum over all rows, nats."""
        return self.n_rows * self.mean

    @property
    def deviations(self) -> NDArray[np.float64]:
        """Standard deviation of the differences seen, nats; shape (1,)."""
        return np.array([math.sqrt(sample_variance(self.count, self.mean, self.squares))])

    def _see(self, n_rows: int) -> Estimate:
        for differences in self.stream.read(n_rows):
            known, added = (self.count, self.mean, self.squares), differences.size
            self.mean, self.squares = merged(*known, added, *moments_of(differences, 0, added))
            self.count += added
            if not math.isfinite(self.mean):  # one impossible row decides
                break
        return estimate_uniform(self.n_rows, self.count, self.mean, self.squares)


class StratifiedStream(Protocol):
    """Log-likelihood differences of rows that have not yet been read, stratum by stratum."""

    def read(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Differences of the next ``counts[h]`` rows of each stratum, one stratum after another."""


def further_counts(
    strata: Strata, counts: NDArray[np.int64], deviations: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Rows to add to each stratum: `plan_further`, with arrays.

    Parameters
    ----------
    strata : Strata
        Sizes of the strata.
    counts : int array, shape (H,)
        Rows seen so far.
    deviations : float array, shape (H,)
        Standard deviations within the strata.
    """
    squares = deviations * deviations * np.maximum(counts - 1, 1)
    new = np.empty_like(counts)
    plan_further(counts.size, strata.sizes, counts, squares, np.empty(counts.size), new)
    return new


class StratifiedSurvey:
    r"""Sampling without replacement within strata.

    With :math:`n_h` of the :math:`N_h` rows of stratum :math:`h` read, :math:`\bar l_h` and
    :math:`s_h` the mean and standard deviation of their differences,

    .. math::
        T = \sum_h N_h \bar l_h, \qquad
        V = \sum_h V_h, \quad V_h = N_h^2 \frac{s_h^2}{n_h} \left(1 - \frac{n_h-1}{N_h-1}\right),
        \qquad \nu = V^2 \Big/ \sum_h \frac{V_h^2}{n_h - 1}.

    A stratum whose rows are all read at the first look (take-all) adds no error. Each further
    look doubles the sample, by Neyman's allocation :math:`n_h \propto N_h s_h`. With a single
    stratum this is a `UniformSurvey` whose batches grow.

    Parameters
    ----------
    stream : StratifiedStream
        Provides the differences of rows in random order within each stratum.
    strata : Strata
        Sizes of the strata and of the first look.

    References
    ----------
    Cochran, W. G. (1977). Sampling Techniques, 3rd edition, sections 5.4 to 5.5.
    Satterthwaite, F. E. (1946). An approximate distribution of estimates of variance components.
    """

    largest_difference = math.inf

    def __init__(self, stream: StratifiedStream, strata: Strata) -> None:
        self.stream = stream
        self.strata = strata
        self.n_rows, n_strata = self.strata.n_rows, self.strata.sizes.size
        self.sizes = self.strata.sizes.tolist()
        self.counts, self.new = [0] * n_strata, [0] * n_strata
        self.means, self.squares, self.weights = ([0.0] * n_strata for _ in range(3))
        self.spread = [0.0]
        self.total = 0.0

    def look(self) -> Estimate:
        """Read the first rows of each stratum; at further looks, double the rows read."""
        if not any(self.counts):
            return self._read(self.strata.first_counts)
        plan_further(len(self.sizes), self.sizes, self.counts, self.squares, self.weights, self.new)
        return self._read(np.array(self.new))

    def finish(self) -> Estimate:
        """Read all remaining rows."""
        if not any(self.counts):
            self.look()
        while True:
            left = self.strata.sizes - self.counts
            estimate = self._read(np.minimum(left, _MOST_AT_ONCE))
            if estimate.n_seen >= self.n_rows:
                return estimate

    @property
    def deviations(self) -> NDArray[np.float64]:
        """Standard deviation of the differences seen in each stratum, nats; shape (H,)."""
        return np.sqrt(np.array(self.squares) / np.maximum(np.array(self.counts) - 1, 1))

    def _read(self, new: NDArray[np.int64]) -> Estimate:
        values, start = self.stream.read(new), 0
        for h, added in enumerate(new.tolist()):
            if added == 0:
                continue
            mean, squares = moments_of(values, start, start + added)
            self.means[h], self.squares[h] = merged(
                self.counts[h], self.means[h], self.squares[h], added, mean, squares
            )
            self.counts[h] += added
            start += added
        estimate = estimate_strata(
            len(self.sizes), self.sizes, self.counts, self.means, self.squares, self.spread
        )
        self.total = estimate.total
        return estimate
