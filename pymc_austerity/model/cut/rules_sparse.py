"""Products of a sparse design matrix with parameters: a row is a few columns and their values."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pymc_austerity._pymc import SPARSE_PRODUCTS, SparseTensorType, Variable
from pymc_austerity.model.cut.cut import CannotCut, Cut, Wanted, output_rows

_MOST_PADDING, _SMALL = 8, 1_000_000
"""Numbers that are stored for one that is not zero, where these are more than some."""


def _sparse_product(op: Any, cut: Cut, wanted: Wanted) -> Variable:
    """``(X @ b)[i] == sum(b[columns[i]] * values[i])``."""
    design, operand = wanted.node.inputs
    is_left = isinstance(design.type, SparseTensorType)
    if not is_left:  # b' X is the transpose of X' b
        design, operand = operand, design.T
    if wanted.axis != (0 if is_left else 1) or isinstance(operand.type, SparseTensorType):
        raise CannotCut("a product with a sparse matrix mixes the rows of its other factor")
    columns, values = _stored(design, cut, wanted, transposed=not is_left)
    if operand.type.ndim == 2:
        values = values[:, :, None]
    rows = (cut.keep(operand)[columns] * values).sum(axis=1)
    return rows if is_left else rows.T


for _op in SPARSE_PRODUCTS:
    output_rows.register(_op)(_sparse_product)


def _stored(
    design: Variable, cut: Cut, wanted: Wanted, *, transposed: bool
) -> tuple[Variable, Variable]:
    """Columns and values of the rows of the batch, shape (m, k)."""
    if cut.known.examples:
        raise CannotCut("a sparse matrix cannot be read from data=")
    if cut.known.depends(design):
        raise CannotCut(f"a sparse matrix depends on {cut.known.roots}")
    name, key = design.name or "data", (design, wanted.selection)
    whole = cut.known.value(design)
    matrix = (whole.T if transposed else whole).tocsr()
    if wanted.selection.rows is not None:
        matrix = matrix[wanted.selection.rows]
    columns, values = padded(matrix)
    return (
        cut.leaf(columns, f"columns of {name}", (key, "columns")),
        cut.leaf(values, name, (key, "values")),
    )


def padded(matrix: sparse.csr_matrix) -> tuple[NDArray[np.int32], NDArray]:
    """Columns and values of rows of equal length; what shorter rows lack is zeros of column 0.

    Parameters
    ----------
    matrix : scipy.sparse.csr_matrix, shape (n, p)

    Returns
    -------
    columns : int32 array, shape (n, k)
    values : array, shape (n, k)

    Raises
    ------
    CannotCut
        A few rows are much longer than the others.

    Examples
    --------
    >>> columns, values = padded(sparse.csr_matrix([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]]))
    >>> columns.tolist(), values.tolist()
    ([[1, 2], [0, 0]], [[2.0, 1.0], [3.0, 0.0]])
    """
    lengths = np.diff(matrix.indptr)
    n, k = lengths.size, max(int(lengths.max(initial=0)), 1)
    if n * k > max(_MOST_PADDING * matrix.nnz, _SMALL):
        raise CannotCut(
            f"a row of a sparse matrix has {k:,} entries where {matrix.nnz / n:.3g} are usual"
        )
    if matrix.nnz == n * k:
        indices = matrix.indices.astype(np.int32, copy=False)
        return indices.reshape(n, k), matrix.data.reshape(n, k)
    has = np.arange(k) < lengths[:, None]
    columns, values = np.zeros((n, k), dtype=np.int32), np.zeros((n, k), dtype=matrix.dtype)
    columns[has], values[has] = matrix.indices, matrix.data
    return columns, values
