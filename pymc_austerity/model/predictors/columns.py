"""Linear functions of the parameters for every row, as sums of terms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import DimShuffle, Variable
from pymc_austerity.model.predictors.affine import Affine, TooLargeError
from pymc_austerity.model.predictors.structure import Dense, Gathered, Single, Term

__all__ = [
    "Column",
    "ColumnArray",
    "dense",
    "gathered",
    "mapped",
    "plus",
    "row_vector",
    "singles",
    "times",
    "weighted",
]

_MOST_NUMBERS = 1_000_000


@dataclass(frozen=True, eq=False)
class Column:
    """One linear function of the parameters for every row.

    Attributes
    ----------
    terms : tuple of terms
        What depends on parameters.
    offset : variable, shape (m,), or None
        What depends on data alone.
    constant : float
        What is the same for all rows.
    """

    terms: tuple[Term, ...] = ()
    offset: Variable | None = None
    constant: float = 0.0


@dataclass(frozen=True, eq=False)
class ColumnArray:
    """An array with an axis of rows and a linear function for every position on the others.

    Attributes
    ----------
    array : array of Column
        Of length 1 along the axis of the rows.
    axis : int
        Axis of the rows.
    """

    array: NDArray[Any]
    axis: int


# ------------------------------------------------------------------ arithmetic


def plus(columns: Sequence[Column]) -> Column:
    """Sum of columns."""
    offsets = [c.offset for c in columns if c.offset is not None]
    return Column(
        tuple(term for c in columns for term in c.terms),
        _sum(offsets) if offsets else None,
        float(sum(c.constant for c in columns)),
    )


def times(column: Column, factor: float) -> Column:
    """A constant multiple of a column."""
    if factor == 1.0:
        return column
    offset = column.offset
    if offset is not None:
        offset = -offset if factor == -1.0 else offset * _number(factor, offset)
    terms = tuple(replace(term, scale=term.scale * factor) for term in column.terms)
    return Column(terms, offset, column.constant * factor)


def weighted(column: Column, weight: Variable) -> Column:
    """Product of a column and data of the rows, shape (m,)."""
    offsets = [] if column.offset is None else [column.offset * weight]
    if column.constant:
        offsets.append(weight * _number(column.constant, weight))
    terms = tuple(_weighted_term(term, weight) for term in column.terms)
    return Column(terms, _sum(offsets) if offsets else None)


def _weighted_term(term: Term, weight: Variable) -> Term:
    if isinstance(term, Dense):
        return replace(term, data=term.data * weight[:, None])
    coefficient = weight if term.coefficient is None else term.coefficient * weight
    return replace(term, coefficient=coefficient)


def _sum(vectors: Sequence[Variable]) -> Variable:
    total = vectors[0]
    for vector in vectors[1:]:
        total = total + vector
    return total


def _number(value: float, like: Variable) -> Any:
    """A constant that does not make integers or short floats any longer than they have to be."""
    return np.asarray(value, dtype=like.dtype if like.dtype.startswith("float") else "float64")


# ------------------------------------------------------------------ from parameters


def singles(array: Affine, axis: int) -> ColumnArray:
    """ColumnArray of an array without rows that is broadcast along the rows."""
    columns = mapped(_single, array.numbers, array)
    return ColumnArray(columns, axis)


def _single(number: int, array: Affine) -> Column:
    matrix = array.matrix
    first, last = matrix.indptr[number], matrix.indptr[number + 1]
    entries, scales = matrix.indices[first:last], matrix.data[first:last]
    terms = [Single(int(e), None, float(s)) for e, s in zip(entries, scales, strict=True) if s]
    return Column(tuple(terms), None, float(array.constant[number]))


def gathered(array: Affine, index: Variable) -> Column:
    """Column of the entry that every row picks from a vector.

    Raises
    ------
    TooLargeError
        Each entry of a long vector is a combination of many parameters.
    """
    n, matrix = array.constant.size, array.matrix
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    shared, own = _shared_by_all(array)
    terms: list[Term] = [Single(int(e), None, s) for e, s in shared]
    if n > 1 and own.nnz:
        terms.extend(_picked(own.tocsr(), index))
    if np.ptp(array.constant) == 0.0:
        return Column(tuple(terms), None, float(array.constant[0]))
    return Column(tuple(terms), pt.constant(array.constant)[index])


def _shared_by_all(array: Affine) -> tuple[list[tuple[int, float]], Any]:
    """Parameters that are in every entry with the same coefficient, and the rest of the matrix."""
    columns = array.matrix.tocsc()
    counts = np.diff(columns.indptr)
    found = []
    for entry in np.flatnonzero(counts == array.constant.size):
        values = columns.data[columns.indptr[entry] : columns.indptr[entry + 1]]
        if np.ptp(values) == 0.0:
            found.append((int(entry), float(values[0])))
    kept = np.ones(columns.shape[1], dtype=bool)
    kept[[entry for entry, _ in found]] = False
    rest = columns.copy()
    rest.data = rest.data * np.repeat(kept, counts)
    rest.eliminate_zeros()
    return found, rest


def _picked(matrix: Any, index: Variable) -> list[Term]:
    """Terms of entries that combine few parameters each, one term for each of them."""
    n, widest = matrix.shape[0], int(np.diff(matrix.indptr).max())
    used = np.flatnonzero(np.diff(matrix.tocsc().indptr))
    if widest > 2:
        if n * used.size > _MOST_NUMBERS:
            raise TooLargeError
        return [Dense(used, pt.constant(matrix[:, used].toarray())[index])]
    terms: list[Term] = []
    matrix.sort_indices()
    for slot in range(widest):
        has = np.diff(matrix.indptr) > slot
        where = matrix.indptr[:-1][has] + slot
        entries = np.full(n, matrix.indices[where[0]], dtype=np.int64)
        scales = np.zeros(n)
        entries[has], scales[has] = matrix.indices[where], matrix.data[where]
        if np.ptp(scales) == 0.0:
            terms.append(Gathered(entries, index, None, float(scales[0])))
        else:
            terms.append(Gathered(entries, index, pt.constant(scales)[index]))
    return terms


def dense(data: Variable, array: Affine) -> Column:
    """Column of products of data, shape (m, p), with a vector of p entries.

    Raises
    ------
    TooLargeError
        The entries are combinations of too many parameters.
    """
    matrix, constant = array.matrix, array.constant
    matrix.eliminate_zeros()
    offset = None
    if constant.any():
        rows = np.flatnonzero(constant)
        offset = (
            data[:, int(rows[0])] * _number(constant[rows[0]], data)
            if rows.size == 1
            else pt.dot(data, pt.constant(constant))
        )
    used = np.unique(matrix.indices).astype(np.int64)
    if not used.size:
        return Column((), offset)
    of_row, of_entry = np.diff(matrix.indptr), np.bincount(matrix.indices)
    if of_row.max() == 1 and of_entry.max() == 1:
        rows = np.flatnonzero(of_row)
        entries = matrix.indices.astype(np.int64)
        chosen = data if rows.size == constant.size else data[:, rows]
        if np.ptp(matrix.data) == 0.0:
            return Column((Dense(entries, chosen, float(matrix.data[0])),), offset)
        return Column((Dense(entries, chosen * pt.constant(matrix.data)),), offset)
    if constant.size * used.size > _MOST_NUMBERS:
        raise TooLargeError
    return Column((Dense(used, pt.dot(data, pt.constant(matrix[:, used].toarray()))),), offset)


# ------------------------------------------------------------------ arrays of columns, data


def mapped(function: Callable[..., Any], array: NDArray, *arguments: Any) -> NDArray[Any]:
    """Array of objects made of the entries of another one."""
    result = np.empty(array.shape, dtype=object)
    for position in np.ndindex(array.shape):
        result[position] = function(array[position], *arguments)
    return result


def row_vector(data: Variable, axis: int, position: Sequence[int]) -> Variable:
    """Rows of data at a position on the other axes, shape (m,).

    Parameters
    ----------
    data : variable
        Data with rows.
    axis : int
        Axis of the rows.
    position : sequence of int
        One number per axis; that on the axis of the rows is not read.
    """
    if data.type.ndim == 1:
        return data
    node = data.owner
    if node is not None and isinstance(node.op, DimShuffle):
        order = node.op.new_order
        inner = [0] * node.inputs[0].type.ndim
        for place, k in enumerate(order):
            if k != "x":
                inner[k] = position[place]
        if order[axis] != "x":
            return row_vector(node.inputs[0], order[axis], inner)
    index = tuple(slice(None) if k == axis else int(i) for k, i in enumerate(position))
    return data[index]
