"""Operations that move entries, examined by running them on the numbers of the entries."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    ADVANCED_INC_SUBTENSOR_OPS,
    ADVANCED_SUBTENSOR_OPS,
    Alloc,
    DimShuffle,
    ExtractDiag,
    IncSubtensor,
    Join,
    JoinDims,
    MakeVector,
    Reshape,
    ScalarFromTensor,
    SpecifyShape,
    SplitDims,
    Subtensor,
    TensorFromScalar,
    join_arguments,
    run_node,
)

FEW, MANY = 3, 5
"""Numbers of rows: the axis that changes its length with them is that of the rows."""

OF_ONE: tuple[type, ...] = (
    Alloc, DimShuffle, ExtractDiag, JoinDims, Reshape, ScalarFromTensor, SpecifyShape, SplitDims,
    Subtensor, TensorFromScalar, *ADVANCED_SUBTENSOR_OPS,
)  # fmt: skip
"""Operations whose entries are those of the first input."""
UNMOVED = (ScalarFromTensor, SpecifyShape, TensorFromScalar)
"""Those among them whose result is the first input."""
OF_TWO: tuple[type, ...] = (IncSubtensor, *ADVANCED_INC_SUBTENSOR_OPS)
"""Those whose entries are, or are sums of, entries of the first two."""
OF_ALL: tuple[type, ...] = (Join, MakeVector)


def moved_inputs(node: Any) -> range:
    """Positions of the inputs whose entries are moved; the others are indices and shapes."""
    if isinstance(node.op, Join):
        return range(len(node.inputs) - len(join_arguments(node)[1]), len(node.inputs))
    if isinstance(node.op, MakeVector):
        return range(len(node.inputs))
    return range(2 if isinstance(node.op, OF_TWO) else 1)


def run_on_numbers(node: Any, values: Sequence[Any]) -> NDArray[np.int64]:
    """Output of an operation with whole numbers in the place of the entries that it moves.

    Examples
    --------
    >>> x = pt.dmatrix("x")
    >>> run_on_numbers(x.T.owner, [np.arange(6).reshape(2, 3)])
    array([[0, 3],
           [1, 4],
           [2, 5]])
    """
    if isinstance(node.op, UNMOVED):
        return np.asarray(values[0], dtype=np.int64)
    values = list(values)
    for k in moved_inputs(node):
        values[k] = np.asarray(values[k], dtype=np.int64)
    (result,) = run_node(of_type(node, "int64"), values)
    return np.asarray(result)


def of_type(node: Any, dtype: str) -> Any:
    """The application of an operation to entries of another type."""
    inputs = list(node.inputs)
    for k in moved_inputs(node):
        inputs[k] = pt.tensor(dtype=dtype, shape=(None,) * inputs[k].type.ndim)
    op = MakeVector(dtype) if isinstance(node.op, MakeVector) else node.op
    return op.make_node(*inputs)


def numbered(
    shapes: Sequence[tuple[int, ...]], axes: Sequence[int | None], n_rows: int
) -> list[NDArray[np.int64]]:
    """Numbers for the entries of arrays: that of the entry, plus a multiple for the row.

    Parameters
    ----------
    shapes : sequence of tuple of int
        Of the arrays, with 1 for the number of rows.
    axes : sequence of int or None
        The axis of the rows of each.
    n_rows : int

    Examples
    --------
    >>> numbered([(2,), (1, 2)], [None, 0], 3)[1]
    array([[ 2,  3],
           [ 6,  7],
           [10, 11]])
    """
    ends = list(accumulate(map(math.prod, shapes), initial=0))
    found = []
    for start, shape, axis in zip(ends, shapes, axes, strict=False):
        numbers = start + np.arange(math.prod(shape)).reshape(shape)
        if axis is not None:
            numbers = numbers + ends[-1] * on_axis(np.arange(n_rows), axis, len(shape))
        found.append(numbers)
    return found


def on_axis(values: NDArray, axis: int, ndim: int) -> NDArray:
    """A vector along one of the axes of an array."""
    return values.reshape([-1 if k == axis else 1 for k in range(ndim)])


def axes_of_rows(few: Any, many: Any) -> list[int]:
    """The axes of an array whose lengths change with the number of rows."""
    lengths = zip(np.shape(few), np.shape(many), strict=True)
    return [k for k, (one, other) in enumerate(lengths) if one != other]
