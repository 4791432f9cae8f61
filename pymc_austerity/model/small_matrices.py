"""Linear algebra of small matrices in terms of numbers, which NumPy and all kernels evaluate."""

from collections.abc import Sequence
from typing import Any

import pytensor.tensor as pt

from pymc_austerity._pymc import (
    Blockwise,
    Cholesky,
    DimShuffle,
    SolveTriangular,
    Variable,
    is_dot,
    rebuilt,
)
from pymc_austerity.model.cut import Known

__all__ = ["inverse_of_lower", "spelled_out"]

_LARGEST = 6
"""Rows of a matrix beyond which there would be too many operations."""


def spelled_out(outputs: Sequence[Variable], known: Known) -> list[Variable]:
    """Write Cholesky factors, and solutions of triangular systems, of small matrices as formulas.

    What a multivariate normal prior says of thousands of levels is then a few operations on arrays,
    instead of a call of LAPACK for each level.

    Parameters
    ----------
    outputs : sequence of variables
    known : Known
        Tells shapes.

    Returns
    -------
    list of variables
    """

    def rule(node: Any, inputs: list[Variable]) -> list[Variable] | None:
        op = node.op.core_op if isinstance(node.op, Blockwise) else node.op
        if not isinstance(op, Cholesky | SolveTriangular):
            return None
        size = known.shape(node.inputs[0])[-1]
        if size > _LARGEST:
            return None
        if isinstance(op, Cholesky):
            new = _known_root(inputs[0], known, lower=op.lower)
            if new is None:
                new = _cholesky(inputs[0], size, lower=op.lower)
        else:
            new = _solution(op, inputs[0], inputs[1], size)
        return [node.outputs[0].type.filter_variable(new, allow_convert=True)]

    return rebuilt(outputs, rule)


def inverse_of_lower(matrix: Variable, size: int) -> Variable:
    """Inverse of a lower triangular matrix of shape (size, size).

    Examples
    --------
    >>> import numpy as np
    >>> inverse_of_lower(pt.as_tensor(np.array([[2.0, 0.0], [1.0, 4.0]])), 2).eval()
    array([[ 0.5  ,  0.   ],
           [-0.125,  0.25 ]])
    """
    a, zero = _entries(matrix, size), pt.zeros_like(matrix[..., 0, 0])
    columns = []
    for j in range(size):
        column = [zero] * j + [1.0 / a[j][j]]
        for i in range(j + 1, size):
            column.append(-sum(a[i][k] * column[k] for k in range(j, i)) / a[i][i])
        columns.append(pt.stack(column))
    return pt.stack(columns, axis=1)


def _known_root(matrix: Variable, known: Known, *, lower: bool) -> Variable | None:
    """The factor of a matrix that was made as the product of a triangular one and its transpose."""
    product = matrix
    while product.owner is not None and _adds_axes(product.owner):
        product = product.owner.inputs[0]
    node = product.owner
    if node is None or not is_dot(node) or product.type.ndim != 2:
        return None
    factor, other = node.inputs
    turned = other.owner
    is_its_transpose = (
        turned is not None
        and isinstance(turned.op, DimShuffle)
        and turned.op.new_order == (1, 0)
        and turned.inputs[0] is factor
    )
    if not is_its_transpose or not known.is_lower_triangular(factor):
        return None
    root = factor * pt.sign(pt.diagonal(factor))  # that of Cholesky is positive on its diagonal
    root = root if lower else root.T
    for _ in range(matrix.type.ndim - 2):
        root = root[None]
    return root


def _adds_axes(node: Any) -> bool:
    """Whether a node puts axes of length one before those of a matrix."""
    if not isinstance(node.op, DimShuffle):
        return False
    *first, second_to_last, last = node.op.new_order
    return (second_to_last, last) == (0, 1) and set(first) == {"x"}


def _entries(matrix: Variable, size: int) -> list[list[Variable]]:
    """The entries of matrices, each of the shape of the axes before the last two."""
    return [[matrix[..., i, j] for j in range(size)] for i in range(size)]


def _cholesky(matrix: Variable, size: int, *, lower: bool) -> Variable:
    a = _entries(matrix, size)
    zero = pt.zeros_like(a[0][0])
    root = [[zero] * size for _ in range(size)]
    for j in range(size):
        square = a[j][j] - sum((root[j][k] ** 2 for k in range(j)), start=zero)
        root[j][j] = pt.sqrt(square)
        for i in range(j + 1, size):
            rest = a[i][j] - sum((root[i][k] * root[j][k] for k in range(j)), start=zero)
            root[i][j] = rest / root[j][j]
    rows = root if lower else [list(column) for column in zip(*root, strict=True)]
    return pt.stack([pt.stack(row, axis=-1) for row in rows], axis=-2)


def _solution(op: Any, matrix: Variable, right: Variable, size: int) -> Variable:
    """The solution of a triangular system, with a vector or a matrix on the right."""
    is_vector = op.b_ndim == 1
    a = _entries(matrix, size)
    if op.unit_diagonal:
        for k in range(size):
            a[k][k] = pt.ones_like(a[k][k])
    if not is_vector:
        a = [[entry[..., None] for entry in row] for row in a]
    b = [right[..., k] if is_vector else right[..., k, :] for k in range(size)]
    if not op.lower:  # backwards is forwards in the order from the last row to the first
        a, b = [row[::-1] for row in a[::-1]], b[::-1]
    x = _forward(a, b)
    return pt.stack(x if op.lower else x[::-1], axis=-1 if is_vector else -2)


def _forward(a: list[list[Variable]], b: list[Variable]) -> list[Variable]:
    """Solve a lower triangular system by substitution."""
    x: list[Variable] = []
    for k, right in enumerate(b):
        for j in range(k):
            right = right - a[k][j] * x[j]
        x.append(right / a[k][k])
    return x
