"""The rows of each level of a factor, and bounds on what they can change."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.exact import ROUNDING, Candidates, Weights, expect, weights_of_rows
from pymc_austerity.parts import compiled_once

Points: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""The anchor, and the points before and after a move, each of shape (d,)."""


class Measured(NamedTuple):
    r"""Entries of blocks, in units in which their moves are measured.

    Attributes
    ----------
    entries : int array, shape (G, q)
        Entries of each block.
    inverse_roots : float array, shape (G, q, q)
        :math:`S_g^{-1}` where the entries of a block are measured by :math:`S_g`.
    """

    entries: NDArray[np.int64]
    inverse_roots: NDArray[np.float64]


class Span(NamedTuple):
    r"""Largest norms of the multipliers of entries, for the rows of each level of a factor.

    Attributes
    ----------
    levels : Measured
        Entries of the levels, by :math:`S_g`.
    own : float array, shape (G,)
        Largest :math:`|W_i S_g|` over the rows of a level, with :math:`W_i` the multipliers of the
        entries of its level in a row.
    common : float array, shape (G,)
        Largest :math:`|X_i L|`, with :math:`X_i` the multipliers of the common entries in a row,
        which are measured by :math:`L`.
    """

    levels: Measured
    own: NDArray[np.float64]
    common: NDArray[np.float64]


@compiled_once
def _reaches(its: Measured, norms: NDArray[np.float64], points: Points) -> NDArray[np.float64]:
    """Norms times lengths of moves, shape (3, G), of each block.

    The moves are those to the two points from the anchor, and that from one to the other.
    """
    entries, inverse_roots = its
    anchor, before, after = points
    n_blocks, q = entries.shape
    reaches = np.empty((3, n_blocks))
    for g in range(n_blocks):
        first = second = third = u = v = 0.0
        for i in range(q):
            u = v = 0.0
            for j in range(q):
                entry, scale = entries[g, j], inverse_roots[g, i, j]
                u += scale * (before[entry] - anchor[entry])
                v += scale * (after[entry] - anchor[entry])
            first, second, third = first + u * u, second + v * v, third + (v - u) * (v - u)
        if q == 1:
            first, second, third = abs(u), abs(v), abs(v - u)
        else:
            first, second, third = math.sqrt(first), math.sqrt(second), math.sqrt(third)
        reaches[0, g] = norms[g] * first
        reaches[1, g] = norms[g] * second
        reaches[2, g] = norms[g] * third
    return reaches


@compiled_once
def _bounds(
    span: Span,
    common: Measured,
    others: NDArray[np.float64],
    points: Points,
    radii: NDArray[np.float64],
    constants: NDArray[np.float64],
    inflation: float,
    its: Candidates,
) -> int:
    """Fill in bounds, and running sums of candidates; and return the number of rows without one."""
    own, norms, bounds = _reaches(span.levels, span.own, points), span.common, its.bounds
    far = _reaches(common, np.ones(1), points)
    for g in range(its.n_groups):
        x = own[0, g] + norms[g] * far[0, 0] + others[0]
        y = own[1, g] + norms[g] * far[1, 0] + others[1]
        moved = own[2, g] + norms[g] * far[2, 0] + others[2]
        squares, cubes = x * x + y * y + x * y, x * x * x + y * y * y
        change = min(moved * squares, cubes) / 6.0
        r = 0
        while r < radii.size and radii[r] < max(x, y):
            r += 1
        bound = np.inf
        if change == 0.0:
            bound = 0.0
        elif r < radii.size:
            bound = inflation * constants[r, g] * change
        bounds[g] = bound if bound <= 1.0 else np.inf
    return expect(its.n_groups, its.starts, bounds, its.totals)


@dataclass(frozen=True, eq=False)
class LevelRows:
    """Rows by the levels of a factor, with bounds on their third derivatives.

    Attributes
    ----------
    starts : int array, shape (G + 1,)
        Where the rows of each level begin.
    positions : int array, shape (N,), or None
        Positions in storage of the rows, level by level; None where they are stored in this order.
    span : Span
        How far moves of entries move the predictors of the rows.
    radii : float array, shape (R,)
        Lengths of displacements of the predictors, ascending.
    constants : float array, shape (R, G)
        The largest third derivative of the rows of each level, as functions of their predictors,
        for displacements up to each radius; infinite where there is no bound.
    rounding : float
        Nats by which rounding may take a row beyond its bound.
    """

    starts: NDArray[np.int64]
    positions: NDArray[np.int64] | None
    span: Span
    radii: NDArray[np.float64]
    constants: NDArray[np.float64]
    rounding: float = ROUNDING

    def largest_reach(self, points: Points) -> NDArray[np.float64]:
        """How far the levels move any predictor, shape (3,): see `candidates`."""
        largest: NDArray[np.float64] = _reaches(self.span.levels, self.span.own, points).max(axis=1)
        return largest

    def candidates(
        self, points: Points, common: Measured, others: NDArray[np.float64], inflation: float = 1.0
    ) -> Candidates:
        r"""Bounds on the change of the residual of a row of each level, and what they imply.

        .. math:: |R(v) - R(u)| \leq \frac{c}{6}
                  \min\{ |v - u| (|u|^2 + |u| |v| + |v|^2), \; |u|^3 + |v|^3 \}

        with u and v the displacements of the predictors from the anchor, before and after.

        Parameters
        ----------
        points : tuple of three float arrays, shape (d,)
            The anchor, and the points before and after.
        common : Measured
            Entries that all rows read, as one block; without entries if there are none.
        others : float array, shape (3,)
            How far the levels of other factors move a predictor at most: from the anchor to the
            points before and after, and from one to the other.
        inflation : float
            Factor of the bounds, at least 1: larger ones read more rows, whose weights vary less.
        """
        bounds, totals = np.empty((2, self.starts.size - 1))
        its = Candidates(bounds, totals, self.starts, bounds.size, 0)
        known = self.radii, self.constants, float(inflation), its
        n_read = _bounds(self.span, common, others, points, *known)
        return Candidates(bounds, totals, self.starts, bounds.size, n_read)

    def without_bound(
        self, bounds: NDArray[np.float64], fewest: int, *, together: bool
    ) -> NDArray[np.int64]:
        """Levels without a bound that have enough rows, each by itself or all together."""
        sizes, unbounded = np.diff(self.starts), np.isinf(bounds)
        if together:
            enough = sizes[unbounded].sum() >= fewest
            return np.flatnonzero(unbounded & (sizes > 0) & enough)
        return np.flatnonzero(unbounded & (sizes >= fewest))

    def weights(
        self,
        residuals: Callable[[NDArray[np.int64]], NDArray[np.float64]],
        its: Candidates,
        rng: np.random.Generator,
        *,
        together: bool = False,
    ) -> Weights:
        """Log weights of the levels, or of all together; see `exact.weights_of_rows`."""
        n_candidates = rng.poisson(its.totals[-1])
        uniform = rng.random(2 * n_candidates)
        uniform[:n_candidates].sort()  # memory is read in its order
        given = its, uniform, self.rounding, self.positions
        return weights_of_rows(residuals, *given, together=together)
