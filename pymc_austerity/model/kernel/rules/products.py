"""Products of short matrices and vectors."""

from typing import Any

import numpy as np

from pymc_austerity._pymc import Blockwise, Cholesky, Dot, SolveTriangular
from pymc_austerity.model.kernel.apply import apply
from pymc_austerity.model.kernel.cells import Cells, elementwise, kind_of, reduced
from pymc_austerity.model.kernel.refusal import NoKernelError
from pymc_austerity.model.kernel.unrolled import cells_of


@cells_of.register(Blockwise)
def blockwise(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Stacks of matrices."""
    if isinstance(op.core_op, Dot):
        return dot(op.core_op, node, operands)
    if isinstance(op.core_op, Cholesky | SolveTriangular):
        return cells_of(op.core_op, node, operands)
    raise NoKernelError(f"the operation {op} has no rule")


@cells_of.register(Dot)
def dot(op: Any, node: Any, operands: list[Cells]) -> Cells:
    """Sums of products over the axis that both have."""
    left, right = operands
    kind = kind_of(node.outputs[0].type.dtype)
    if left.ndim == 1:
        left = _with_axis(left, 0)
        return _without_axis(dot(op, node, [left, right]), -2 if right.ndim > 1 else 0)
    if right.ndim == 1:
        return _without_axis(dot(op, node, [left, _with_axis(right, 1)]), -1)
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
