"""A normal approximation of the distribution that is sampled from."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from pymc_austerity.proposals.adaptation import covariance_estimate
from pymc_austerity.proposals.covariance import root_of

__all__ = ["GaussianApproximation"]


@dataclass(frozen=True, eq=False)
class GaussianApproximation:
    """Normal distribution N(mean, root root').

    Attributes
    ----------
    mean : float array, shape (d,)
        Center, in unconstrained space.
    root : float array, shape (d, d)
        Lower Cholesky factor of the covariance.
    """

    mean: NDArray[np.float64]
    root: NDArray[np.float64]

    @classmethod
    def of_points(cls, points: NDArray) -> "GaussianApproximation | None":
        """Distribution with the moments of a chain's draws, shape (n, d); None if few differ."""
        covariance = covariance_estimate(points, full=True)
        return None if covariance is None else cls(points.mean(axis=0), root_of(covariance))

    def marginal(self, entries: NDArray[np.bool_]) -> "GaussianApproximation":
        """Distribution of the entries that a mask of shape (d,) selects."""
        own = self.root[entries]
        return GaussianApproximation(self.mean[entries], root_of(own @ own.T))

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
