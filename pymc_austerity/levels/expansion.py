"""The expansion of the rows about the anchor, and values that are kept there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["KeptAtAnchor", "Products", "SparseExpansion"]

_DENSE = 0.5
"""Share of nonzero numbers, in the columns that have some, from which on a matrix is stored as a
dense array: a product with it takes a quarter of the time."""

_MOST_KEPT = 3
"""Number of values: at the current point, at a proposed one, and at the anchor."""


@dataclass(frozen=True, eq=False)
class SparseExpansion:
    r"""Sum of the second-order expansions of all rows about a point.

    .. math:: g'\delta + \tfrac{1}{2} \delta' H \delta, \qquad \delta = \theta - \theta^*

    Attributes
    ----------
    point : float array, shape (d,)
        The anchor.
    gradient : float array, shape (d,)
        Gradient of the rows at the anchor, nats per unit.
    hessian : scipy.sparse.csr_array, shape (d, d)
        Hessian of the rows at the anchor.
    """

    point: NDArray[np.float64]
    gradient: NDArray[np.float64]
    hessian: sparse.csr_array

    def depends_on(self, entries: NDArray[np.int64]) -> bool:
        """Whether the expansion depends on any of these entries."""
        starts = self.hessian.indptr
        return bool(self.gradient[entries].any() or (starts[entries + 1] > starts[entries]).any())

    def slope(self, theta: NDArray[np.float64], entries: NDArray[np.int64]) -> NDArray[np.float64]:
        """Gradient of the expansion at a point with respect to some entries, shape (n,)."""
        found = _products(self.hessian, entries, theta - self.point)
        return self.gradient[entries] + found

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
        rows = np.flatnonzero(moved)  # most moves are of a few entries
        middle = 0.5 * (proposed + current) - self.point
        slope = self.gradient[rows] + _products(self.hessian, rows, middle)
        return float(moved[rows].dot(slope))


@dataclass(frozen=True, eq=False)
class Products:
    """Products of a matrix with vectors, without the overhead of scipy.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array or float array
        The matrix, or a dense array of those columns that are mostly nonzero.
    columns : int array
        Columns that are stored, or that have nonzero numbers.

    Examples
    --------
    >>> matrix = sparse.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]]))
    >>> Products.of(matrix)(np.array([1.0, 5.0, 10.0]))
    array([21., 30.])
    """

    matrix: sparse.csr_array | NDArray[np.float64]
    columns: NDArray[np.int64]

    @classmethod
    def of(cls, matrix: sparse.csr_array) -> "Products":
        """Store a matrix in the form in which products are fastest."""
        columns = np.unique(matrix.indices).astype(np.int64)
        if matrix.nnz < _DENSE * matrix.shape[0] * columns.size:
            return cls(matrix, columns)
        return cls(np.ascontiguousarray(matrix[:, columns].toarray()), columns)

    def __call__(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Product with a vector."""
        if isinstance(self.matrix, np.ndarray):
            found: NDArray[np.float64] = self.matrix @ vector[self.columns]
            return found
        return _products(self.matrix, np.arange(self.matrix.shape[0]), vector)


def _products(
    matrix: sparse.csr_array, rows: NDArray[np.int64], vector: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Products of some rows of a matrix with a vector."""
    found = np.empty(rows.size)
    _fill_products(matrix.indptr, matrix.indices, matrix.data, rows, vector, found)
    return found


@numba.njit(cache=True)
def _fill_products(
    starts: NDArray[np.int32],
    columns: NDArray[np.int32],
    numbers: NDArray[np.float64],
    rows: NDArray[np.int64],
    vector: NDArray[np.float64],
    found: NDArray[np.float64],
) -> None:
    for n in range(rows.size):
        total = 0.0
        for k in range(starts[rows[n]], starts[rows[n] + 1]):
            total += numbers[k] * vector[columns[k]]
        found[n] = total


class KeptAtAnchor:
    """Evaluate a function with some entries at the anchor, unless the value is known.

    Parameters
    ----------
    function : callable
        Of a point, shape (d,).
    given : int array
        Other entries that the value depends on.
    entries : int array
        Entries that are set to the anchor.
    anchor : float array, shape (d,)

    Examples
    --------
    >>> kept = KeptAtAnchor(np.sum, np.array([1]), np.array([0]), np.zeros(2))
    >>> float(kept(np.array([5.0, 3.0])))
    3.0
    """

    def __init__(
        self,
        function: Callable[[NDArray], Any],
        given: NDArray[np.int64],
        entries: NDArray[np.int64],
        anchor: NDArray[np.float64],
    ) -> None:
        self._function = function
        self._given = given
        self._entries = entries
        self._anchor = anchor[entries]
        self._known: dict[bytes, Any] = {}

    def __call__(self, point: NDArray[np.float64]) -> Any:
        """Value at a point, shape (d,)."""
        key = point[self._given].tobytes()
        if key in self._known:
            value = self._known.pop(key)
        else:
            there = point.copy()
            there[self._entries] = self._anchor
            value = self._function(there)
            if len(self._known) >= _MOST_KEPT:
                del self._known[next(iter(self._known))]
        self._known[key] = value  # those that were used last are kept
        return value
