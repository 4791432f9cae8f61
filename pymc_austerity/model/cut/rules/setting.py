"""Entries set or added to: ``set_subtensor`` and ``inc_subtensor``."""

from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import ADVANCED_INC_SUBTENSOR_OPS, IncSubtensor, Variable
from pymc_austerity.model.cut.protocols import CutContext, Wanted
from pymc_austerity.model.cut.refusal import CannotCut
from pymc_austerity.model.cut.registry import rows_of
from pymc_austerity.model.cut.rules.indexing import (
    indices_for,
    padded,
    rows_of_slice,
    without_masks,
)


@rows_of.register(IncSubtensor)
def set_or_add(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """Set or add to columns of every row, or to some of the rows."""
    operand = wanted.node.inputs[0]
    indices = [entry for index in indices_for(wanted.node) for entry in without_masks(index, cut)]
    indices = padded(indices, operand.type.ndim)
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
    if rows.ndim > 1 or any(index != slice(None) for index in others):
        raise CannotCut("entries are set or added to on several axes at once")
    return _into_rows(op, cut, wanted, rows, tuple(indices))


for _op in ADVANCED_INC_SUBTENSOR_OPS:
    rows_of.register(_op)(set_or_add)


def _into_columns(op: Any, cut: CutContext, wanted: Wanted, indices: list[Any]) -> Variable:
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
    op: Any, cut: CutContext, wanted: Wanted, changed: NDArray, indices: tuple[Any, ...]
) -> Variable:
    """Switch between old and new by row, according to whether the row is changed."""
    operand, values = wanted.node.inputs[:2]
    rows = cut.take(operand, wanted.axis, wanted.selection)
    order = np.full(cut.known.shape(operand)[wanted.axis], -1)
    order[changed] = np.arange(changed.size).reshape(changed.shape)
    if not op.set_instead_of_inc and np.unique(changed).size != changed.size:
        raise CannotCut("some rows are added to more than once")
    place = order[cut.selections.rows(wanted.selection)]
    missing = operand[indices].type.ndim - values.type.ndim
    if changed.ndim == 0:
        cut.keep(values)
        new = values if wanted.axis < missing else pt.expand_dims(values, wanted.axis - missing)
    else:
        key = (wanted.output, "values", wanted.selection)
        inner = cut.selections.new(np.clip(place, 0, None), key)
        new = cut.take_or_keep(values, wanted.axis - missing, inner)
    here = cut.mask(place >= 0, "changed", (wanted.output, wanted.selection), wanted)
    return pt.switch(here, new if op.set_instead_of_inc else rows + new, rows)
