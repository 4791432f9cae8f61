"""A sample that looks harder where rows differ more: strata of rows, some seen completely."""

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.sequential.protocols import Estimate

__all__ = ["StratifiedStream", "StratifiedSurvey"]

_FEWEST_NEW_ROWS = 2
"""Rows that a further look adds at least to every stratum that is not exhausted."""


class StratifiedStream(Protocol):
    """Log-likelihood differences of rows that were not seen before, stratum by stratum."""

    def read(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Differences of the next ``counts[h]`` rows of each stratum, one stratum after another."""
        ...


class StratifiedSurvey:
    r"""Sampling without replacement within strata.

    With :math:`n_h` of the :math:`N_h` rows of stratum :math:`h` seen, :math:`\bar l_h` and
    :math:`s_h` the mean and standard deviation of their differences,

    .. math::
        T = \sum_h N_h \bar l_h, \qquad
        V = \sum_h V_h, \quad V_h = N_h^2 \frac{s_h^2}{n_h} \left(1 - \frac{n_h-1}{N_h-1}\right),
        \qquad \nu = V^2 \Big/ \sum_h \frac{V_h^2}{n_h - 1}.

    A stratum of which all rows are seen at the first look (take-all) adds no error. Each further
    look doubles the sample, by Neyman's allocation :math:`n_h \propto N_h s_h`. With a single
    stratum this is `UniformSurvey` but for the growth of its batches.

    Parameters
    ----------
    stream : StratifiedStream
        Gives the differences of rows in random order within each stratum.
    sizes : int array, shape (H,)
        Rows there are in each stratum, :math:`N_h`.
    first_counts : int array, shape (H,)
        Rows seen at the first look, at least two of each stratum (or all of it).

    References
    ----------
    Cochran, W. G. (1977). Sampling Techniques, 3rd edition, sections 5.4 to 5.5.
    Satterthwaite, F. E. (1946). An approximate distribution of estimates of variance components.
    """

    __slots__ = (
        "centred_squares",
        "counts",
        "first_counts",
        "means",
        "n_rows",
        "sizes",
        "spread",
        "stream",
    )

    def __init__(
        self,
        stream: StratifiedStream,
        *,
        sizes: NDArray[np.int64],
        first_counts: NDArray[np.int64],
    ) -> None:
        self.stream = stream
        self.sizes = sizes
        self.first_counts = first_counts
        self.n_rows = int(np.add.reduce(sizes))
        self.counts: NDArray[np.int64] | None = None
        self.means = self.centred_squares = np.empty(0)
        self.spread = 0.0

    def look(self) -> Estimate:
        """See the first rows of each stratum; at further looks as many again as were seen."""
        if self.counts is None:
            return self._see(self.first_counts)
        return self._see(self._allocation())

    def finish(self) -> Estimate:
        """See all that is left."""
        return self._see(self.sizes if self.counts is None else self.sizes - self.counts)

    def _see(self, new: NDArray[np.int64]) -> Estimate:
        values = self.stream.read(new)
        if self.counts is None:
            self.means, self.centred_squares = _means_and_squares(values, new)
            self.counts = new
        else:
            self._merge(values, new)
        return self._estimate()

    def _merge(self, values: NDArray, new: NDArray[np.int64]) -> None:
        """Update of Chan, Golub and LeVeque (1983) for the strata that have grown."""
        assert self.counts is not None
        grown = np.flatnonzero(new)
        if not grown.size:
            return
        added = new[grown]
        means, squares = _means_and_squares(values, added)
        before, shift = self.counts[grown], means - self.means[grown]
        share = added / (before + added)
        self.means = self.means.copy()
        self.centred_squares = self.centred_squares.copy()
        self.means[grown] += shift * share
        self.centred_squares[grown] += squares + shift * shift * before * share
        self.counts = self.counts + new

    def _estimate(self) -> Estimate:
        assert self.counts is not None
        counts, sizes = self.counts, self.sizes
        total = float(sizes.dot(self.means))
        n_seen = int(np.add.reduce(counts))
        free = np.maximum(counts - 1, 1)
        share_left = (sizes - counts) / np.maximum(sizes - 1, 1)
        variances = sizes * sizes / counts * (self.centred_squares / free) * share_left
        variance = float(np.add.reduce(variances))
        if not variance > 0.0:  # also NaN, where a difference is not finite
            return Estimate(total, 0.0, math.inf, n_seen, self.spread)
        degrees_of_freedom = variance * variance / float((variances * variances).dot(1.0 / free))
        self.spread = math.sqrt(variance * n_seen / (self.n_rows - n_seen))
        return Estimate(total, variance, degrees_of_freedom, n_seen, self.spread)

    def _allocation(self) -> NDArray[np.int64]:
        """Rows to add to each stratum so that the doubled sample is Neyman's as far as it can be."""
        assert self.counts is not None
        left = self.sizes - self.counts
        weights = self.sizes * np.sqrt(self.centred_squares / np.maximum(self.counts - 1, 1))
        weights = np.where(left > 0, weights, 0.0)
        n_open = float(np.add.reduce(self.counts[left > 0]))
        if not np.add.reduce(weights) > 0.0:
            return np.minimum(left, self.counts)
        wanted = 2.0 * n_open * weights / np.add.reduce(weights) - self.counts
        return np.minimum(left, np.maximum(np.ceil(wanted), _FEWEST_NEW_ROWS).astype(np.int64))


def _means_and_squares(
    values: NDArray, counts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and centred sum of squares of consecutive segments, none of them empty."""
    starts = np.cumsum(counts) - counts
    means = np.add.reduceat(values, starts) / counts
    centred = values - np.repeat(means, counts)
    return means, np.add.reduceat(centred * centred, starts)
