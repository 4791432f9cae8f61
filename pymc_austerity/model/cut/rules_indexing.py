"""Entries read, set or added to, by slices, by arrays of indices and by masks."""

from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    ADVANCED_INC_SUBTENSOR_OPS,
    ADVANCED_SUBTENSOR_OPS,
    IncSubtensor,
    Subtensor,
    Variable,
    indices_of,
    is_none,
    is_slice,
)
from pymc_austerity.model.cut.cut import CannotCut, Cut, Wanted, output_rows

_FOLLOW_SHARE = 0.25
"""A computed variable that is indexed along this many entries, as a share of the rows, is
computed at the entries that a batch reads only."""


@output_rows.register(Subtensor)
def _subtensor(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """``x[3:][i] == x[i + 3]``: slices of the rows are other rows of the input."""
    operand, indices = wanted.node.inputs[0], _indices(cut, wanted)
    remaining = [k for k, index in enumerate(indices) if isinstance(index, slice)]
    return _through_slice(cut, wanted, operand, indices, remaining[wanted.axis])


def _advanced_subtensor(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """``a[group][i] == a[group[i]]``: rows of the index, or rows of a slice beside it."""
    operand, indices = wanted.node.inputs[0], _indices(cut, wanted)
    arrays = [k for k, index in enumerate(indices) if not isinstance(index, slice)]
    # Axes that arrays of indices leave stay together, or come first if a slice lies between them.
    adjacent = arrays == list(range(arrays[0], arrays[-1] + 1))
    first = arrays[0] if adjacent else 0
    n_index_axes = max(indices[k].type.ndim for k in arrays)
    if first <= wanted.axis < first + n_index_axes:
        axis_from_end = first + n_index_axes - wanted.axis
        return _through_index(cut, wanted, operand, indices, arrays, axis_from_end)
    sliced = [k for k in range(len(indices)) if k not in arrays]
    position = wanted.axis if wanted.axis < first else wanted.axis - n_index_axes
    for k in arrays:
        cut.keep(indices[k])
    return _through_slice(cut, wanted, operand, indices, sliced[position])


for _op in ADVANCED_SUBTENSOR_OPS:
    output_rows.register(_op)(_advanced_subtensor)


def _through_slice(
    cut: Cut, wanted: Wanted, operand: Variable, indices: list[Any], axis: int
) -> Variable:
    rows = rows_of_slice(indices[axis], cut.known.shape(operand)[axis], cut)
    inner = cut.through(wanted.selection, rows, (wanted.output, axis))
    remaining = [slice(None) if k == axis else index for k, index in enumerate(indices)]
    return cut.take(operand, axis, inner)[tuple(remaining)]


def _through_index(
    cut: Cut,
    wanted: Wanted,
    operand: Variable,
    indices: list[Any],
    arrays: list[int],
    axis_from_end: int,
) -> Variable:
    """Take rows of the arrays of indices; the indexed variable stays whole unless it is large."""
    taken = list(indices)
    followed = None
    for k in arrays:
        axis = indices[k].type.ndim - axis_from_end
        if axis < 0 or cut.known.shape(indices[k])[axis] == 1:
            continue
        if followed is None and _is_worth_following(cut, operand, k, indices[k], axis):
            followed = (k, axis)
        else:
            taken[k] = cut.take(indices[k], axis, wanted.selection)
    if followed is None:
        return cut.keep(operand)[tuple(taken)]
    k, axis = followed
    length = cut.known.shape(operand)[k]
    entries = np.mod(np.ravel(cut.known.value(indices[k])), length)
    inner = cut.through(wanted.selection, entries, (wanted.output, "followed"))
    own = [-1 if a == axis else 1 for a in range(indices[k].type.ndim)]
    taken[k] = pt.arange(cut.batch_length).reshape(own)
    return cut.take(operand, k, inner)[tuple(taken)]


def _is_worth_following(cut: Cut, operand: Variable, k: int, index: Variable, axis: int) -> bool:
    """Tell whether an indexed variable is computed and about as long as there are rows.

    Then ``p[arange(n), y]`` computes ``p`` for the rows of the batch only.
    """
    known = cut.known
    return (
        known.depends(operand)
        and known.parameter(operand) is None
        and known.shape(operand)[k] >= _FOLLOW_SHARE * cut.n_rows
        and not known.depends(index)
        and np.size(known.value(index)) == known.shape(index)[axis]
    )


# ------------------------------------------------------------------ indices
def _indices(cut: Cut, wanted: Wanted) -> list[Any]:
    """Indices, one for each axis: slices, and arrays of positions in the place of masks."""
    indices = indices_of(wanted.node)
    if any(is_slice(index) and not isinstance(index, slice) for index in indices):
        raise CannotCut("a slice is computed by the model")
    if any(is_none(index) for index in indices):
        raise CannotCut("an index adds a new axis")
    indices = [entry for index in indices for entry in _without_masks(index, cut)]
    return indices + [slice(None)] * (wanted.node.inputs[0].type.ndim - len(indices))


def _without_masks(index: Any, cut: Cut) -> list[Any]:
    """Turn a mask into the positions it picks, one array per axis."""
    if isinstance(index, slice):
        return [index]
    index = pt.as_tensor(index)
    if index.dtype != "bool":
        return [index]
    if cut.known.depends(index):
        raise CannotCut(f"a mask that depends on {cut.known.roots} picks rows")
    return [pt.constant(positions) for positions in np.nonzero(cut.known.value(index))]


def rows_of_slice(index: slice, length: int, cut: Cut) -> NDArray | None:
    """Rows that a slice picks of an axis, or None if these are all of them in order."""
    bounds = []
    for bound in (index.start, index.stop, index.step):
        if not isinstance(bound, Variable):
            bounds.append(bound)
        elif is_none(bound):
            bounds.append(None)
        elif cut.known.depends(bound):
            raise CannotCut(f"the bounds of a slice depend on {cut.known.roots}")
        else:
            bounds.append(int(cut.known.value(bound)))
    rows = np.arange(length)[slice(*bounds)]
    return None if np.array_equal(rows, np.arange(length)) else rows


@output_rows.register(IncSubtensor)
def _set_or_add(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """Set or add to columns of every row, or to some of the rows."""
    operand, indices = wanted.node.inputs[0], _indices(cut, wanted)
    own = indices[wanted.axis]
    length = cut.known.shape(operand)[wanted.axis]
    if isinstance(own, slice):
        rows = rows_of_slice(own, length, cut)
        if rows is None:
            return _into_columns(op, cut, wanted, indices)
    elif cut.known.depends(own):
        raise CannotCut(f"which rows are set or added to depends on {cut.known.roots}")
    else:
        rows = np.mod(np.asarray(cut.known.value(own)), length)
    others = [index for k, index in enumerate(indices) if k != wanted.axis]
    if rows.ndim == 1 and others and not any(isinstance(index, slice) for index in others):
        return _into_entries(op, cut, wanted, indices)
    if rows.ndim > 1 or any(index != slice(None) for index in others):
        raise CannotCut("entries are set or added to on several axes at once")
    return _into_rows(op, cut, wanted, rows, tuple(indices))


for _op in ADVANCED_INC_SUBTENSOR_OPS:
    output_rows.register(_op)(_set_or_add)


def _into_columns(op: Any, cut: Cut, wanted: Wanted, indices: list[Any]) -> Variable:
    """Do the same to every row: only the operand and the new values are cut."""
    operand, values = wanted.node.inputs[:2]
    arrays = [k for k, i in enumerate(indices) if not isinstance(i, slice) and i.type.ndim > 0]
    scalars = [k for k, i in enumerate(indices) if not isinstance(i, slice) and i.type.ndim == 0]
    if len(arrays) > 1 or (arrays and (scalars or indices[arrays[0]].type.ndim > 1)):
        raise CannotCut("several arrays of indices say what is set or added to")
    target = operand[tuple(indices)]
    axis = wanted.axis - sum(k < wanted.axis for k in scalars)
    values_axis = axis - (target.type.ndim - values.type.ndim)
    rows = cut.take(operand, wanted.axis, wanted.selection)[tuple(indices)]
    new = cut.take_or_keep(values, values_axis, wanted.selection)
    return pt.set_subtensor(rows, new) if op.set_instead_of_inc else pt.inc_subtensor(rows, new)


def _into_rows(
    op: Any, cut: Cut, wanted: Wanted, changed: NDArray, indices: tuple[Any, ...]
) -> Variable:
    """Switch between old and new by row, according to whether the row is changed."""
    operand, values = wanted.node.inputs[:2]
    place = _places(op, cut, wanted, changed)
    missing = operand[indices].type.ndim - values.type.ndim
    if changed.ndim == 0:
        cut.keep(values)
        new = values if wanted.axis < missing else pt.expand_dims(values, wanted.axis - missing)
    else:
        new = _new_values(cut, wanted, place, wanted.axis - missing)
    return _switch(op, cut, wanted, place >= 0, new)


def _into_entries(op: Any, cut: Cut, wanted: Wanted, indices: list[Any]) -> Variable:
    """``x[rows, columns] = v``: switch between old and new by entry."""
    operand, values = wanted.node.inputs[:2]
    if any(cut.known.depends(index) for index in indices):
        raise CannotCut(f"which entries are set or added to depends on {cut.known.roots}")
    entries = np.broadcast_arrays(*(np.asarray(cut.known.value(index)) for index in indices))
    if entries[0].ndim > 1 or values.type.ndim > 1:
        raise CannotCut("matrices of indices say what is set or added to")
    shape = cut.known.shape(operand)
    changed = np.zeros(shape, dtype=bool)
    changed[tuple(entries)] = True
    rows = np.mod(entries[wanted.axis], shape[wanted.axis])
    if np.unique(rows).size != rows.size:
        raise CannotCut("several entries of a row are set or added to")
    new = _new_values(cut, wanted, _places(op, cut, wanted, rows), values.type.ndim - 1)
    if new.type.ndim:
        new = new.dimshuffle([0 if axis == wanted.axis else "x" for axis in range(wanted.ndim)])
    here = np.moveaxis(changed, wanted.axis, 0)[cut.rows_of(wanted.selection)]
    return _switch(op, cut, wanted, here, new)


def _places(op: Any, cut: Cut, wanted: Wanted, changed: NDArray) -> NDArray[np.int64]:
    """For each row that is wanted, its place among those that are changed, or -1."""
    if not op.set_instead_of_inc and np.unique(changed).size != changed.size:
        raise CannotCut("some rows are added to more than once")
    order = np.full(cut.known.shape(wanted.node.inputs[0])[wanted.axis], -1)
    order[changed] = np.arange(changed.size).reshape(changed.shape)
    return order[cut.rows_of(wanted.selection)]


def _new_values(cut: Cut, wanted: Wanted, place: NDArray[np.int64], axis: int) -> Variable:
    """What rows are set to, or what is added; of no meaning where a row is not changed."""
    key = (wanted.output, "values", wanted.selection)
    inner = cut.selection(np.clip(place, 0, None), key)
    return cut.take_or_keep(wanted.node.inputs[1], axis, inner)


def _switch(op: Any, cut: Cut, wanted: Wanted, changed: NDArray[np.bool_], new: Variable) -> Any:
    """Old rows, or entries of them, except where they are changed."""
    rows = cut.take(wanted.node.inputs[0], wanted.axis, wanted.selection)
    here = cut.mask(changed, "changed", (wanted.output, wanted.selection), wanted)
    return pt.switch(here, new if op.set_instead_of_inc else rows + new, rows)
