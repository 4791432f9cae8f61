"""Rules for arithmetic, reductions, checks and products of matrices of one row."""

import math
from functools import partial
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    Blockwise,
    CAReduce,
    CheckAndRaise,
    CheckParameterValue,
    CumOp,
    Dot,
    Elemwise,
    LogSoftmax,
    SearchsortedOp,
    Softmax,
)
from pymc_austerity.model.kernel.cells import (
    Cells,
    cells_of,
    elementwise,
    filled,
    kind_of,
    reduced,
    unrolled,
)
from pymc_austerity.model.kernel.formula import apply, cast
from pymc_austerity.model.kernel.scalar import NoKernelError, Scalar, constant
from pymc_austerity.model.operations.table import scalar_name


@cells_of.register(Elemwise)
def _elemwise(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Scalar by scalar."""
    name, kind = scalar_name(node), kind_of(node.outputs[0].type.dtype)
    return elementwise(lambda scalars: apply(name, scalars, kind), operands)


@cells_of.register(CAReduce)
def _reduction(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Over all axes or some."""
    (operand,) = operands
    axes = range(operand.ndim) if op.axis is None else op.axis
    return reduced(scalar_name(node), operand, list(axes), kind_of(node.outputs[0].type.dtype))


@cells_of.register(CumOp)
def _cumulative(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Sums or products of the entries so far."""
    (operand,) = operands
    kind = kind_of(node.outputs[0].type.dtype)
    if op.axis is None or op.axis == operand.row_axis:
        raise NoKernelError("a cumulative sum over the rows")
    step = partial(apply, op.mode.capitalize(), kind=kind)
    scalars = np.moveaxis(operand.scalars, op.axis, -1)
    columns = [accumulate(column, lambda a, b: step([a, b])) for column in _columns(scalars)]
    sums = filled(scalars.shape, list(chain.from_iterable(columns)))
    return Cells(np.moveaxis(sums, -1, op.axis), operand.row_axis)


def _columns(scalars: NDArray[Any]) -> list[list[Scalar]]:
    return [list(scalars[where]) for where in np.ndindex(*scalars.shape[:-1])]


@cells_of.register(Softmax)
@cells_of.register(LogSoftmax)
def _softmax(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """exp(x - max) over their sum, or the logarithm of that."""
    (x,) = node.inputs
    shifted = x - pt.max(x, axis=op.axis, keepdims=True)
    total = pt.exp(shifted).sum(axis=op.axis, keepdims=True)
    is_log = isinstance(op, LogSoftmax)
    formula = shifted - pt.log(total) if is_log else pt.exp(shifted) / total
    return unrolled([formula], {x: operands[0]})[0]


@cells_of.register(CheckAndRaise)
def _assertion(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """A formula cannot raise; conditions that are true already need no check."""
    operand, *conditions = operands
    if all(c.only.is_constant and c.only.value for c in conditions):
        return operand
    raise NoKernelError(f"the assertion {op.msg!r} has no rule")


@cells_of.register(CheckParameterValue)
def _check(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Minus infinity where a condition fails, as PyMC's own compilation has it."""
    if not op.can_be_replaced_by_ninf:
        return _assertion(op, node, operands)
    operand, *conditions = operands
    passed = apply("AND", [apply("Cast", [c.only], "b") for c in conditions], "b")

    def checked(scalars: list[Scalar]) -> Scalar:
        return apply("Switch", [passed, *scalars, constant(-math.inf)], "f")

    return elementwise(checked, [operand])


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


@cells_of.register(Blockwise)
def _blockwise(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Stacks of matrices."""
    if isinstance(op.core_op, Dot):
        return _dot(op.core_op, node, operands)
    raise NoKernelError(f"the operation {op} has no rule")


@cells_of.register(Dot)
def _dot(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Sums of products over the axis that both have."""
    left, right = node.inputs
    if right.type.ndim == 1:
        formula = (left * right).sum(axis=-1)
    else:
        columns = right if left.type.ndim == 1 else pt.expand_dims(right, -3)
        formula = (left[..., None] * columns).sum(axis=-2)
    return unrolled([formula], dict(zip(node.inputs, operands, strict=True)))[0]
