"""Count, mean and spread of differences that arrive in blocks."""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["Moments"]

ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""Spread relative to the mean that cannot be distinguished from rounding error."""


class Moments:
    """Running count, mean and centered sum of squares.

    Blocks are centered before they are squared and merged by the update of Chan, Golub and
    LeVeque (1983), so that rounding does not destroy the spread if the mean is far from zero.

    Attributes
    ----------
    count : int
        Number of values so far.
    mean : float
        Their mean; NaN or infinite as soon as one value is.
    centered_squares : float
        Sum of squared deviations from the mean.

    References
    ----------
    Chan, T. F., Golub, G. H. and LeVeque, R. J. (1983). Algorithms for computing the sample
    variance. The American Statistician 37(3), 242-247.

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
        n_new = values.size
        # np.add.reduce and dot are what sum() and var() call, without their Python wrappers
        mean_new = float(np.add.reduce(values)) / n_new
        if not math.isfinite(mean_new):
            self.count += n_new
            self.mean = mean_new
            return
        centered = values - mean_new
        squares_new = float(centered.dot(centered))
        if self.count == 0:
            self.count, self.mean, self.centered_squares = n_new, mean_new, squares_new
            return
        count = self.count + n_new
        shift = mean_new - self.mean
        self.centered_squares += squares_new + shift * shift * self.count * n_new / count
        self.mean += shift * n_new / count
        self.count = count

    @property
    def variance(self) -> float:
        """Sample variance (ddof 1), 0 when the spread is not larger than rounding error."""
        if self.count < 2:
            return 0.0
        variance = self.centered_squares / (self.count - 1)
        rounding = ROUNDING * self.mean
        return variance if variance > rounding * rounding else 0.0
