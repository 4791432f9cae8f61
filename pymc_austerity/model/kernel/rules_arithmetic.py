"""Rules for arithmetic, reductions, checks and small matrices of one row."""

import math
from functools import partial
from itertools import accumulate, chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    Blockwise,
    CAReduce,
    CheckAndRaise,
    CheckParameterValue,
    Cholesky,
    CumOp,
    Dot,
    Elemwise,
    LogSoftmax,
    Softmax,
    SolveTriangular,
)
from pymc_austerity.model.kernel.formula import apply
from pymc_austerity.model.kernel.row_formula import (
    Cells,
    cells_of,
    elementwise,
    filled,
    kind_of,
    reduced,
)
from pymc_austerity.model.kernel.scalar import Kind, NoKernelError, Scalar, constant
from pymc_austerity.model.operations.table import scalar_name

_LARGEST = 5
"""Rows of a matrix; their number of operations is cubic."""


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


@cells_of.register(Cholesky)
def _cholesky(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Lower factor, column by column; the root of a negative number is NaN."""
    (operand,) = operands
    n = operand.scalars.shape[-1]
    if not op.lower or n > _LARGEST or operand.row_axis in _last_two(operand):
        raise NoKernelError(f"the operation {op} has no rule")
    factor = filled(operand.scalars.shape, [constant(0.0)] * operand.scalars.size)
    for where in np.ndindex(*factor.shape[:-2]):
        matrix, lower = operand.scalars[where], factor[where]
        for j in range(n):
            for i in range(j, n):
                products = [_times(lower[i, k], lower[j, k]) for k in range(j)]
                rest = _minus(matrix[i, j], products)
                lower[i, j] = apply("Sqrt", [rest], "f") if i == j else _over(rest, lower[j, j])
    return Cells(factor, operand.row_axis)


@cells_of.register(SolveTriangular)
def _solve_triangular(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """By substitution."""
    matrix, right = operands
    n = matrix.scalars.shape[-1]
    is_known = matrix.row_axis is None and matrix.scalars.size == n * n and n <= _LARGEST
    axis = right.ndim - op.b_ndim
    if not is_known or right.row_axis == axis:
        raise NoKernelError(f"the operation {op} has no rule for rows with matrices of their own")
    lower = matrix.scalars.reshape(n, n)
    solution = np.moveaxis(right.scalars, axis, 0).copy()
    order = range(n) if op.lower else range(n - 1, -1, -1)
    for where in np.ndindex(*solution.shape[1:]):
        done: list[int] = []
        for i in order:
            products = [_times(lower[i, k], solution[(k, *where)]) for k in done]
            rest = _minus(solution[(i, *where)], products)
            one = getattr(op, "unit_diagonal", False)
            solution[(i, *where)] = rest if one else _over(rest, lower[i, i])
            done.append(i)
    return Cells(np.moveaxis(solution, 0, axis), right.row_axis)


def _last_two(operand: Cells) -> tuple[int, int]:
    return operand.ndim - 2, operand.ndim - 1


def _times(a: Scalar, b: Scalar) -> Scalar:
    return apply("Mul", [a, b], "f")


def _over(a: Scalar, b: Scalar) -> Scalar:
    return apply("TrueDiv", [a, b], "f")


def _minus(a: Scalar, products: list[Scalar]) -> Scalar:
    return apply("Sub", [a, apply("Add", products, "f")], "f") if products else a


@cells_of.register(Blockwise)
def _blockwise(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Stacks of matrices."""
    if isinstance(op.core_op, Dot):
        return _dot(op.core_op, node, operands)
    if isinstance(op.core_op, Cholesky | SolveTriangular):
        return cells_of(op.core_op, node, operands)
    raise NoKernelError(f"the operation {op} has no rule")


@cells_of.register(Dot)
def _dot(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Sums of products over the axis that both have."""
    left, right = operands
    kind = kind_of(node.outputs[0].type.dtype)
    if left.ndim == 1:
        left = _with_axis(left, 0)
        return _without_axis(_dot(op, node, [left, right]), -2 if right.ndim > 1 else 0)
    if right.ndim == 1:
        return _without_axis(_dot(op, node, [left, _with_axis(right, 1)]), -1)
    left, right = _with_axis(left, left.ndim), _with_axis(right, right.ndim - 2)
    products = elementwise(lambda pair: apply("Mul", pair, kind), [left, right])
    return reduced("Add", products, [products.ndim - 2], kind)


def _with_axis(cells: Cells, position: int) -> Cells:
    row_axis = cells.row_axis
    if row_axis is not None and row_axis >= position:
        row_axis += 1
    return Cells(np.expand_dims(cells.scalars, position), row_axis)


def _without_axis(cells: Cells, position: int) -> Cells:
    position %= cells.ndim
    row_axis = cells.row_axis
    if row_axis is not None and row_axis > position:
        row_axis -= 1
    return Cells(np.squeeze(cells.scalars, axis=position), row_axis)
