"""Linear functions of the parameters for each row, and terms of them put together."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    Constant,
    DimShuffle,
    Subtensor,
    Variable,
    constant_entry,
    indices_of,
)
from pymc_austerity.model.predictors.affine import Affine, TooLargeError
from pymc_austerity.model.predictors.structure import Term

_MOST_NUMBERS = 1_000_000
_SMALL = 1_000


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
        total_of(offsets),
        float(sum(c.constant for c in columns)),
    )


def times(column: Column, factor: float) -> Column:
    """A constant multiple of a column."""
    if factor == 1.0:
        return column
    offset = None if column.offset is None else multiplied(column.offset, factor)
    terms = tuple(replace(term, scale=term.scale * factor) for term in column.terms)
    return Column(terms, offset, column.constant * factor)


def multiplied(vector: Variable, factor: float) -> Variable:
    """A constant multiple of a vector."""
    if factor == 1.0:
        return vector
    return -vector if factor == -1.0 else vector * _number(factor, vector)


def weighted(column: Column, weight: Variable) -> Column:
    """Product of a column and data of the rows, shape (m,)."""
    offsets = [] if column.offset is None else [column.offset * weight]
    if column.constant:
        offsets.append(weight * _number(column.constant, weight))
    terms = tuple(_weighted_term(term, weight) for term in column.terms)
    return Column(terms, total_of(offsets))


def _weighted_term(term: Term, weight: Variable) -> Term:
    if term.data is None:
        return replace(term, data=weight)
    return replace(term, data=term.data * (weight[:, None] if term.is_matrix else weight))


def total_of(vectors: Sequence[Any]) -> Any:
    """Sum of vectors, or of vectors and numbers; None of nothing."""
    return sum(vectors[1:], start=vectors[0]) if vectors else None


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
    terms = [_entry(int(e), float(s)) for e, s in zip(entries, scales, strict=True) if s]
    return Column(tuple(terms), None, float(array.constant[number]))


def _entry(entry: int, scale: float) -> Term:
    return Term(np.array([entry]), scale=scale)


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
    terms = [_entry(e, s) for e, s in shared]
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
    """Terms of entries that combine few parameters each, one term for each of them.

    Parameters that most entries have in common, such as coefficients of what describes groups, are
    one term with numbers for each row.
    """
    n, counts = matrix.shape[0], np.diff(matrix.tocsc().indptr)
    if np.diff(matrix.indptr).max() <= 2:
        return _one_by_one(matrix, index)
    others = matrix.multiply(counts <= n / 2).tocsr()
    others.eliminate_zeros()
    if np.diff(others.indptr).max() <= 2:
        used = np.flatnonzero(counts > n / 2)
    else:
        used, others = np.flatnonzero(counts), matrix[:0]
    if n * used.size > _MOST_NUMBERS:
        raise TooLargeError
    own = Term(used, None, pt.constant(matrix[:, used].toarray())[index])
    return [own, *_one_by_one(others, index)] if others.nnz else [own]


def _one_by_one(matrix: Any, index: Variable) -> list[Term]:
    """Terms of entries that combine at most a few parameters each."""
    n, widest = matrix.shape[0], int(np.diff(matrix.indptr).max())
    terms: list[Term] = []
    matrix.sort_indices()
    for slot in range(widest):
        has = np.diff(matrix.indptr) > slot
        where = matrix.indptr[:-1][has] + slot
        entries = np.full(n, matrix.indices[where[0]], dtype=np.int64)
        scales = np.zeros(n)
        entries[has], scales[has] = matrix.indices[where], matrix.data[where]
        if np.ptp(scales) == 0.0:
            terms.append(Term(entries, index, scale=float(scales[0])))
        else:
            terms.append(Term(entries, index, pt.constant(scales)[index]))
    return terms


def stored(columns: Variable, data: Variable, array: Affine) -> Column | None:
    """Column of the entries of a vector that every row stores, times their data, if it is simple.

    Parameters
    ----------
    columns, data : variables, shape (m, k)
    array : Affine
        A vector.
    """
    matrix = array.matrix
    matrix.eliminate_zeros()
    of_row = np.diff(matrix.indptr)
    is_simple = of_row.min() == of_row.max() == 1 and np.ptp(matrix.data) == 0.0
    if array.constant.any() or not is_simple:
        return None
    entries = matrix.indices.astype(np.int64)
    return Column((Term(entries, columns, data, float(matrix.data[0])),))


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
            return Column((Term(entries, None, chosen, float(matrix.data[0])),), offset)
        return Column((Term(entries, None, chosen * pt.constant(matrix.data)),), offset)
    if constant.size * used.size > _MOST_NUMBERS:
        raise TooLargeError
    return Column((Term(used, None, pt.dot(data, pt.constant(matrix[:, used].toarray()))),), offset)


# ------------------------------------------------------------------ arrays of columns, data
def by_position(shape: Sequence[int], function: Callable[[tuple[int, ...]], Any]) -> NDArray[Any]:
    """Array of objects that a function makes of each position."""
    result = np.empty(tuple(shape), dtype=object)
    for position in np.ndindex(*shape):
        result[position] = function(position)
    return result


def mapped(function: Callable[..., Any], array: NDArray, *arguments: Any) -> NDArray[Any]:
    """Array of objects made of the entries of another one."""
    return by_position(array.shape, lambda position: function(array[position], *arguments))


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


class Identity:
    """Numbers for graphs: the same one for graphs that compute the same in the same way."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[Variable, int] = {}

    def of(self, variable: Variable | None) -> int:
        """Number of a graph; -1 for None."""
        if variable is None:
            return -1
        if variable not in self._known:
            key = self._key(variable)
            self._known[variable] = self._numbers.setdefault(key, len(self._numbers))
        return self._known[variable]

    def _key(self, variable: Variable) -> Hashable:
        node = variable.owner
        if node is not None:
            inputs = tuple(self.of(i) for i in node.inputs)
            return (node.op, node.outputs.index(variable), inputs)
        if isinstance(variable, Constant) and np.size(variable.data) <= _SMALL:
            data = variable.data
            if isinstance(data, np.ndarray | np.generic | int | float):
                return (variable.type, np.asarray(data).tobytes())
        return variable


@dataclass(frozen=True, eq=False)
class Multiple:
    """A linear function as a multiple of a predictor, ``scale * eta + offset + constant``.

    Attributes
    ----------
    key : hashable
        Equal for multiples of the same predictor.
    terms : tuple of terms
        Of the predictor.
    scale : float
    offset : variable, shape (m,), or None
    constant : float
    """

    key: Hashable
    terms: tuple[Term, ...]
    scale: float
    offset: Variable | None
    constant: float


def as_multiple(column: Column, identity: Identity) -> Multiple:
    """Reduce a linear function to the predictor that it is a multiple of."""
    terms = merged_terms(column.terms, identity)
    if not terms:
        return Multiple((), (), 1.0, column.offset, column.constant)
    # data are best left as they are, so that a design matrix has no multiple
    leading = min(terms, key=lambda t: (not t.is_matrix, t.is_sparse or t.columns is None))
    scale = leading.scale
    terms = tuple(replace(t, scale=t.scale / scale) for t in terms)
    key = tuple(sorted((*_key(t, identity), t.scale) for t in terms))
    return Multiple(key, terms, scale, column.offset, column.constant)


def merged_terms(terms: Sequence[Term], identity: Identity) -> tuple[Term, ...]:
    """Add up columns that read the same entries by the same data; data become a matrix."""
    found: dict[Hashable, Term] = {}
    for term in terms:
        key = _key(term, identity)
        found[key] = replace(term, scale=term.scale + found[key].scale) if key in found else term
    kept = [term for term in found.values() if term.scale != 0.0]
    columns = [t for t in kept if t.columns is None and t.data is not None and not t.is_matrix]
    if len(columns) < 2 or len({int(t.entries[0]) for t in columns}) < len(columns):
        return tuple(kept)
    return (*[t for t in kept if t not in columns], _as_matrix(columns, identity))


def _key(term: Term, identity: Identity) -> tuple[Any, ...]:
    return (term.entries.tobytes(), identity.of(term.columns), identity.of(term.data))


def _as_matrix(columns: Sequence[Term], identity: Identity) -> Term:
    columns = sorted(columns, key=lambda t: int(t.entries[0]))
    entries = np.concatenate([t.entries for t in columns])
    scales = np.array([t.scale for t in columns])
    data = _stacked([t.data for t in columns if t.data is not None], identity)
    if np.ptp(scales) == 0.0:
        return Term(entries, None, data, float(scales[0]))
    return Term(entries, None, data * pt.constant(scales))


def _stacked(vectors: Sequence[Variable], identity: Identity) -> Variable:
    """Vectors side by side; where they are columns of one matrix, of that matrix."""
    places = [place for v in vectors if (place := _column_of(v)) is not None]
    if len(places) < len(vectors) or len({identity.of(matrix) for matrix, _ in places}) > 1:
        return pt.stack(list(vectors), axis=1)
    matrix, columns = places[0][0], [place[1] for place in places]
    if matrix.type.shape[1] == len(columns) and columns == list(range(len(columns))):
        return matrix
    return matrix[:, columns]


def _column_of(vector: Variable) -> tuple[Variable, int] | None:
    """The matrix, and the number of the column in it, that a vector is."""
    node = vector.owner
    if node is None or not isinstance(node.op, Subtensor) or node.inputs[0].type.ndim != 2:
        return None
    rows, column = (*indices_of(node), slice(None))[:2]
    if rows != slice(None) or isinstance(column, slice):
        return None
    number = constant_entry(column)
    return None if number is None else (node.inputs[0], int(number))
