"""Operations that only rearrange: axes moved, added, merged, repeated."""

from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc_austerity._pymc import (
    Alloc,
    DimShuffle,
    JoinDims,
    Repeat,
    Reshape,
    SpecifyShape,
    SplitDims,
    Variable,
)
from pymc_austerity.model.cut.protocols import CutContext, Wanted
from pymc_austerity.model.cut.refusal import CannotCut
from pymc_austerity.model.cut.registry import rows_of


@rows_of.register(DimShuffle)
def dimshuffle(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
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


@rows_of.register(SpecifyShape)
def specify_shape(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """Drop an assertion about the shape: it was about all rows."""
    return cut.take(wanted.node.inputs[0], wanted.axis, wanted.selection)


@rows_of.register(Alloc)
def alloc(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """``alloc(x, n, k)[i] == alloc(x[i], k)``: as many copies as the batch has rows."""
    value = wanted.node.inputs[0]
    axis = wanted.axis - (wanted.ndim - value.type.ndim)
    lengths: list[Any] = list(cut.known.shape(wanted.output))
    lengths[wanted.axis] = cut.batch_length
    return pt.alloc(cut.take_or_keep(value, axis, wanted.selection), *lengths)


@rows_of.register(Reshape)
@rows_of.register(JoinDims)
@rows_of.register(SplitDims)
def reshape(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """``x.reshape(n, a * b)[i] == x[i].reshape(a * b)``: the rows stay an axis of their own."""
    operand = wanted.node.inputs[0]
    before, after = cut.known.shape(operand), cut.known.shape(wanted.output)
    for axis, length in enumerate(before):
        if length == after[wanted.axis] and (
            np.prod(before[:axis], dtype=int) == np.prod(after[: wanted.axis], dtype=int)
        ):
            lengths: list[Any] = list(after)
            lengths[wanted.axis] = cut.batch_length
            return cut.take(operand, axis, wanted.selection).reshape(lengths)
    raise CannotCut(f"a reshape from {before} to {after} merges or splits the axis of the rows")


@rows_of.register(Repeat)
def repeat(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
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
    inner = cut.selections.through(wanted.selection, rows, (wanted.output, "repeat"))
    return cut.take_or_keep(operand, axis, inner)
