"""All levels of a factor, given everything else."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels.expansion import Products
from pymc_austerity.levels.kept import KeptAtAnchor
from pymc_austerity.levels.normals import LevelNormals, normals_of
from pymc_austerity.levels.rows import LevelRows

__all__ = ["LevelsOfFactor", "Prior", "PriorByAddress", "fill_quadratic"]


class PriorByAddress(Protocol):
    """Derivatives of a prior in compiled code; see `pymc_austerity.model.LevelsAsRows`."""

    @property
    def address(self) -> int | None:
        """Address of the function; None if there is none."""

    @property
    def table(self) -> NDArray[np.int64]:
        """What the function reads."""


@dataclass(frozen=True, eq=False)
class Prior:
    """The terms of the exact part of the log-density that depend on levels.

    Attributes
    ----------
    terms : callable
        Maps a raveled point to the terms of each level, shape (G,), nats.
    derivatives : callable
        Maps a raveled point to gradients, shape (G, q), and Hessians, shape (G, q, q), with
        respect to the entries of each level.
    given : int array
        Entries of other blocks on which the terms depend.
    hyperparameters : int array
        Those of `given` on which no row depends.
    is_quadratic : bool
        Whether the terms are quadratic functions of the entries of a level.
    by_address : PriorByAddress or None
        The derivatives in compiled code, if there is such a function.
    is_all : bool
        Whether no other term of the exact part depends on the levels.
    """

    terms: Callable[[NDArray], NDArray[np.float64]]
    derivatives: Callable[[NDArray], tuple[NDArray[np.float64], NDArray[np.float64]]]
    given: NDArray[np.int64]
    hyperparameters: NDArray[np.int64]
    is_quadratic: bool
    by_address: PriorByAddress | None = None
    is_all: bool = True


@dataclass(frozen=True, eq=False)
class LevelsOfFactor:
    r"""Levels of a factor: a normal approximation of each, given everything else.

    Attributes
    ----------
    names : str
        Names of the variables.
    entries : int array, shape (G, q)
        Entries of each level in the raveled point.
    anchor : float array, shape (G, q)
        Point about which the rows are expanded.
    hessians : float array, shape (G, q, q)
        Hessians of the expansion with respect to the entries of each level.
    others : Products, of a matrix of shape (G q, d)
        Cross derivatives of the expansion, with respect to an entry of the levels and one of
        another block.
    gradient : float array, shape (G, q)
        Gradient of the expansion.
    prior : Prior
        Their terms of the exact part.
    rows : LevelRows
        Rows of each level.
    """

    names: str
    entries: NDArray[np.int64]
    anchor: NDArray[np.float64]
    hessians: NDArray[np.float64]
    others: Products
    gradient: NDArray[np.float64]
    prior: Prior
    rows: LevelRows
    _derivatives: KeptAtAnchor = field(init=False, repr=False)
    _slopes: KeptAtAnchor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        its, read = self.prior, self.others.columns
        at_anchor = np.zeros(max(a.max(initial=0) for a in (self.entries, read, its.given)) + 1)
        at_anchor[self.entries] = self.anchor
        kept = KeptAtAnchor(its.derivatives, its.given, self.entries, at_anchor)
        object.__setattr__(self, "_derivatives", kept)
        slopes = KeptAtAnchor(self._slopes_at, read, np.empty(0, np.int64), at_anchor)
        object.__setattr__(self, "_slopes", slopes)

    def slopes(self, moves: NDArray[np.float64]) -> NDArray[np.float64]:
        """Gradient of the expansion at the levels' anchor given the others, shape (G, q).

        Parameters
        ----------
        moves : float array, shape (d,)
            All entries, minus the anchor.
        """
        slopes: NDArray[np.float64] = self._slopes(moves)
        return slopes

    def _slopes_at(self, moves: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.gradient + self.others(moves).reshape(self.gradient.shape)

    def prior_derivatives(
        self, theta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """`Prior.derivatives` with the levels at their anchor."""
        gradients, curvatures = self._derivatives(theta)
        return gradients, curvatures

    def normals(self, theta: NDArray[np.float64], slopes: NDArray[np.float64]) -> LevelNormals:
        """Approximate distribution of the levels minus their anchor, given the others."""
        gradients, curvatures = self.prior_derivatives(theta)
        return normals_of(-self.hessians - curvatures, slopes + gradients)

    def prior_difference(
        self,
        proposed: NDArray[np.float64],
        current: NDArray[np.float64],
        new: NDArray[np.float64],
        old: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Difference of the exact part for each level, shape (G,), nats.

        Parameters
        ----------
        proposed, current : float array, shape (d,)
            Points that differ only in the levels.
        new, old : float array, shape (G, q)
            Their levels, minus the anchor.
        """
        if not self.prior.is_quadratic:
            return self.prior.terms(proposed) - self.prior.terms(current)
        gradients, curvatures = self.prior_derivatives(current)
        return _quadratic(gradients, curvatures, new, old)

    def expansion(
        self, slopes: NDArray[np.float64], new: NDArray[np.float64], old: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Difference of the expansion for each level, shape (G,), nats."""
        return _quadratic(slopes, self.hessians, new, old)


def _quadratic(
    slopes: NDArray[np.float64],
    hessians: NDArray[np.float64],
    new: NDArray[np.float64],
    old: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Difference of quadratic functions between two points of each level, shape (G,)."""
    differences = np.empty(len(new))
    fill_quadratic(slopes, hessians, new, old, differences)
    return differences


@numba.njit(cache=True)
def fill_quadratic(
    slopes: NDArray[np.float64],
    hessians: NDArray[np.float64],
    new: NDArray[np.float64],
    old: NDArray[np.float64],
    differences: NDArray[np.float64],
) -> None:
    """Fill in the differences of quadratic functions between two points of each level."""
    n_levels, q = new.shape
    for g in range(n_levels):
        differences[g] = 0.0
        for i in range(q):
            slope = 0.0
            for j in range(q):
                slope += hessians[g, i, j] * (0.5 * (new[g, j] + old[g, j]))
            differences[g] += (new[g, i] - old[g, i]) * (slopes[g, i] + slope)
