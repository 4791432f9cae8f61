"""The second-order expansion of all rows about the anchor, with a sparse Hessian."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["SparseExpansion"]


@dataclass(frozen=True, eq=False)
class SparseExpansion:
    r"""Sum over all rows of their expansions of second order about a point.

    .. math:: g'\delta + \tfrac{1}{2} \delta' H \delta, \qquad \delta = \theta - \theta^*

    Attributes
    ----------
    point : float array, shape (d,)
        The anchor.
    gradient : float array, shape (d,)
        Of the rows at the anchor, nats per unit.
    hessian : scipy.sparse.csr_array, shape (d, d)
        Of the rows at the anchor.
    """

    point: NDArray[np.float64]
    gradient: NDArray[np.float64]
    hessian: sparse.csr_array

    def depends_on(self, entries: NDArray[np.int64]) -> bool:
        """Whether it depends on some of these entries."""
        starts = self.hessian.indptr
        return bool(self.gradient[entries].any() or (starts[entries + 1] > starts[entries]).any())

    def slope(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Gradient of the expansion at a point, shape (d,)."""
        slope: NDArray[np.float64] = self.gradient + self.hessian @ (theta - self.point)
        return slope

    def difference(self, proposed: NDArray[np.float64], current: NDArray[np.float64]) -> float:
        """Difference of the expansion between two points, nats.

        Examples
        --------
        >>> identity = sparse.csr_array(-np.eye(2))
        >>> expansion = SparseExpansion(np.zeros(2), np.array([1.0, 0.0]), identity)
        >>> float(expansion.difference(np.array([2.0, 1.0]), np.zeros(2)))
        -0.5
        """
        moved = proposed - current
        middle = 0.5 * (proposed + current) - self.point
        return float(moved.dot(self.gradient + self.hessian @ middle))
