"""The mean of levels that represent effects that sum to zero: only their prior depends on it."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels.factor import LevelsOfFactor

__all__ = ["FreeMean"]


@dataclass(frozen=True, eq=False)
class FreeMean:
    """Levels that can rise by any amount if an entry on which all rows depend falls by as much.

    Attributes
    ----------
    factor, column : int
        Factor of the levels, and index among the entries of each level.
    entries : int array, shape (G,)
        The levels in the raveled point.
    absorber : int
        The entry on which all rows depend.
    """

    factor: int
    column: int
    entries: NDArray[np.int64]
    absorber: int

    def raised(self, theta: NDArray[np.float64], amount: float) -> NDArray[np.float64]:
        """The point with the levels raised by an amount, which has the same likelihood."""
        point = theta.copy()
        point[self.entries] += amount
        point[self.absorber] -= amount
        return point

    def nearest(
        self, theta: NDArray[np.float64], anchor: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The equivalent point whose levels have the same mean as at the anchor."""
        return self.raised(theta, float((anchor[self.entries] - theta[self.entries]).mean()))

    def held(self, theta: NDArray[np.float64], anchor: NDArray[np.float64]) -> NDArray[np.float64]:
        """The equivalent point with the absorber at its anchor, so that levels are independent."""
        return self.raised(theta, float(theta[self.absorber] - anchor[self.absorber]))

    def drawn(
        self,
        factors: tuple[LevelsOfFactor, ...],
        theta: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """A point with the mean drawn from its distribution, which is normal, given all effects."""
        gradients, curvatures = factors[self.factor].prior.derivatives(theta)
        precision = -float(curvatures[:, self.column, self.column].sum())
        mean = float(gradients[:, self.column].sum()) / precision
        return self.raised(theta, mean + rng.standard_normal() / math.sqrt(precision))
