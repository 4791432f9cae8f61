"""Element-wise operations, reductions over other axes, and operations along other axes."""

from typing import Any

import numpy as np

from pymc_austerity._pymc import (
    Argmax,
    ArgSortOp,
    CAReduce,
    CumOp,
    Elemwise,
    LogSoftmax,
    SearchsortedOp,
    Softmax,
    SortOp,
    Variable,
    sorted_axis,
)
from pymc_austerity.model.cut.protocols import CutContext, Wanted
from pymc_austerity.model.cut.refusal import CannotCut, in_words
from pymc_austerity.model.cut.registry import rows_of


def axes_of(axis: Any, ndim: int) -> set[int]:
    """Axes as a set of non-negative numbers; None means all of them."""
    return set(range(ndim)) if axis is None else {int(a) % ndim for a in np.atleast_1d(axis)}


def refuse_if_along_rows(op: Any, axis: Any, wanted: Wanted) -> None:
    """Refuse an operation that runs along the rows, or along the raveled array."""
    if wanted.axis in axes_of(axis, wanted.ndim):
        raise CannotCut(f"{in_words(op)} runs over all rows")


@rows_of.register(Elemwise)
def elementwise(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """``f(x, y)[i] == f(x[i], y[i])``; what is broadcast along the rows is kept."""
    operands = [
        cut.take_or_keep(operand, wanted.axis, wanted.selection) for operand in wanted.node.inputs
    ]
    return op.make_node(*operands).outputs[wanted.index]


@rows_of.register(CAReduce)
@rows_of.register(Argmax)
def reduction(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """``x.sum(axis=1)[i] == x[i].sum()``: the rows are among the axes that are left."""
    (operand,) = wanted.node.inputs
    reduced = axes_of(op.axis, operand.type.ndim)
    left = [axis for axis in range(operand.type.ndim) if axis not in reduced]
    return op(cut.take(operand, left[wanted.axis], wanted.selection))


@rows_of.register(Softmax)
@rows_of.register(LogSoftmax)
@rows_of.register(CumOp)
def along_an_axis(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """``softmax(x, axis=1)[i] == softmax(x[i])``, unless it runs along the rows."""
    refuse_if_along_rows(op, op.axis, wanted)
    return op(cut.take(wanted.node.inputs[0], wanted.axis, wanted.selection))


@rows_of.register(SortOp)
@rows_of.register(ArgSortOp)
def sort(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """``sort(x, axis=1)[i] == sort(x[i])``, unless it runs along the rows."""
    refuse_if_along_rows(op, sorted_axis(wanted.node), wanted)
    operand, *rest = wanted.node.inputs
    return op(cut.take(operand, wanted.axis, wanted.selection), *rest)


@rows_of.register(SearchsortedOp)
def searchsorted(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """``searchsorted(knots, x)[i] == searchsorted(knots, x[i])``."""
    knots, operand, *sorter = wanted.node.inputs
    return op(cut.keep(knots), cut.take(operand, wanted.axis, wanted.selection), *sorter)
