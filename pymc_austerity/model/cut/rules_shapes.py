"""Axes moved, added, merged, repeated, pieces joined, and products of sparse matrices."""

from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from scipy import sparse

from pymc_austerity._pymc import (
    SPARSE_PRODUCTS,
    Alloc,
    DimShuffle,
    Join,
    JoinDims,
    Repeat,
    Reshape,
    SparseTensorType,
    SpecifyShape,
    SplitDims,
    Variable,
    join_arguments,
)
from pymc_austerity.model.cut.cut import CannotCut, Cut, Wanted, output_rows

_MOST_PARTS = 32
"""Entries of a row that a reshape puts side by side; each is computed by itself."""

_MOST_PADDING, _SMALL = 8, 1_000_000
"""Numbers that are stored for one that is not zero, where these are more than some."""


@output_rows.register(DimShuffle)
def _dimshuffle(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """``x.T[i] == x[:, i]``: the rows are another axis of the input."""
    source = op.new_order[wanted.axis]
    if source == "x":
        raise CannotCut("the axis of the rows is a new axis of length one")
    (operand,) = wanted.node.inputs
    rows = cut.take(operand, source, wanted.selection)
    dropped = [axis for axis in range(operand.type.ndim) if axis not in op.new_order]
    if any(rows.type.shape[axis] != 1 for axis in dropped):
        rows = pt.specify_broadcastable(rows, *dropped)
    return rows.dimshuffle(op.new_order)


@output_rows.register(SpecifyShape)
def _specify_shape(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """Drop an assertion about the shape: it was about all rows."""
    return cut.take(wanted.node.inputs[0], wanted.axis, wanted.selection)


@output_rows.register(Alloc)
def _alloc(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """``alloc(x, n, k)[i] == alloc(x[i], k)``: as many copies as the batch has rows."""
    value = wanted.node.inputs[0]
    axis = wanted.axis - (wanted.ndim - value.type.ndim)
    lengths = cut.lengths(cut.known.shape(wanted.output), wanted.axis)
    return pt.alloc(cut.take_or_keep(value, axis, wanted.selection), *lengths)


@output_rows.register(Reshape)
@output_rows.register(JoinDims)
@output_rows.register(SplitDims)
def _reshape(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """``x.reshape(n, a * b)[i] == x[i].reshape(a * b)``, if the rows are an axis of their own."""
    operand = wanted.node.inputs[0]
    before, after = cut.known.shape(operand), cut.known.shape(wanted.output)
    for axis, length in enumerate(before):
        if length == after[wanted.axis] and (
            np.prod(before[:axis], dtype=int) == np.prod(after[: wanted.axis], dtype=int)
        ):
            rows = cut.take(operand, axis, wanted.selection)
            return rows.reshape(cut.lengths(after, wanted.axis))
    for axis, length in enumerate(before):
        if (own := _group(after, wanted.axis, before, axis)) is not None and length > 1:
            return _split(cut, wanted, axis, own)
        if (own := _group(before, axis, after, wanted.axis)) is not None:
            return _merged(cut, wanted, own)
    raise CannotCut(f"a reshape from {before} to {after} mixes the axis of the rows with others")


def _group(
    many: tuple[int, ...], one_of_them: int, merged: tuple[int, ...], axis: int
) -> range | None:
    """The axes of `many`, with `one_of_them`, that are a single axis of `merged`, or None."""
    n_before = np.prod(merged[:axis], dtype=int)
    for first in range(one_of_them + 1):
        for stop in range(one_of_them + 1, len(many) + 1):
            if (
                np.prod(many[:first], dtype=int) == n_before
                and np.prod(many[first:stop], dtype=int) == merged[axis]
            ):
                return range(first, stop)
    return None


def _split(cut: Cut, wanted: Wanted, axis: int, group: range) -> Variable:
    """``x.reshape(n, k)[i, j] == x[i * k + j]``: every ``j`` is a selection of rows."""
    (operand, *_), after = wanted.node.inputs, cut.known.shape(wanted.output)
    rows = cut.rows_of(wanted.selection)
    lengths = [after[a] for a in group]
    others = [n for a, n in zip(group, lengths, strict=True) if a != wanted.axis]
    if np.prod(others, dtype=int) > _MOST_PARTS:
        raise CannotCut(f"a reshape splits an axis into rows of {np.prod(others):,} entries")
    parts = []
    for place in np.ndindex(*others):
        at = [*place[: wanted.axis - group.start], rows, *place[wanted.axis - group.start :]]
        flat = np.ravel_multi_index(np.broadcast_arrays(*at), lengths)
        inner = cut.selection(flat, (wanted.output, wanted.selection, place))
        parts.append(cut.take(operand, axis, inner))
    joined = pt.stack(parts, axis=axis + 1)
    shape = [*after[: group.start], cut.batch_length, *others, *after[group.stop :]]
    return pt.moveaxis(joined.reshape(shape), group.start, wanted.axis)


def _merged(cut: Cut, wanted: Wanted, group: range) -> Variable:
    """``x.reshape(n * k)[i * k + j] == x[i, j]`` where all rows read the same ``j``."""
    operand = wanted.node.inputs[0]
    before, after = cut.known.shape(operand), cut.known.shape(wanted.output)
    chosen = cut.rows_of(wanted.selection)
    places = np.unravel_index(chosen, [before[a] for a in group])
    varying = [a for a, place in zip(group, places, strict=True) if np.ptp(place)] or [group.start]
    if len(varying) > 1:
        raise CannotCut(f"a reshape from {before} to {after} merges the rows with other axes")
    inner = cut.selection(
        places[varying[0] - group.start], (wanted.output, "merged", wanted.selection)
    )
    at = [
        slice(None) if a not in group or a == varying[0] else int(places[a - group.start][0])
        for a in range(len(before))
    ]
    rows = cut.take(operand, varying[0], inner)[tuple(at)]
    return rows.reshape(cut.lengths(after, wanted.axis))


@output_rows.register(Repeat)
def _repeat(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """``repeat(x, times)[i] == x[j[i]]`` with ``j`` known beforehand."""
    operand, times = wanted.node.inputs
    axis = 0 if op.axis is None else op.axis % operand.type.ndim
    if op.axis is None and operand.type.ndim != 1:
        raise CannotCut("a repeat of a raveled array mixes its rows")
    if cut.known.depends(times):
        raise CannotCut(f"how often entries are repeated depends on {cut.known.roots}")
    if axis != wanted.axis:
        return op(cut.take(operand, wanted.axis, wanted.selection), times)
    rows = np.repeat(np.arange(cut.known.shape(operand)[axis]), cut.known.value(times))
    inner = cut.through(wanted.selection, rows, (wanted.output, "repeat"))
    return cut.take_or_keep(operand, axis, inner)


@output_rows.register(Join)
def _join(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """``concatenate([x, y], axis=1)[i] == concatenate([x[i], y[i]])``."""
    axis, pieces = join_arguments(wanted.node)
    if axis % wanted.ndim == wanted.axis:
        return _end_to_end(pieces, cut, wanted)
    taken = [cut.take(piece, wanted.axis, wanted.selection) for piece in pieces]
    return pt.join(axis, *taken)


def _end_to_end(pieces: list[Variable], cut: Cut, wanted: Wanted) -> Variable:
    """Every piece is evaluated at every row, at any of its rows where the row is not its own."""
    lengths = [cut.known.shape(piece)[wanted.axis] for piece in pieces]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    rows = cut.rows_of(wanted.selection)
    joined = None
    for k, (piece, length, start) in enumerate(zip(pieces, lengths, starts, strict=False)):
        if length == 0:
            continue
        key = (wanted.output, k, wanted.selection)
        own = cut.selection(np.clip(rows - start, 0, length - 1), key)
        taken = cut.take_or_keep(piece, wanted.axis, own)
        if joined is None:
            joined = taken
        else:
            here = cut.mask(rows >= start, "part", ("part", *key), wanted)
            joined = pt.switch(here, taken, joined)
    return joined


# ------------------------------------------------------------------ sparse matrices


def _sparse_product(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """``(X @ b)[i] == sum(b[columns[i]] * values[i])``."""
    design, operand = wanted.node.inputs
    is_left = isinstance(design.type, SparseTensorType)
    if not is_left:  # b' X is the transpose of X' b
        design, operand = operand, design.T
    if wanted.axis != (0 if is_left else 1) or isinstance(operand.type, SparseTensorType):
        raise CannotCut("a product with a sparse matrix mixes the rows of its other factor")
    columns, values = _stored(design, cut, wanted, transposed=not is_left)
    if operand.type.ndim == 2:
        values = values[:, :, None]
    rows = (cut.keep(operand)[columns] * values).sum(axis=1)
    return rows if is_left else rows.T


for _op in SPARSE_PRODUCTS:
    output_rows.register(_op)(_sparse_product)


def _stored(
    design: Variable, cut: Cut, wanted: Wanted, *, transposed: bool
) -> tuple[Variable, Variable]:
    """Columns and values of the rows of the batch, shape (m, k)."""
    if cut.known.examples:
        raise CannotCut("a sparse matrix cannot be read from data=")
    if cut.known.depends(design):
        raise CannotCut(f"a sparse matrix depends on {cut.known.roots}")
    name, key = design.name or "data", (design, wanted.selection)
    whole = cut.known.value(design)
    matrix = (whole.T if transposed else whole).tocsr()
    if wanted.selection.rows is not None:
        matrix = matrix[wanted.selection.rows]
    columns, values = of_equal_length(matrix)
    return (
        cut.leaf(columns, f"columns of {name}", (key, "columns")),
        cut.leaf(values, name, (key, "values")),
    )


def of_equal_length(matrix: sparse.csr_matrix) -> tuple[NDArray[np.int32], NDArray]:
    """Columns and values of rows of equal length; what shorter rows lack is zeros of column 0.

    Parameters
    ----------
    matrix : scipy.sparse.csr_matrix, shape (n, p)

    Returns
    -------
    columns : int32 array, shape (n, k)
    values : array, shape (n, k)

    Raises
    ------
    CannotCut
        A few rows are much longer than the others.

    Examples
    --------
    >>> columns, values = of_equal_length(sparse.csr_matrix([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]]))
    >>> columns.tolist(), values.tolist()
    ([[1, 2], [0, 0]], [[2.0, 1.0], [3.0, 0.0]])
    """
    lengths = np.diff(matrix.indptr)
    n, k = lengths.size, max(int(lengths.max(initial=0)), 1)
    if n * k > max(_MOST_PADDING * matrix.nnz, _SMALL):
        raise CannotCut(
            f"a row of a sparse matrix has {k:,} entries where {matrix.nnz / n:.3g} are usual"
        )
    if matrix.nnz == n * k:
        indices = matrix.indices.astype(np.int32, copy=False)
        return indices.reshape(n, k), matrix.data.reshape(n, k)
    has = np.arange(k) < lengths[:, None]
    columns, values = np.zeros((n, k), dtype=np.int32), np.zeros((n, k), dtype=matrix.dtype)
    columns[has], values[has] = matrix.indices, matrix.data
    return columns, values
