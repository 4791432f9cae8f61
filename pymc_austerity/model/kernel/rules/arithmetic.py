"""Element-wise operations and checks, reductions of short axes, and operations made of them."""

import math
from functools import partial
from itertools import accumulate, chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    CAReduce,
    CheckAndRaise,
    CheckParameterValue,
    CumOp,
    Elemwise,
    LogSoftmax,
    Softmax,
)
from pymc_austerity.model.kernel.formula import apply
from pymc_austerity.model.kernel.scalar import Kind, NoKernelError, Scalar, constant
from pymc_austerity.model.kernel.unrolled import (
    Cells,
    cells_of,
    elementwise,
    filled,
    kind_of,
    reduced,
)
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
def _softmax(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """exp(x - max) over their sum."""
    shifted, total = _shifted(op, operands[0])
    exponentials = _map("Exp", [shifted])
    return _map("TrueDiv", [exponentials, total])


@cells_of.register(LogSoftmax)
def _log_softmax(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """X - max - log of the sum of exp(x - max)."""
    shifted, total = _shifted(op, operands[0])
    return _map("Sub", [shifted, _map("Log", [total])])


def _shifted(op: Any, operand: Cells) -> tuple[Cells, Cells]:
    own = op.axis if isinstance(op.axis, tuple) else (op.axis,)
    axes = list(range(operand.ndim)) if op.axis is None else [a % operand.ndim for a in own]
    largest = _kept(reduced("Maximum", operand, axes, "f"), operand, axes)
    shifted = _map("Sub", [operand, largest])
    total = _kept(reduced("Add", _map("Exp", [shifted]), axes, "f"), operand, axes)
    return shifted, total


def _kept(reduction: Cells, operand: Cells, axes: list[int]) -> Cells:
    """The reduced axes back, with length one."""
    shape = list(operand.scalars.shape)
    for axis in axes:
        shape[axis] = 1
    return Cells(reduction.scalars.reshape(shape), operand.row_axis)


def _map(name: str, operands: list[Cells], kind: Kind = "f") -> Cells:
    def function(scalars: list[Scalar]) -> Scalar:
        return apply(name, scalars, kind)

    return elementwise(function, operands)


@cells_of.register(CheckAndRaise)
def _assertion(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """A formula cannot raise; conditions that are true already need no check."""
    operand, *conditions = operands
    if all(_is_true(c.only) for c in conditions):
        return operand
    raise NoKernelError(f"the assertion {op.msg!r} has no rule")


def _is_true(condition: Scalar) -> bool:
    """Whether a condition always holds: PyTensor compares lengths of an axis with themselves."""
    if condition.name == "EQ" and len({a.kind for a in condition.arguments} - {"f"}) == 1:
        return condition.arguments[0] == condition.arguments[1]
    return bool(condition.is_constant and condition.value)


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
