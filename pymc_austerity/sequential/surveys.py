"""Samples of rows that grow from look to look, uniform or stratified."""

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.sequential.estimates import (
    Moments,
    Segments,
    estimate_strata,
    estimate_uniform,
    merged,
    plan_further,
)
from pymc_austerity.sequential.protocols import DifferenceStream, Estimate
from pymc_austerity.strata import Strata

_MOST_AT_ONCE = 65_536
"""Number of rows of a stratum that are evaluated together when all remaining rows are read."""


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

    __slots__ = ("batch_size", "growth", "largest_difference", "moments", "n_rows", "stream")

    def __init__(
        self,
        stream: DifferenceStream,
        *,
        n_rows: int,
        batch_size: int,
        growth: float = 1.0,
        largest_difference: float = math.inf,
    ) -> None:
        self.stream = stream
        self.n_rows = n_rows
        self.batch_size = batch_size
        self.growth = growth
        self.largest_difference = largest_difference
        self.moments = Moments()

    def look(self) -> Estimate:
        """Read the next batch."""
        n_seen = self.moments.count
        n_new = max(self.batch_size, math.ceil((self.growth - 1.0) * n_seen))
        return self._see(min(n_new, self.n_rows - n_seen))

    def finish(self) -> Estimate:
        """Read all remaining rows."""
        return self._see(self.n_rows - self.moments.count)

    @property
    def total(self) -> float:
        """Estimated sum over all rows, nats."""
        return self.n_rows * self.moments.mean

    @property
    def deviations(self) -> NDArray[np.float64]:
        """Standard deviation of the differences seen, nats; shape (1,)."""
        return np.array([math.sqrt(self.moments.variance)])

    def _see(self, n_rows: int) -> Estimate:
        moments = self.moments
        for differences in self.stream.read(n_rows):
            moments.add(differences)
            if not math.isfinite(moments.mean):  # one impossible row decides
                break
        return estimate_uniform(self.n_rows, moments.count, moments.mean, moments.centered_squares)


class StratifiedStream(Protocol):
    """Log-likelihood differences of rows that have not yet been read, stratum by stratum."""

    def read_first(self) -> NDArray[np.float64]:
        """Differences of the rows of the first look, one stratum after another."""
        ...

    def read(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Differences of the next ``counts[h]`` rows of each stratum, one stratum after another."""
        ...


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
    first : Segments, optional
        Positions of the strata in the values of the first look, if they are known.

    References
    ----------
    Cochran, W. G. (1977). Sampling Techniques, 3rd edition, sections 5.4 to 5.5.
    Satterthwaite, F. E. (1946). An approximate distribution of estimates of variance components.
    """

    largest_difference = math.inf

    def __init__(
        self, stream: StratifiedStream, strata: Strata, first: Segments | None = None
    ) -> None:
        self.stream = stream
        self.strata = strata
        self.first = Segments.of(strata.first_counts) if first is None else first
        self.n_rows, n_strata = self.strata.n_rows, self.strata.sizes.size
        self.sizes = self.strata.sizes.tolist()
        self.counts, self.new = [0] * n_strata, [0] * n_strata
        self.means, self.squares, self.weights = ([0.0] * n_strata for _ in range(3))
        self.spread = [0.0]
        self.total = 0.0

    def look(self) -> Estimate:
        """Read the first rows of each stratum; at further looks, double the rows read."""
        if not any(self.counts):
            return self._merge(self.first, self.stream.read_first())
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
        return self._merge(Segments.of(new), self.stream.read(new))

    def _merge(self, segments: Segments, values: NDArray[np.float64]) -> Estimate:
        found = (segments.strata, segments.counts, *segments.moments(values))
        for h, added, mean, squares in zip(*(array.tolist() for array in found), strict=True):
            self.means[h], self.squares[h] = merged(
                self.counts[h], self.means[h], self.squares[h], added, mean, squares
            )
            self.counts[h] += added
        estimate = estimate_strata(
            len(self.sizes), self.sizes, self.counts, self.means, self.squares, self.spread
        )
        self.total = estimate.total
        return estimate
