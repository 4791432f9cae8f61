"""Products of short matrices, Cholesky factors, and solutions of small triangular systems."""

from typing import Any

import numpy as np

from pymc_austerity._pymc import Blockwise, Cholesky, Dot, SolveTriangular
from pymc_austerity.model.kernel.formula import apply
from pymc_austerity.model.kernel.scalar import NoKernelError, Scalar, constant
from pymc_austerity.model.kernel.unrolled import (
    Cells,
    cells_of,
    elementwise,
    filled,
    kind_of,
    reduced,
)

_LARGEST = 5
"""Rows of a matrix; their number of operations is cubic."""


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
