"""A normal approximation of the distribution that is sampled from."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

__all__ = ["GaussianApproximation"]


@dataclass(frozen=True, eq=False)
class GaussianApproximation:
    """Normal distribution N(mean, root root').

    Attributes
    ----------
    mean : float array, shape (d,)
        Centre, in unconstrained space.
    root : float array, shape (d, d)
        Lower Cholesky factor of the covariance.
    """

    mean: NDArray[np.float64]
    root: NDArray[np.float64]

    @cached_property
    def inverse_root(self) -> NDArray[np.float64]:
        """Inverse of `root`."""
        return solve_triangular(self.root, np.eye(self.mean.size), lower=True)

    def standardize(self, difference: NDArray) -> NDArray[np.float64]:
        """A difference of points in units of the standard deviations, decorrelated."""
        return self.inverse_root.dot(difference)

    def log_density(self, point: NDArray) -> float:
        """Log-density up to a constant, nats."""
        standard = self.inverse_root.dot(point - self.mean)
        return -0.5 * float(standard.dot(standard))
