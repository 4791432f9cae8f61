"""How far the predictors of the rows of each level move with the parameters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["Reach", "Span"]


@numba.njit(cache=True, error_model="numpy")
def _fill_own_reach(
    entries: NDArray[np.int64],
    inverse_roots: NDArray[np.float64],
    own: NDArray[np.float64],
    moves: NDArray[np.float64],
    reach: NDArray[np.float64],
) -> float:
    """Fill in how far the entries of each level move its rows; return the largest of these."""
    n_levels, q = entries.shape
    largest = 0.0
    for g in range(n_levels):
        squares = 0.0
        for i in range(q):
            standard = 0.0
            for j in range(q):
                standard += inverse_roots[g, i, j] * moves[entries[g, j]]
            squares += standard * standard
        reach[g] = own[g] * math.sqrt(squares)
        if not reach[g] <= largest:  # nor if it is not a number
            largest = reach[g]
    return largest


@dataclass(frozen=True, eq=False)
class Span:
    r"""Largest norms of what rows are multiplied with, for the rows of each level of a factor.

    Attributes
    ----------
    entries : int array, shape (G, q)
        Entries of each level.
    inverse_roots : float array, shape (G, q, q)
        :math:`S_g^{-1}` where the entries of a level are measured by :math:`S_g`.
    own : float array, shape (G,)
        Largest :math:`|W_i S_g|` over the rows of a level, with :math:`W_i` what a row multiplies
        the entries of its level with.
    common : float array, shape (G,)
        Largest :math:`|X_i L|`, with :math:`X_i` what a row multiplies the common entries with.
    """

    entries: NDArray[np.int64]
    inverse_roots: NDArray[np.float64]
    own: NDArray[np.float64]
    common: NDArray[np.float64]

    def own_reach(self, moves: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """How far the entries of each level move the predictors of its rows, and the maximum."""
        reach = np.empty(len(self.entries))
        largest = _fill_own_reach(self.entries, self.inverse_roots, self.own, moves, reach)
        return reach, largest


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

    def of_levels(self, factor: int, moves: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Largest length of :math:`A_i \delta` over the rows of each level of a factor.

        Parameters
        ----------
        factor : int
            Which one.
        moves : float array, shape (d,)
            Differences of the parameters, :math:`\delta`.

        Returns
        -------
        float array, shape (G,)
        """
        span = self.spans[factor]
        reach, _ = span.own_reach(moves)
        if self.common.size:
            standard = self.inverse_root.dot(moves[self.common])
            reach += span.common * math.sqrt(standard.dot(standard))
        for number, other in enumerate(self.spans):
            if number != factor:
                reach += other.own_reach(moves)[1]
        return reach
