"""A uniform sample of rows, as in the paper."""

import math

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.sequential.estimates import estimate_uniform
from pymc_austerity.sequential.moments import Moments
from pymc_austerity.sequential.protocols import DifferenceStream, Estimate

__all__ = ["UniformSurvey"]


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
