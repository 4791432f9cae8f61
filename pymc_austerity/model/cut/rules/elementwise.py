"""Element-wise operations and checks, and operations along other axes than that of the rows."""

from typing import Any

import numpy as np

from pymc_austerity._pymc import (
    Argmax,
    ArgSortOp,
    CAReduce,
    CheckAndRaise,
    CumOp,
    Elemwise,
    LogicalAnd,
    LogSoftmax,
    MakeVector,
    ScalarFromTensor,
    SearchsortedOp,
    Softmax,
    SortOp,
    TensorFromScalar,
    TensorType,
    Variable,
    sorted_axis,
)
from pymc_austerity.model.cut.protocols import (
    CannotCut,
    CutContext,
    Selection,
    Wanted,
    in_words,
    rows_of,
)


def axes_of(axis: Any, ndim: int) -> set[int]:
    """Axes as a set of non-negative numbers; None means all of them."""
    return set(range(ndim)) if axis is None else {int(a) % ndim for a in np.atleast_1d(axis)}


def refuse_if_along_rows(op: Any, axis: Any, wanted: Wanted) -> None:
    """Refuse an operation that runs along the rows, or along the raveled array."""
    if wanted.axis in axes_of(axis, wanted.ndim):
        raise CannotCut(f"{in_words(op)} runs over all rows")


@rows_of.register(Elemwise)
def _elementwise(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """``f(x, y)[i] == f(x[i], y[i])``; what is broadcast along the rows is kept."""
    operands = [
        cut.take_or_keep(operand, wanted.axis, wanted.selection) for operand in wanted.node.inputs
    ]
    return op.make_node(*operands).outputs[wanted.index]


@rows_of.register(CAReduce)
@rows_of.register(Argmax)
def _reduction(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """``x.sum(axis=1)[i] == x[i].sum()``: the rows are among the axes that are left."""
    (operand,) = wanted.node.inputs
    reduced = axes_of(op.axis, operand.type.ndim)
    left = [axis for axis in range(operand.type.ndim) if axis not in reduced]
    return op(cut.take(operand, left[wanted.axis], wanted.selection))


@rows_of.register(Softmax)
@rows_of.register(LogSoftmax)
@rows_of.register(CumOp)
def _along_an_axis(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """``softmax(x, axis=1)[i] == softmax(x[i])``, unless it runs along the rows."""
    refuse_if_along_rows(op, op.axis, wanted)
    return op(cut.take(wanted.node.inputs[0], wanted.axis, wanted.selection))


@rows_of.register(SortOp)
@rows_of.register(ArgSortOp)
def _sort(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """``sort(x, axis=1)[i] == sort(x[i])``, unless it runs along the rows."""
    refuse_if_along_rows(op, sorted_axis(wanted.node), wanted)
    operand, *rest = wanted.node.inputs
    return op(cut.take(operand, wanted.axis, wanted.selection), *rest)


@rows_of.register(SearchsortedOp)
def _searchsorted(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """``searchsorted(knots, x)[i] == searchsorted(knots, x[i])``."""
    knots, operand, *sorter = wanted.node.inputs
    return op(cut.keep(knots), cut.take(operand, wanted.axis, wanted.selection), *sorter)


@rows_of.register(CheckAndRaise)
def _check(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
    """Check the rows of the batch; checks that do not depend on parameters are dropped."""
    operand, *conditions = wanted.node.inputs
    rows = cut.take(operand, wanted.axis, wanted.selection)
    remaining = []
    for condition in conditions:
        if cut.known.depends(condition):
            remaining.append(_restricted(condition, cut, wanted.selection))
        elif not np.all(cut.known.value(condition)):
            raise CannotCut(f"the data do not pass a check of the model ({op})")
    return op(rows, *remaining) if remaining else rows


def _restricted(condition: Variable, cut: CutContext, selection: Selection) -> Variable:
    """Turn ``all(...)`` over all rows into the same over the rows of the batch."""
    if not cut.known.depends(condition) or condition.owner is None:
        return condition
    op, inputs = condition.owner.op, condition.owner.inputs
    if isinstance(op, CAReduce) and isinstance(getattr(op, "scalar_op", None), LogicalAnd):
        (operand,) = inputs
        for axis, length in enumerate(cut.known.shape(operand)):
            rows = cut.take_or_none(operand, axis, selection) if length == cut.n_rows else None
            if rows is not None:
                return op(rows)
    passes_on = isinstance(op, ScalarFromTensor | TensorFromScalar | MakeVector | CheckAndRaise)
    combines = isinstance(op, Elemwise | CAReduce) and not any(
        cut.n_rows in cut.known.shape(i) for i in inputs if isinstance(i.type, TensorType)
    )
    if passes_on or combines:
        return op.make_node(*[_restricted(i, cut, selection) for i in inputs]).outputs[0]
    return cut.keep(condition)
