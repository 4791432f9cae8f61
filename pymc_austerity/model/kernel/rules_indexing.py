"""Indexing of short axes, by fixed positions or by a number of the row."""

from typing import Any

import numpy as np

from pymc_austerity._pymc import (
    ADVANCED_INC_SUBTENSOR_OPS,
    ADVANCED_SUBTENSOR_OPS,
    Constant,
    IncSubtensor,
    SearchsortedOp,
    Subtensor,
    Variable,
    indices_of,
)
from pymc_austerity.model.kernel.formula import apply, cast, is_table, looked_up
from pymc_austerity.model.kernel.row_formula import (
    Cells,
    cells_of,
    common_row_axis,
    elementwise,
    kind_of,
    of_array,
)
from pymc_austerity.model.kernel.scalar import (
    LENGTH,
    ROW,
    Dependence,
    NoKernelError,
    Scalar,
    constant,
)


@cells_of.register(Subtensor)
def _subtensor(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Fixed positions, or slices."""
    cells = dict(zip(node.inputs, operands, strict=True))
    operand = operands[0]
    index = _index(node, cells, operand)
    return _at(operand, index)


def _advanced_subtensor(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Fixed positions, or one position for every row."""
    cells = dict(zip(node.inputs, operands, strict=True))
    operand = operands[0]
    index = _index(node, cells, operand)
    if not any(isinstance(i, Cells) for i in index):
        return _at(operand, index)
    return _looked_up(operand, index, kind_of(node.outputs[0].type.dtype))


for _kind in ADVANCED_SUBTENSOR_OPS:
    cells_of.register(_kind)(_advanced_subtensor)


def _set_or_add(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Entries at fixed positions set, or added to."""
    cells = dict(zip(node.inputs, operands, strict=True))
    operand, values = operands[:2]
    index = _index(node, cells, operand)
    if any(isinstance(i, Cells) for i in index):
        raise NoKernelError("entries are set at positions that differ by row")
    kind = kind_of(node.outputs[0].type.dtype)
    positions = np.arange(operand.scalars.size).reshape(operand.scalars.shape)
    chosen = positions[tuple(index)]
    row_axis = _row_axis_after(operand, index)
    padded = chosen.ndim - values.ndim
    own = None if values.row_axis is None else values.row_axis + padded
    if operand.row_axis is None and own is not None:
        raise NoKernelError("rows are written into an array without rows")
    if own is not None and own != row_axis:
        raise NoKernelError("rows meet rows")
    scalars = operand.scalars.copy()
    flat = scalars.reshape(-1)
    new = np.broadcast_to(values.scalars, chosen.shape)
    for position, value in zip(chosen.flat, new.flat, strict=True):
        before = flat[position]
        flat[position] = (
            apply("Cast", [value], kind)
            if op.set_instead_of_inc
            else apply("Add", [before, value], kind)
        )
    return Cells(flat.reshape(scalars.shape), operand.row_axis)


for _kind in (IncSubtensor, *ADVANCED_INC_SUBTENSOR_OPS):
    cells_of.register(_kind)(_set_or_add)


@cells_of.register(SearchsortedOp)
def _searchsorted(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """How many of a few sorted numbers are smaller (or not larger, from the right)."""
    edges, values, *sorter = operands
    if sorter or edges.row_axis is not None:
        raise NoKernelError("a search among sorted rows")
    name = "LT" if op.side == "left" else "LE"

    def count(entry: list[Scalar]) -> Scalar:
        below = [cast(apply(name, [edge, *entry], "b"), "i") for edge in edges.scalars]
        return apply("Add", below, "i")

    return elementwise(count, [values])


def _index(node: Any, cells: dict[Variable, Cells], operand: Cells) -> list[Any]:
    """Indices as numbers, slices and arrays, or as Cells where they differ by row."""
    index = [_entry(i, cells) for i in indices_of(node)]
    axis = 0
    for position, entry in enumerate(index):
        if entry is None:
            continue
        if axis == operand.row_axis:
            index[position] = _entry_of_rows(entry, operand)
        axis += 1
    return index


def _entry(index: Any, cells: dict[Variable, Cells]) -> Any:
    if index is None or isinstance(index, int | np.integer):
        return index
    if isinstance(index, slice):
        parts = [_entry(part, cells) for part in (index.start, index.stop, index.step)]
        return slice(*parts)
    if isinstance(index, Constant):
        return np.asarray(index.data) if index.type.ndim else int(index.data)
    found = cells[index]
    if found.ndim == 0 and found.only is LENGTH:
        return LENGTH
    if all(s.is_constant for s in found.scalars.flat):
        return np.array([s.value for s in found.scalars.flat]).reshape(found.scalars.shape)[()]
    if found.ndim == 0:
        raise NoKernelError("a position that is computed")
    return found


def _entry_of_rows(entry: Any, operand: Cells) -> Any:
    """All rows in their order, or one of rows that are alike; else a refusal."""
    are_alike = all(
        s.sources in (Dependence.NOTHING, Dependence.POINT) for s in operand.scalars.flat
    )
    if isinstance(entry, int) and are_alike:
        return 0
    if isinstance(entry, slice):
        is_whole = entry.start in (None, 0) and entry.step in (None, 1)
        if is_whole and (entry.stop is None or entry.stop is LENGTH):
            return slice(None)
    if isinstance(entry, Cells) and all(s is ROW for s in entry.scalars.flat):
        return entry
    raise NoKernelError("rows are picked out of the rows")


def _row_axis_after(operand: Cells, index: list[Any]) -> int | None:
    """Where the axis of the rows is after indexing."""
    if operand.row_axis is None:
        return None
    shape = list(operand.scalars.shape)
    shape[operand.row_axis] = -1
    marked = np.zeros([2 if n == -1 else n for n in shape])
    after = marked[tuple(index)].shape
    plain = np.zeros(operand.scalars.shape)[tuple(index)].shape
    differ = (k for k, (a, b) in enumerate(zip(after, plain, strict=True)) if a != b)
    return next(differ, None)


def _at(operand: Cells, index: list[Any]) -> Cells:
    if any(
        i is LENGTH or (isinstance(i, slice) and LENGTH in (i.start, i.stop, i.step)) for i in index
    ):
        raise NoKernelError("a position that is computed")
    scalars = np.empty((), dtype=object)
    found = operand.scalars[tuple(index)]
    if isinstance(found, np.ndarray):
        return Cells(found.copy(), _row_axis_after(operand, index))
    scalars[()] = found
    return Cells(scalars)


def _looked_up(operand: Cells, index: list[Any], kind: Any) -> Cells:
    """Entries at positions that differ by row."""
    index = [*index, *[slice(None)] * (operand.ndim - len(index))]
    axes = [k for k, i in enumerate(index) if not isinstance(i, slice)]
    is_together = axes == list(range(axes[0], axes[-1] + 1))
    if any(i is None for i in index) or not is_together:
        raise NoKernelError("positions by row beside other indices")
    operand = _at(operand, [i if isinstance(i, slice) else slice(None) for i in index])
    picks = [_as_cells(index[axis]) for axis in axes]
    ndim = max(pick.ndim for pick in picks)
    picks = [_of_ndim(pick, ndim) for pick in picks]
    row_axis = _row_axis_of_lookup(operand, axes, common_row_axis(picks), ndim)
    positions: list[Any] = list(np.broadcast_arrays(*[pick.scalars for pick in picks]))
    before, after = operand.scalars.shape[: axes[0]], operand.scalars.shape[axes[-1] + 1 :]
    result = np.empty((*before, *positions[0].shape, *after), dtype=object)
    for where in np.ndindex(*result.shape):
        head, middle = where[: axes[0]], where[axes[0] : axes[0] + ndim]
        tail = where[axes[0] + ndim :]
        table = operand.scalars[(*head, *[slice(None)] * len(axes), *tail)]
        result[where] = _picked(table, [position[middle] for position in positions], kind)
    return Cells(result, row_axis)


def _row_axis_of_lookup(
    operand: Cells, axes: list[int], of_picks: int | None, ndim: int
) -> int | None:
    """Where the rows are in the result."""
    own = operand.row_axis
    if own is None or own in axes:
        return None if of_picks is None else axes[0] + of_picks
    if of_picks is not None:
        raise NoKernelError("rows meet rows")
    return own if own < axes[0] else own - len(axes) + ndim


def _as_cells(index: Any) -> Cells:
    if isinstance(index, Cells):
        return index
    array = np.asarray(index)
    return of_array(array, str(array.dtype))


def _of_ndim(cells: Cells, ndim: int) -> Cells:
    """New axes in front."""
    new = ndim - cells.ndim
    row_axis = None if cells.row_axis is None else cells.row_axis + new
    return Cells(cells.scalars.reshape((1,) * new + cells.scalars.shape), row_axis)


def _picked(table: Any, positions: list[Scalar], kind: Any) -> Scalar:
    """Entry at computed positions: of an array of known numbers, or by a chain of comparisons."""
    if not positions:
        return table if isinstance(table, Scalar) else table[()]
    position, *others = positions
    if position is ROW:
        return _picked(table[0], others, kind)
    options = [_picked(table[k], others, kind) for k in range(len(table))]
    if is_table(options, position):
        return looked_up(options, position, kind)
    result = options[-1]
    for k in range(len(options) - 2, -1, -1):
        hits = [apply("EQ", [position, constant(n)], "b") for n in (k, k - len(options))]
        result = apply("Switch", [apply("OR", hits, "b"), options[k], result], kind)
    return result
