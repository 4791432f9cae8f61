"""Element-wise operations, reductions of short axes, and operations made of them."""

from functools import partial
from itertools import accumulate, chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import CAReduce, CumOp, Elemwise, LogSoftmax, Softmax
from pymc_austerity.model.kernel.apply import apply
from pymc_austerity.model.kernel.cells import Cells, elementwise, filled, kind_of, reduced
from pymc_austerity.model.kernel.refusal import NoKernelError
from pymc_austerity.model.kernel.scalar import Kind, Scalar
from pymc_austerity.model.kernel.unrolled import cells_of
from pymc_austerity.model.operations.table import scalar_name


@cells_of.register(Elemwise)
def elemwise(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Scalar by scalar."""
    name, kind = scalar_name(node), kind_of(node.outputs[0].type.dtype)
    return elementwise(lambda scalars: apply(name, scalars, kind), operands)


@cells_of.register(CAReduce)
def reduction(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Over all axes or some."""
    (operand,) = operands
    axes = range(operand.ndim) if op.axis is None else op.axis
    return reduced(scalar_name(node), operand, list(axes), kind_of(node.outputs[0].type.dtype))


@cells_of.register(CumOp)
def cumulative(op: Any, node: Any, operands: list[Cells]) -> Cells:
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
def softmax(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """exp(x - max) over their sum."""
    shifted, total = _shifted(op, operands[0])
    exponentials = _map("Exp", [shifted])
    return _map("TrueDiv", [exponentials, total])


@cells_of.register(LogSoftmax)
def log_softmax(op: Any, node: Any, operands: list[Cells]) -> Cells:
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
