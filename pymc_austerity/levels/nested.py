"""The move of the levels of a factor against those that are nested in them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels.factor import LevelsOfFactor


@dataclass(frozen=True, eq=False)
class NestedLevels:
    r"""Levels that rise while all levels within them fall, as effects of schools and their classes.

    No row notices :math:`w_r + \delta_r` together with :math:`u_p - \delta_r` for all p within r,
    so that moves of one factor after the other are slow wherever rows determine the sums. Priors
    are normal given everything else, and independent from one r to another: each :math:`\delta_r`
    is drawn from its distribution.

    Attributes
    ----------
    outer, inner : int
        Numbers of the factors.
    columns : (int, int)
        Which entry of a level of each.
    within : int array, shape (G,)
        The level of the outer factor for each level of the inner one.
    """

    outer: int
    inner: int
    columns: tuple[int, int]
    within: NDArray[np.int64]

    def drawn(
        self,
        factors: Sequence[LevelsOfFactor],
        theta: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Draw how far each level of the outer factor rises; reads no rows."""
        (i, j), above, below = self.columns, factors[self.outer], factors[self.inner]
        slope, precision = _slope_and_precision(above, theta, i)
        slope_below, precision_below = _slope_and_precision(below, theta, j)
        slope = slope - np.bincount(self.within, slope_below, slope.size)
        precision = precision + np.bincount(self.within, precision_below, slope.size)
        rises = slope / precision + rng.standard_normal(slope.size) / np.sqrt(precision)
        there = theta.copy()
        there[above.entries[:, i]] += rises
        there[below.entries[:, j]] -= rises[self.within]
        return there


def _slope_and_precision(
    levels: LevelsOfFactor, theta: NDArray[np.float64], column: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Derivative of the normal prior by one entry of each level where it is, and its precision."""
    gradients, curvatures = levels.prior_derivatives(theta)
    away = theta[levels.entries] - levels.anchor
    slopes = gradients[:, column] + np.einsum("gk,gk->g", curvatures[:, column], away)
    return slopes, -curvatures[:, column, column]
