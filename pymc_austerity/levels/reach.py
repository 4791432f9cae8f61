"""Bounds on how far the predictors of the rows of each level move with the parameters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["Reach", "Span"]


@numba.njit(cache=True, error_model="numpy")
def _fill_own_reaches(
    entries: NDArray[np.int64],
    inverse_roots: NDArray[np.float64],
    own: NDArray[np.float64],
    points: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    reaches: NDArray[np.float64],
) -> None:
    """Fill in `Span.own_reaches`."""
    anchor, before, after = points
    n_levels, q = entries.shape
    for g in range(n_levels):
        first = second = third = 0.0
        for i in range(q):
            u = v = w = 0.0
            for j in range(q):
                entry, scale = entries[g, j], inverse_roots[g, i, j]
                u += scale * (before[entry] - anchor[entry])
                v += scale * (after[entry] - anchor[entry])
                w += scale * (after[entry] - before[entry])
            first, second, third = first + u * u, second + v * v, third + w * w
        reaches[0, g] = own[g] * math.sqrt(first)
        reaches[1, g] = own[g] * math.sqrt(second)
        reaches[2, g] = own[g] * math.sqrt(third)


@numba.njit(cache=True, error_model="numpy")
def _add_common_reaches(
    common: NDArray[np.int64],
    inverse_root: NDArray[np.float64],
    norms: NDArray[np.float64],
    points: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    reaches: NDArray[np.float64],
) -> None:
    """Add how far the common entries move the rows of each level."""
    anchor, before, after = points
    first = second = third = 0.0
    for i in range(common.size):
        u = v = 0.0
        for j in range(common.size):
            entry, scale = common[j], inverse_root[i, j]
            u += scale * (before[entry] - anchor[entry])
            v += scale * (after[entry] - anchor[entry])
        first, second, third = first + u * u, second + v * v, third + (v - u) * (v - u)
    first, second, third = math.sqrt(first), math.sqrt(second), math.sqrt(third)
    for g in range(norms.size):
        reaches[0, g] += norms[g] * first
        reaches[1, g] += norms[g] * second
        reaches[2, g] += norms[g] * third


@dataclass(frozen=True, eq=False)
class Span:
    r"""Largest norms of the multipliers of entries, for the rows of each level of a factor.

    Attributes
    ----------
    entries : int array, shape (G, q)
        Entries of each level.
    inverse_roots : float array, shape (G, q, q)
        :math:`S_g^{-1}` where the entries of a level are measured by :math:`S_g`.
    own : float array, shape (G,)
        Largest :math:`|W_i S_g|` over the rows of a level, with :math:`W_i` the multipliers of the
        entries of its level in a row.
    common : float array, shape (G,)
        Largest :math:`|X_i L|`, with :math:`X_i` the multipliers of the common entries in a row.
    """

    entries: NDArray[np.int64]
    inverse_roots: NDArray[np.float64]
    own: NDArray[np.float64]
    common: NDArray[np.float64]

    def own_reaches(
        self,
        anchor: NDArray[np.float64],
        before: NDArray[np.float64],
        after: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """As `Reach.of_levels`, for moves of the entries of each level alone."""
        reaches, points = np.empty((3, len(self.entries))), (anchor, before, after)
        _fill_own_reaches(self.entries, self.inverse_roots, self.own, points, reaches)
        return reaches


@dataclass(frozen=True, eq=False)
class Reach:
    r"""Bounds on how far predictors move.

    Attributes
    ----------
    common : int array, shape (p,)
        Entries that all rows read.
    inverse_root : float array, shape (p, p)
        :math:`L^{-1}`, by which moves of the common entries are measured.
    spans : sequence of Span
        One for each factor.
    """

    common: NDArray[np.int64]
    inverse_root: NDArray[np.float64]
    spans: Sequence[Span]

    def of_levels(
        self,
        factor: int,
        anchor: NDArray[np.float64],
        before: NDArray[np.float64],
        after: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        r"""Largest length of :math:`A_i \delta` over the rows of each level of a factor.

        Parameters
        ----------
        factor : int
            Number of the factor.
        anchor, before, after : float array, shape (d,)
            Three points.

        Returns
        -------
        float array, shape (3, G)
            For the differences :math:`\delta` between the anchor and the point before, between the
            anchor and the point after, and between these two.
        """
        reaches, span = np.empty((3, self.spans[factor].own.size)), self.spans[factor]
        own, points = (span.entries, span.inverse_roots, span.own), (anchor, before, after)
        _fill_own_reaches(*own, points, reaches)
        if self.common.size:
            _add_common_reaches(self.common, self.inverse_root, span.common, points, reaches)
        for number, other in enumerate(self.spans):
            if number != factor:
                far = other.own_reaches(anchor, before, after).max(axis=1, initial=0.0)
                reaches += far[:, None]
        return reaches
