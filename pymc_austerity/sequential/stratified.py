"""A sample with more rows where they differ more: strata of rows, some of them read completely."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.sequential.moments import ROUNDING
from pymc_austerity.sequential.protocols import Estimate
from pymc_austerity.strata import Strata

__all__ = ["FirstLook", "StratifiedStream", "StratifiedSurvey", "further_counts"]

_FEWEST_NEW_ROWS = 2
"""Fewest rows that a further look adds to every stratum that has rows left."""

_ROWS_OF_POOLED = 100
"""Weight, in rows, of the spread common to all strata, in the allocation of new rows. Without it,
a stratum whose few rows happen to be alike would get no more rows, and its spread would stay
too small: decisions were wrong a fifth more often where residuals are skewed."""

_MOST_AT_ONCE = 65_536
"""Number of rows of a stratum that are evaluated together when all remaining rows are read."""


class StratifiedStream(Protocol):
    """Log-likelihood differences of rows that have not yet been read, stratum by stratum."""

    def read_first(self) -> NDArray[np.float64]:
        """Differences of the rows of the first look, one stratum after another."""
        ...

    def read(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Differences of the next ``counts[h]`` rows of each stratum, one stratum after another."""
        ...


@dataclass(frozen=True, eq=False)
class FirstLook:
    """Quantities of the first look that depend on the strata alone, computed once.

    Parameters
    ----------
    strata : Strata
        Sizes of the strata and of the first look.
    """

    strata: Strata

    @cached_property
    def segments(self) -> "Segments":
        """Position of each stratum in the values of the first look."""
        return Segments.of(self.strata.first_counts)

    @cached_property
    def weights(self) -> "Weights":
        """Weights that turn the moments of the first look into an estimate."""
        return Weights.of(self.strata.sizes, self.strata.first_counts)


def further_counts(
    strata: Strata, counts: NDArray[np.int64], deviations: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Rows to add to each stratum, so that the doubled sample is as close to Neyman's as possible.

    Spreads are shrunk to their root mean square over the strata.

    Parameters
    ----------
    strata : Strata
        Sizes of the strata.
    counts : int array, shape (H,)
        Rows seen so far.
    deviations : float array, shape (H,)
        Standard deviations within the strata.
    """
    left = strata.sizes - counts
    weights = np.where(left > 0, _shrunken(strata.sizes * deviations, counts, left > 0), 0.0)
    total = np.add.reduce(weights)
    if not 0.0 < total < np.inf:  # squares of differences may overflow
        return np.minimum(left, counts)
    n_open = float(np.add.reduce(counts[left > 0]))
    wanted = 2.0 * n_open * weights / total - counts
    return np.minimum(left, np.maximum(np.ceil(wanted), _FEWEST_NEW_ROWS).astype(np.int64))


def _shrunken(
    spreads: NDArray[np.float64], counts: NDArray[np.int64], is_open: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Spreads of the strata's sums, moved towards the value common to strata of equal score."""
    squares = spreads * spreads
    pooled = np.add.reduce(squares, where=is_open) / max(np.count_nonzero(is_open), 1)
    return np.sqrt((counts * squares + _ROWS_OF_POOLED * pooled) / (counts + _ROWS_OF_POOLED))


class Segments(NamedTuple):
    """Consecutive stretches of values, none of which is empty."""

    counts: NDArray[np.int64]
    starts: NDArray[np.int64]
    owners: NDArray[np.intp]

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> "Segments":
        """Stretches of the given lengths."""
        return cls(counts, np.cumsum(counts) - counts, np.repeat(np.arange(counts.size), counts))

    def moments(self, values: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and centered sum of squares of each stretch."""
        means = np.add.reduceat(values, self.starts) / self.counts
        centered = values - means[self.owners]
        return means, np.add.reduceat(centered * centered, self.starts)


class Weights(NamedTuple):
    """Factors of the centered sums of squares in the variance, and of the squared variances."""

    n_seen: int
    of_squares: NDArray[np.float64]
    one_over_free: NDArray[np.float64]

    @classmethod
    def of(cls, sizes: NDArray[np.int64], counts: NDArray[np.int64]) -> "Weights":
        """Factors where ``counts[h]`` of ``sizes[h]`` rows were seen."""
        one_over_free = 1.0 / np.maximum(counts - 1, 1)
        share_left = (sizes - counts) / np.maximum(sizes - 1, 1)
        of_squares = sizes * sizes / counts * one_over_free * share_left
        return cls(int(counts.sum()), of_squares, one_over_free)


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
    first_look : FirstLook
        First look at the strata.

    References
    ----------
    Cochran, W. G. (1977). Sampling Techniques, 3rd edition, sections 5.4 to 5.5.
    Satterthwaite, F. E. (1946). An approximate distribution of estimates of variance components.
    """

    __slots__ = (
        "centered_squares",
        "counts",
        "first_look",
        "means",
        "n_rows",
        "sizes",
        "spread",
        "strata",
        "stream",
    )

    largest_difference = math.inf

    def __init__(self, stream: StratifiedStream, first_look: FirstLook) -> None:
        self.stream = stream
        self.first_look = first_look
        self.strata = first_look.strata
        self.sizes, self.n_rows = self.strata.sizes, self.strata.n_rows
        self.counts: NDArray[np.int64] | None = None
        self.means = self.centered_squares = np.empty(0)
        self.spread = 0.0

    def look(self) -> Estimate:
        """Read the first rows of each stratum; at further looks, double the rows read."""
        if self.counts is not None:
            new = further_counts(self.strata, self.counts, self.deviations)
            return self._see_more(new, self.counts)
        self.means, self.centered_squares = self.first_look.segments.moments(
            self.stream.read_first()
        )
        self.counts = self.strata.first_counts
        return self._estimate(self.first_look.weights)

    def finish(self) -> Estimate:
        """Read all remaining rows."""
        if self.counts is None:
            self.look()
        assert self.counts is not None
        while True:
            left = self.sizes - self.counts
            estimate = self._see_more(np.minimum(left, _MOST_AT_ONCE), self.counts)
            if estimate.n_seen >= self.n_rows:
                return estimate

    @property
    def total(self) -> float:
        """Estimated sum over all rows, nats."""
        return float(self.sizes.dot(self.means))

    @property
    def deviations(self) -> NDArray[np.float64]:
        """Standard deviation of the differences seen in each stratum, nats; shape (H,)."""
        assert self.counts is not None
        return np.sqrt(self.centered_squares / np.maximum(self.counts - 1, 1))

    def _see_more(self, new: NDArray[np.int64], seen: NDArray[np.int64]) -> Estimate:
        """Merge new rows by the update of Chan, Golub and LeVeque (1983)."""
        values, grown = self.stream.read(new), np.flatnonzero(new)
        added, before = new[grown], seen[grown]
        means, squares = Segments.of(added).moments(values)
        shift, share = means - self.means[grown], added / (before + added)
        self.means[grown] += shift * share
        self.centered_squares[grown] += squares + shift * shift * before * share
        self.counts = seen + new
        return self._estimate(Weights.of(self.sizes, self.counts))

    def _estimate(self, weights: Weights) -> Estimate:
        total = self.total
        n_seen, of_squares, one_over_free = weights
        variances = of_squares * self.centered_squares
        variance = float(np.add.reduce(variances))
        rounding = ROUNDING * float(self.sizes.dot(np.abs(self.means)))
        if not variance > rounding * rounding:  # also NaN, where a difference is not finite
            return Estimate(total, 0.0, math.inf, n_seen, self.spread)
        degrees_of_freedom = variance * variance / float((variances * variances).dot(one_over_free))
        self.spread = math.sqrt(variance * n_seen / (self.n_rows - n_seen))
        return Estimate(total, variance, degrees_of_freedom, n_seen, self.spread)
