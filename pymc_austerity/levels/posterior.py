"""The posterior of a model with groups, as the moves use it."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels.expansion import Products, SparseExpansion
from pymc_austerity.levels.factor import LevelsOfFactor
from pymc_austerity.levels.means import FreeMean
from pymc_austerity.levels.normals import LevelNormals
from pymc_austerity.levels.reach import Reach
from pymc_austerity.levels.rows import ResidualsByAddress, Weights
from pymc_austerity.levels.sequential import FEWEST_ROWS, SequentialSettings

__all__ = ["CommonNormal", "GroupedPosterior"]

_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class CommonNormal:
    r"""Normal approximation of the entries that all rows read.

    Attributes
    ----------
    entries : int array, shape (p,)
    root : float array, shape (p, p)
        Of the covariance given the levels, :math:`L L'`.
    inverse_root : float array, shape (p, p)
    products : Products
        Products with the rows of these entries in the Hessian of the expansion, shape (p, d).
    hessian : float array, shape (p, p)
        The part of this Hessian for these entries alone.
    shift : float array, shape (p,)
        Average change of the gradient of the rows due to the uncertainty of the levels.
    prior_gradient : callable
        Of the exact part at a point, shape (p,).
    """

    entries: NDArray[np.int64]
    root: NDArray[np.float64]
    inverse_root: NDArray[np.float64]
    products: Products
    hessian: NDArray[np.float64]
    shift: NDArray[np.float64]
    prior_gradient: Callable[[NDArray], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class GroupedPosterior:
    """Everything that moves need; it never changes.

    Attributes
    ----------
    exact_part : callable
        ``f(proposed, current)``: difference of the exact part of the log-density, nats.
    residuals : callable
        ``f(proposed, current, rows)``: residuals of rows, by their positions in storage, nats.
    compiled : callable or None
        ``f(proposed, current)``: the same for compiled code, where there is such a function.
    expansion : SparseExpansion
        Sum of the expansions of all rows.
    factors : tuple of LevelsOfFactor
    reach : Reach
    common : CommonNormal or None
        None where no entry is read by all rows.
    means : tuple of FreeMean
        Means of levels that represent effects that sum to zero.
    sequential : SequentialSettings
        Settings of tests for large levels without bounds.
    """

    exact_part: Callable[[NDArray, NDArray], float]
    residuals: Callable[[NDArray, NDArray, NDArray[np.int64]], NDArray[np.float64]]
    compiled: Callable[[NDArray, NDArray], ResidualsByAddress] | None
    expansion: SparseExpansion
    factors: tuple[LevelsOfFactor, ...]
    reach: Reach
    common: CommonNormal | None
    means: tuple[FreeMean, ...] = ()
    sequential: SequentialSettings = field(default_factory=SequentialSettings)

    @property
    def anchor(self) -> NDArray[np.float64]:
        """Where rows are expanded, shape (d,)."""
        return self.expansion.point

    def bounds(
        self,
        factor: int,
        proposed: NDArray[np.float64],
        current: NDArray[np.float64],
        inflation: float = 1.0,
    ) -> NDArray[np.float64]:
        """By how much the residual of a row of each level of a factor can change, nats.

        The bound of a level depends on no other level of the factor: each has a decision of its
        own, and some may be accepted while others are rejected.
        """
        old, new = self._equivalent(factor, current), self._equivalent(factor, proposed)
        before, after, moved = self.reach.of_levels(factor, self.anchor, old, new)
        return self.factors[factor].rows.bounds(before, after, moved, inflation)

    def _equivalent(self, factor: int, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """A point near the anchor with the same likelihood."""
        for mean in self.means:
            if mean.factor != factor:
                theta = mean.nearest(theta, self.anchor)
        for mean in self.means:
            if mean.factor == factor:
                theta = mean.held(theta, self.anchor)
        return theta

    def row_weights(
        self,
        factor: int,
        proposed: NDArray[np.float64],
        current: NDArray[np.float64],
        rng: np.random.Generator,
        inflation: float = 1.0,
        *,
        together: bool = False,
    ) -> tuple[Weights, NDArray[np.int64]]:
        """Weights that replace the residuals, by the levels of a factor.

        Bounds are multiplied by `inflation`. Also returns the levels that are left to sequential
        tests, one for each or one for all `together`; none of their rows are read here.
        """
        rows, bounds = self.factors[factor].rows, self.bounds(factor, proposed, current, inflation)
        tested = _NONE
        if self.sequential.epsilon:
            tested = rows.without_bound(bounds, FEWEST_ROWS, together=together)
            bounds[tested] = 0.0
        if self.compiled is not None:
            return rows.weights(self.compiled(proposed, current), bounds, rng), tested
        return rows.weights(lambda at: self.residuals(proposed, current, at), bounds, rng), tested

    def level_normals(
        self, factor: int, theta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], LevelNormals]:
        """Slopes of the expansion, and approximate distribution of levels minus their anchor."""
        levels = self.factors[factor]
        slopes = levels.slopes(theta - self.anchor)
        return slopes, levels.normals(theta, slopes)
