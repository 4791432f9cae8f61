"""What rows multiply parameters with, and bounds of their third derivatives, by level."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.model import DenseRows, Design, Factor, design_function
from pymc_austerity.model.bounds import (
    NoBoundError,
    are_cheap,
    third_derivative_constants,
)
from pymc_austerity.setup.levels.parts import Parts
from pymc_austerity.setup.problem import Problem

__all__ = ["RADII", "LevelLimits", "have_cheap_bounds", "level_limits"]

RADII = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
"""Displacements of predictors from the anchor, in their own units, up to which rows are bounded."""

_ROWS = 65_536
"""Rows that are bounded at once."""


@dataclass(frozen=True, eq=False)
class LevelLimits:
    """The largest of what is known of the rows of each level of a factor.

    Attributes
    ----------
    own : float array, shape (G,)
        Norms of what rows multiply the entries of their level with.
    common : float array, shape (G,)
        The same for the common entries.
    constants : float array, shape (R, G)
        Third derivatives for displacements of the predictors of at most so much; infinite for none.
    """

    own: NDArray[np.float64]
    common: NDArray[np.float64]
    constants: NDArray[np.float64]

    @classmethod
    def begin(cls, n_levels: int) -> "LevelLimits":
        """Of no rows."""
        return cls(np.zeros(n_levels), np.zeros(n_levels), np.zeros((len(RADII), n_levels)))

    def include(
        self,
        levels: NDArray[np.int32],
        own: NDArray[np.float64],
        common: NDArray[np.float64],
        constants: NDArray[np.float64],
    ) -> None:
        """Include rows of these levels, with constants of shape (R, m)."""
        np.maximum.at(self.own, levels, own)
        np.maximum.at(self.common, levels, common)
        for largest, values in zip(self.constants, constants, strict=True):
            np.maximum.at(largest, levels, values)


def level_limits(
    parts: Parts,
    anchor: NDArray[np.float64],
    roots: list[NDArray[np.float64]],
    common_root: NDArray[np.float64],
    levels: list[NDArray[np.int32]],
) -> tuple[list[LevelLimits], str]:
    """One pass over the rows for what bounds those of each level.

    Parameters
    ----------
    parts : Parts
    anchor : float array, shape (d,)
    roots : list of float array, shape (G, q, q)
        Of the covariance of the entries of each level given the rest, one for each factor.
    common_root : float array, shape (p, p)
        Of the covariance of the common entries given the levels.
    levels : list of int array, shape (N,)
        Level of each row in storage order, one for each factor.

    Returns
    -------
    limits : list of LevelLimits
        One for each factor.
    reason : str
        Why there are no bounds, as half a sentence; empty if there are.
    """
    structure = parts.problem.structure
    assert not isinstance(structure, str)
    designs, place = design_function(structure, parts.problem.model), _places(parts)
    bounds = _Bounds(parts.problem)
    limits = [LevelLimits.begin(len(factor.entries)) for factor in parts.factors]
    for start in range(0, parts.rows.n_rows, _ROWS):
        rows = slice(start, start + _ROWS)
        block = parts.rows.window(start, start + _ROWS)
        on_rows = designs(block)
        center = np.stack([design.eta(anchor) for design in on_rows], axis=1)
        constants = bounds.of_rows(block, center)
        common = _norm([_common(d, place, len(common_root)) @ common_root for d in on_rows])
        for own, limit, factor, root in zip(levels, limits, parts.factors, roots, strict=True):
            multipliers = [_own(design, factor, place) for design in on_rows]
            spread = [np.einsum("mq,mqr->mr", w, root[own[rows]]) for w in multipliers]
            limit.include(own[rows], _norm(spread), common, constants)
    return limits, bounds.missing


class _Bounds:
    """Bounds of the third derivatives of rows, and why there are none."""

    def __init__(self, problem: Problem) -> None:
        self.function = problem.scalar_function
        self.missing = "" if have_cheap_bounds(problem) else "the bounds of their rows take long"

    def of_rows(self, block: Sequence[NDArray], center: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each radius and row, shape (R, m); infinite where there is none."""
        n_rows, k = center.shape
        nothing = np.full((len(RADII), n_rows), np.inf)
        if self.missing:
            return nothing
        unit = np.broadcast_to(np.eye(k), (n_rows, k, k))
        try:
            return third_derivative_constants(self.function, block, center, unit, RADII)
        except NoBoundError as error:
            self.missing = f"their rows have {error}"
            return nothing


def have_cheap_bounds(problem: Problem) -> bool:
    """Whether the bounds of the rows take little time."""
    return are_cheap(problem.scalar_function, problem.likelihood.arrays)


def _norm(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Frobenius norm of the multipliers of all predictors, shape (m,)."""
    norm: NDArray[np.float64] = np.sqrt(sum((part * part).sum(axis=1) for part in parts))
    return norm


@dataclass(frozen=True, eq=False)
class _Places:
    """Where entries of the raveled point are in their block."""

    is_common: NDArray[np.bool_]
    position: NDArray[np.int64]
    owner: NDArray[np.int64]


def _places(parts: Parts) -> _Places:
    size = parts.problem.start.size
    is_common = np.zeros(size, dtype=bool)
    is_common[parts.blocks.common] = True
    position, owner = np.zeros(size, dtype=np.int64), np.full(size, -1)
    position[parts.blocks.common] = np.arange(parts.blocks.common.size)
    for number, factor in enumerate(parts.factors):
        owner[factor.entries] = number
        position[factor.entries] = np.arange(factor.entries.shape[1])
    return _Places(is_common, position, owner)


def _common(design: Design, place: _Places, size: int) -> NDArray[np.float64]:
    """Multipliers of the common entries, shape (m, p)."""
    total = np.zeros((design.n_rows, size))
    for term in design.terms:
        if isinstance(term, DenseRows):
            chosen = place.is_common[term.entries]
            total[:, place.position[term.entries[chosen]]] += term.data[:, chosen]
        else:
            (rows,) = np.nonzero(place.is_common[term.entries])
            total[rows, place.position[term.entries[rows]]] += term.coefficient[rows]
    return total


def _own(design: Design, factor: Factor, place: _Places) -> NDArray[np.float64]:
    """Multipliers of the entries of a row's own level, shape (m, q)."""
    total = np.zeros((design.n_rows, factor.entries.shape[1]))
    number = place.owner[factor.entries[0, 0]]
    for term in design.terms:
        if not isinstance(term, DenseRows):
            (rows,) = np.nonzero(place.owner[term.entries] == number)
            total[rows, place.position[term.entries[rows]]] += term.coefficient[rows]
    return total
