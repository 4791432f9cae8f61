"""Blocks of parameters: of single levels of a factor, of all rows, of none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable
from pymc_austerity.model.predictors.structure import PointMap, RowStructure, Term, data_reader
from pymc_austerity.model.row_likelihood import ModelAt

_NOBODY, _SHARED = -1, -2
_POINTS, _JITTER = 2, 0.5
"""Points besides the start at which the prior is examined, and how far from it they are."""


@dataclass(frozen=True, eq=False)
class Factor:
    """Parameters of the levels of a factor; given all the others, levels are independent.

    Attributes
    ----------
    names : str
        Of the variables that the entries belong to.
    entries : int array, shape (n_levels, n_per_level)
        Positions in the raveled vector of the variables.
    index : variable, shape (m,)
        Graph of leaf placeholders: the level of each row.
    n_rows : int array, shape (n_levels,)
        Rows of each level; there may be none. Empty where rows are not in memory.
    """

    names: str
    entries: NDArray[np.int64]
    index: Variable
    n_rows: NDArray[np.int64]

    def __str__(self) -> str:
        """What `explain` says of it."""
        if not self.n_rows.size:
            return f"{len(self.entries):,} levels of {self.names}"
        fewest, most = self.n_rows.min(), self.n_rows.max()
        rows = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
        of_each = "one row each" if rows == "1" else f"{rows} rows each"
        return f"{len(self.entries):,} levels of {self.names}, {of_each}"


@dataclass(frozen=True, eq=False)
class Blocks:
    """All entries of the raveled vector, each in one block.

    Attributes
    ----------
    factors : tuple of Factor
        Entries that only the rows of one level read.
    common : int array
        Other entries that rows read.
    untouched : int array
        Entries that no row reads, such as the means and scales of priors.
    untouched_names : str
        Of the variables that these entries belong to; empty if there are none.
    """

    factors: tuple[Factor, ...]
    common: NDArray[np.int64]
    untouched: NDArray[np.int64]
    untouched_names: str


def find_blocks(
    structure: RowStructure, at: ModelAt, gradient: Callable[[NDArray], NDArray]
) -> Blocks:
    """Tell from the linear predictors which rows read which parameters.

    Parameters
    ----------
    structure : RowStructure
        The rows as functions of linear predictors.
    at : ModelAt
        The model, its variables, and a point at which the prior is examined.
    gradient : callable
        Of the row-free part of the log-density: from a raveled point to an array, shape (d,).
        Levels that it couples do not form a factor.

    Returns
    -------
    Blocks

    Notes
    -----
    Two levels are independent given the rest if the gradient with respect to one of them does not
    change with the other. Moving all levels whose number has a 1 in some binary digit at once
    compares every pair of levels with as many gradients as the largest number has digits.
    """
    layout, start = PointMap.of(at.variables, at.point), at.raveled.astype(structure.dtype)
    terms = [_with_entries_once(term) for p in structure.predictors for term in p.terms]
    distinct, numbers = _indices(terms, structure, at.likelihood.model)
    owner, level, sizes = _owners(terms, numbers, structure.size)
    factors = []
    for number, (index, levels) in enumerate(distinct):
        entries = _by_level(owner == number, level, sizes[number])
        if entries is None or _are_coupled(entries, gradient, start):
            owner[owner == number] = _SHARED
            continue
        n_rows = np.bincount(levels, minlength=len(entries)) if levels.size else levels
        names = layout.variables(np.sort(entries, axis=None))
        factors.append(Factor(names, entries, index, n_rows))
    common, untouched = (np.flatnonzero(owner == kind) for kind in (_SHARED, _NOBODY))
    names = layout.variables(untouched) if untouched.size else ""
    return Blocks(tuple(factors), common, untouched, names)


def _indices(
    terms: Sequence[Term], structure: RowStructure, model: pm.Model
) -> tuple[list[tuple[Variable, NDArray[np.int64]]], dict[Variable, int]]:
    """Different indices with the levels of the rows, and for each graph which one it is.

    Without levels, and all different, where the rows are not in memory.
    """
    graphs = list(dict.fromkeys(term.columns for term in terms if term.is_choice))
    read = data_reader(graphs, structure, model)
    values = read([leaf.array for leaf in structure.leaves]) if graphs else {}
    is_known = all(leaf.recipe is None for leaf in structure.leaves)
    distinct: list[tuple[Variable, NDArray[np.int64]]] = []
    numbers: dict[Variable, int] = {}
    for graph in graphs:
        levels = np.asarray(values[graph] if is_known else [], dtype=np.int64)
        equal = (n for n, (_, own) in enumerate(distinct) if is_known and (own == levels).all())
        numbers[graph] = next(equal, len(distinct))
        if numbers[graph] == len(distinct):
            distinct.append((graph, levels))
    return distinct, numbers


def _with_entries_once(term: Term) -> Term:
    """A term with each entry once, in order: rows that pick the school of their class pick it."""
    if not term.is_choice:
        return term
    entries, numbers = np.unique(term.entries, return_inverse=True)
    if np.array_equal(entries, term.entries):
        return term
    columns = pt.constant(numbers.astype(np.int32))[term.columns]
    return replace(term, entries=entries, columns=columns)


def _owners(
    terms: Sequence[Term], numbers: Mapping[Variable, int], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """For every entry the number of its index, or its other reader, and its level.

    And for every index the number of its levels.
    """
    sizes = np.zeros(max(numbers.values(), default=-1) + 1, dtype=np.int64)
    owner = np.full(size, _NOBODY)
    level = np.zeros(size, dtype=np.int64)
    for term in terms:
        if not term.is_choice:
            owner[term.entries] = _SHARED
            continue
        number, levels = numbers[term.columns], np.arange(term.entries.size)
        sizes[number] = max(sizes[number], term.entries.size)
        fits = (owner[term.entries] == number) & (level[term.entries] == levels)
        fits |= owner[term.entries] == _NOBODY
        owner[term.entries] = np.where(fits, number, _SHARED)
        level[term.entries] = levels
    return owner, level, sizes


def _by_level(
    own: NDArray[np.bool_], level: NDArray[np.int64], n_levels: int
) -> NDArray[np.int64] | None:
    """Entries of each level, shape (n_levels, n_per_level); None where these are of no use."""
    entries = np.flatnonzero(own)
    counts = np.bincount(level[entries], minlength=n_levels)
    if counts.size < 2 or not entries.size or counts.min() != counts.max():
        return None
    return entries[np.argsort(level[entries], kind="stable")].reshape(counts.size, -1)


def _are_coupled(
    entries: NDArray[np.int64], gradient: Callable[[NDArray], NDArray], start: NDArray
) -> bool:
    """Whether the row-free part depends on two levels together."""
    levels, rng = np.arange(len(entries)), np.random.default_rng(0)
    tolerance = np.sqrt(np.finfo(start.dtype).eps)
    jitter = rng.uniform(-_JITTER, _JITTER, size=(_POINTS, start.size)).astype(start.dtype)
    for here in (start, *(start + jitter)):  # a coefficient may be zero at the start
        before = gradient(here)
        for digit in range(int(levels[-1]).bit_length()):
            chosen = (levels >> digit) & 1 == 1
            moved, others = entries[chosen].ravel(), entries[~chosen].ravel()
            there = here.copy()
            there[moved] += rng.uniform(0.1, 0.3, size=moved.size)
            change = np.abs(gradient(there)[others] - before[others])
            if (change > tolerance * (1.0 + np.abs(before[others]))).any():
                return True
    return False
