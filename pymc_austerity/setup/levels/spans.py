"""What rows multiply parameters with, and bounds of their third derivatives, by level."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels import LevelRows, Span
from pymc_austerity.model import DenseRows, Design, Factor, design_function
from pymc_austerity.model.bounds import (
    NoBoundError,
    ScalarFunction,
    are_cheap,
    scalar_function,
    third_derivative_constants,
)
from pymc_austerity.rows import blocks_of
from pymc_austerity.setup.levels.parts import Parts
from pymc_austerity.setup.problem import Problem

__all__ = ["RowNorms", "have_cheap_bounds", "level_rows", "row_norms", "third_derivatives"]

_RADII = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
"""Displacements of predictors from the anchor, in their own units, up to which rows are bounded."""


@dataclass(frozen=True, eq=False)
class RowNorms:
    """Of every row, in storage order.

    Attributes
    ----------
    center : float array, shape (N, k)
        Predictors at the anchor.
    own : tuple of float array, shape (N,)
        Norms of what it multiplies the entries of its level with, for each factor.
    common : float array, shape (N,)
        The same for the common entries.
    """

    center: NDArray[np.float64]
    own: tuple[NDArray[np.float64], ...]
    common: NDArray[np.float64]


def row_norms(
    parts: Parts,
    anchor: NDArray[np.float64],
    roots: list[NDArray[np.float64]],
    common_root: NDArray[np.float64],
    levels: list[NDArray[np.int32]],
) -> RowNorms:
    """Norms of the rows' multipliers, in units of standard deviations given the rest.

    Parameters
    ----------
    parts : Parts
    anchor : float array, shape (d,)
    roots : list of float array, shape (G, q, q)
        Of the covariance of the entries of each level, one for each factor.
    common_root : float array, shape (p, p)
        Of the covariance of the common entries.
    levels : list of int array, shape (N,)
        Level of each row in storage order, one for each factor.
    """
    structure = parts.problem.structure
    assert not isinstance(structure, str)
    designs = design_function(structure, parts.problem.model)
    place = _places(parts)
    center, common = [], []
    own: list[list[NDArray[np.float64]]] = [[] for _ in parts.factors]
    done = 0
    for block in blocks_of(parts.rows):
        on_rows = designs(block)
        n = on_rows[0].n_rows
        center.append(np.stack([design.eta(anchor) for design in on_rows], axis=1))
        common.append(_norm([_common(d, place, len(common_root)) @ common_root for d in on_rows]))
        for number, (factor, root) in enumerate(zip(parts.factors, roots, strict=True)):
            here = root[levels[number][done : done + n]]
            spread = [_own(d, factor, place) for d in on_rows]
            own[number].append(_norm([np.einsum("mq,mqr->mr", w, here) for w in spread]))
        done += n
    return RowNorms(
        np.concatenate(center), tuple(np.concatenate(o) for o in own), np.concatenate(common)
    )


def have_cheap_bounds(problem: Problem) -> bool:
    """Whether the bounds of the rows take little time."""
    return are_cheap(_function(problem), problem.likelihood.arrays)


def _function(problem: Problem) -> ScalarFunction:
    structure = problem.structure
    assert not isinstance(structure, str)
    placeholders = [leaf.placeholder for leaf in structure.leaves]
    return scalar_function(structure.function, structure.etas, placeholders)


def third_derivatives(
    parts: Parts, center: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
    """Bounds of all rows in storage order for some radii, and why there are none.

    Returns
    -------
    radii : float array, shape (R,)
    constants : float array, shape (R, N)
    reason : str
        Half a sentence; empty if there are bounds.
    """
    function, arrays = _function(parts.problem), parts.problem.likelihood.arrays
    n_rows, k = center.shape
    if not have_cheap_bounds(parts.problem):
        return np.ones(1), np.full((1, n_rows), np.inf), "the bounds of their rows take long"
    unit = np.broadcast_to(np.eye(k), (n_rows, k, k))
    stored = [array[parts.rows.order] for array in arrays]
    try:
        constants = third_derivative_constants(function, stored, center, unit, _RADII)
    except NoBoundError as error:
        return np.ones(1), np.full((1, n_rows), np.inf), f"their rows have {error}"
    return np.array(_RADII), constants, ""


def level_rows(
    levels: NDArray[np.int32],
    n_levels: int,
    radii: NDArray[np.float64],
    constants: NDArray[np.float64],
    own: NDArray[np.float64],
    common: NDArray[np.float64],
    factor: Factor,
    inverse_roots: NDArray[np.float64],
) -> tuple[LevelRows, Span]:
    """Rows by level, and the largest of what is known of the rows of each."""
    is_sorted = bool((np.diff(levels) >= 0).all())
    order = None if is_sorted else np.argsort(levels, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(levels, minlength=n_levels))])
    largest = np.stack([_largest(c, levels, n_levels) for c in constants])
    rows = LevelRows(starts.astype(np.int64), order, radii, largest)
    span = Span(
        factor.entries,
        inverse_roots,
        _largest(own, levels, n_levels),
        _largest(common, levels, n_levels),
    )
    return rows, span


def _largest(
    values: NDArray[np.float64], levels: NDArray[np.int32], n_levels: int
) -> NDArray[np.float64]:
    largest = np.zeros(n_levels)
    np.maximum.at(largest, levels, values)
    return largest


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
