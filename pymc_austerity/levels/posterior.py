"""The posterior of a model with groups, whose rows have bounds on what the expansion leaves."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels.factor import LevelNormals, LevelsOfFactor
from pymc_austerity.levels.rows import ResidualsByAddress, Weights
from pymc_austerity.levels.sequential import FEWEST_ROWS, SequentialSettings
from pymc_austerity.levels.terms import Products, SparseExpansion

_NONE = np.empty(0, dtype=np.int64)


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
        Of the row-free part at a point, shape (p,).
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
    row_free_part : callable
        ``f(proposed, current)``: difference of the row-free part of the log-density, nats.
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

    row_free_part: Callable[[NDArray, NDArray], float]
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
