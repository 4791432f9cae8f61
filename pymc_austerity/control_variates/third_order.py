"""The third-order terms of all rows about the anchor, added up."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["ThirdOrder"]


@dataclass(frozen=True, eq=False)
class ThirdOrder:
    r"""A symmetric tensor of third derivatives.

    Attributes
    ----------
    sums : float array, shape (d, d (d + 1) / 2)
        :math:`T`, by one entry and a pair j <= l of entries in the order of ``np.triu_indices``.

    Examples
    --------
    The third derivative of :math:`x^3` is 6:

    >>> cubic = ThirdOrder(np.array([[6.0]]))
    >>> cubic.difference(np.array([3.0]), np.array([1.0]))
    26.0
    """

    sums: NDArray[np.float64]

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
        """The pairs of entries, and a 12th or a 24th for one that stands for both orders or one."""
        first, second = np.triu_indices(len(self.sums))
        return first, second, np.where(first < second, 1.0 / 12.0, 1.0 / 24.0)

    def difference(self, new: NDArray[np.float64], old: NDArray[np.float64]) -> float:
        r"""A sixth of :math:`T(b, b, b) - T(a, a, a)`, nats.

        .. math:: \tfrac12 T(m, m, s) + \tfrac1{24} T(s, s, s),
            \quad m = \tfrac12 (a + b), \quad s = b - a

        Parameters
        ----------
        new, old : float array, shape (d,)
            :math:`b` and :math:`a`, away from the anchor.
        """
        first, second, weights = self._pairs
        moved, twice = new - old, new + old
        products = weights * (3.0 * twice[first] * twice[second] + moved[first] * moved[second])
        return float(moved.dot(self.sums.dot(products)))
