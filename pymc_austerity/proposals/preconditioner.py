"""The matrix that multiplies gradients and is the covariance of the noise."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from pymc_austerity.proposals.covariance import root_of

__all__ = ["Preconditioner"]


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """A covariance matrix M, stored as its square root: ``root root' = M``.

    Attributes
    ----------
    root : float array, shape (d,) or (d, d)
        Standard deviations, or a lower triangular matrix.
    """

    root: NDArray[np.float64]

    @classmethod
    def of(cls, matrix: NDArray[np.float64]) -> "Preconditioner":
        """Preconditioner from variances, shape (d,), or a covariance, shape (d, d)."""
        return cls(root_of(matrix))

    @cached_property
    def _inverse_root(self) -> NDArray[np.float64]:
        if self.root.ndim == 1:
            return 1.0 / self.root
        return solve_triangular(self.root, np.eye(len(self.root)), lower=True)

    def times(self, gradient: NDArray) -> NDArray[np.float64]:
        """``M gradient``."""
        return self.spread(_product(self.root.T, gradient))

    def spread(self, standard: NDArray) -> NDArray[np.float64]:
        """``root standard``: noise with covariance M from standard normal noise."""
        return _product(self.root, standard)

    def squared_length(self, difference: NDArray) -> float:
        """``difference' M^-1 difference``."""
        standard = _product(self._inverse_root, difference)
        return float(standard.dot(standard))


def _product(matrix: NDArray, vector: NDArray) -> NDArray[np.float64]:
    return matrix * vector if matrix.ndim == 1 else matrix.dot(vector)
