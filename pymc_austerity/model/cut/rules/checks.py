"""Checks of parameters, restricted to the rows of the batch."""

from typing import Any

import numpy as np

from pymc_austerity._pymc import (
    CAReduce,
    CheckAndRaise,
    Elemwise,
    LogicalAnd,
    MakeVector,
    ScalarFromTensor,
    TensorFromScalar,
    TensorType,
    Variable,
)
from pymc_austerity.model.cut.protocols import CutContext, Wanted
from pymc_austerity.model.cut.refusal import CannotCut
from pymc_austerity.model.cut.registry import rows_of
from pymc_austerity.model.cut.selection import Selection


@rows_of.register(CheckAndRaise)
def check(op: Any, cut: CutContext, wanted: Wanted) -> Variable:
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
