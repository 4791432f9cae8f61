"""Cholesky factors of small matrices, and solutions of small triangular systems."""

from typing import Any

import numpy as np

from pymc_austerity._pymc import Cholesky, SolveTriangular
from pymc_austerity.model.kernel.apply import apply
from pymc_austerity.model.kernel.cells import Cells, filled
from pymc_austerity.model.kernel.refusal import NoKernelError
from pymc_austerity.model.kernel.scalar import Scalar, constant
from pymc_austerity.model.kernel.unrolled import cells_of

_LARGEST = 5
"""Rows of a matrix; their number of operations is cubic."""


@cells_of.register(Cholesky)
def cholesky(op: Any, node: Any, operands: list[Cells]) -> Cells:
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
def solve_triangular(op: Any, node: Any, operands: list[Cells]) -> Cells:
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
