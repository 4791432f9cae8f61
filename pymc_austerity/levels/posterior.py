"""The posterior of a model with groups, whose rows have bounds on what the expansion leaves."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import SequentialSettings
from pymc_austerity.exact import Candidates
from pymc_austerity.levels.factor import LevelNormals, LevelsOfFactor
from pymc_austerity.levels.rows import Measured
from pymc_austerity.levels.terms import Products, SparseExpansion

ResidualsOfRows: TypeAlias = Callable[[NDArray, NDArray, NDArray[np.int64]], NDArray[np.float64]]
"""From two points and positions in storage to residuals of rows between the points, nats."""

_NONE, _NOWHERE = np.empty(0, dtype=np.int64), np.zeros(3)


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


@dataclass(frozen=True, eq=False)
class Unread:
    """Directions along which no predictor changes.

    If rows read the sum of an intercept and a level, the intercept can rise and all levels of the
    factor fall. Bounds of rows are tighter at the equivalent point that is nearest to the anchor.

    Attributes
    ----------
    directions : float array, shape (k, d)
    amounts : float array, shape (n_factors, k, d)
        For a decision on the levels of each factor: from displacements of the other entries to how
        much of each direction to take away.
    """

    directions: NDArray[np.float64]
    amounts: NDArray[np.float64]


class GivenPrior(NamedTuple):
    """What the prior of the common entries makes of them, given all others.

    Attributes
    ----------
    gradient : float array, shape (p,)
        Of the row-free part, with the common entries at the anchor.
    root, inverse_root : float arrays, shape (p, p)
        Lower root of the covariance, and its inverse.
    """

    gradient: NDArray[np.float64]
    root: NDArray[np.float64]
    inverse_root: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CommonNormal:
    r"""Normal approximation of the entries that all rows read.

    Attributes
    ----------
    entries : int array, shape (p,)
    root : float array, shape (p, p)
        Of the covariance given the levels, :math:`L L'`, with all others at the anchor.
    inverse_root : float array, shape (p, p)
    products : Products
        Products with the rows of these entries in the Hessian of the expansion, shape (p, d).
    hessian : float array, shape (p, p)
        The part of this Hessian for these entries alone.
    shift : float array, shape (p,)
        Average change of the gradient of the rows due to the uncertainty of the levels.
    given : callable
        From a point, shape (d,), to the `GivenPrior`.
    """

    entries: NDArray[np.int64]
    root: NDArray[np.float64]
    inverse_root: NDArray[np.float64]
    products: Products
    hessian: NDArray[np.float64]
    shift: NDArray[np.float64]
    given: Callable[[NDArray], GivenPrior]


@dataclass(frozen=True, eq=False)
class GroupedPosterior:
    """Everything that moves need; it never changes.

    Attributes
    ----------
    row_free_part : callable
        ``f(proposed, current)``: difference of the row-free part of the log-density, nats.
    residuals : ResidualsOfRows
    expansion : SparseExpansion
        Sum of the expansions of all rows.
    factors : tuple of LevelsOfFactor
    common : CommonNormal or None
        None where no entry is read by all rows.
    means : tuple of FreeMean
        Means of levels that represent effects that sum to zero.
    unread : Unread or None
    sequential : SequentialSettings
        Settings of tests for large levels without bounds.
    """

    row_free_part: Callable[[NDArray, NDArray], float]
    residuals: ResidualsOfRows
    expansion: SparseExpansion
    factors: tuple[LevelsOfFactor, ...]
    common: CommonNormal | None
    means: tuple[FreeMean, ...] = ()
    unread: Unread | None = None
    sequential: SequentialSettings = field(default_factory=SequentialSettings)

    @property
    def anchor(self) -> NDArray[np.float64]:
        """Where rows are expanded, shape (d,)."""
        return self.expansion.point

    def candidates(
        self,
        factor: int,
        proposed: NDArray[np.float64],
        current: NDArray[np.float64],
        inflation: float = 1.0,
    ) -> Candidates:
        """Rows of each level of a factor, by how much their residuals can change.

        The bound of a level depends on no other level of the factor: each has a decision of its
        own, and some may be accepted while others are rejected.
        """
        before, after = self._equivalent(factor, current), self._equivalent(factor, proposed)
        points = self.anchor, before, after
        others = _NOWHERE
        for number, levels in enumerate(self.factors):
            if number != factor:
                others = others + levels.rows.largest_reach(points)
        return self.factors[factor].rows.candidates(points, self._common, others, inflation)

    @cached_property
    def _common(self) -> Measured:
        """The common entries as one block."""
        its = self.common
        if its is None:
            return Measured(_NONE[None], np.empty((1, 0, 0)))
        return Measured(its.entries[None], np.ascontiguousarray(its.inverse_root)[None])

    def _equivalent(self, factor: int, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """A point near the anchor with the same likelihood."""
        if self.unread is None:
            return theta
        amounts = self.unread.amounts[factor] @ (theta - self.anchor)
        nearer: NDArray[np.float64] = theta - amounts @ self.unread.directions
        return nearer

    def level_normals(
        self, factor: int, theta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], LevelNormals]:
        """Slopes of the expansion, and approximate distribution of levels minus their anchor."""
        levels = self.factors[factor]
        slopes = levels.slopes(theta - self.anchor)
        return slopes, levels.normals(theta, slopes)
