"""How far the predictors of the rows of each level move with the parameters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Reach", "Span"]


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

    def own_reach(self, moves: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far the entries of each level move the predictors of its rows, at most."""
        own = moves[self.entries]
        if own.shape[1] == 1:
            reach: NDArray[np.float64] = self.own * np.abs(own * self.inverse_roots[:, 0])[:, 0]
            return reach
        standard = np.matmul(self.inverse_roots, own[:, :, None])[:, :, 0]
        return self.own * np.sqrt((standard * standard).sum(axis=1))


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
        reach = span.own_reach(moves)
        if self.common.size:
            reach += span.common * float(np.linalg.norm(self.inverse_root @ moves[self.common]))
        for number, other in enumerate(self.spans):
            if number != factor:
                reach += other.own_reach(moves).max(initial=0.0)
        return reach
