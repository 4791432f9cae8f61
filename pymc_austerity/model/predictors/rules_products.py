"""Rules for matrix products."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import Blockwise, DimShuffle, Dot, Variable
from pymc_austerity.model.predictors import affine
from pymc_austerity.model.predictors.affine import Affine
from pymc_austerity.model.predictors.columns import Columns, dense, plus
from pymc_austerity.model.predictors.facts import Facts
from pymc_austerity.model.predictors.linear import (
    MOST_COLUMNS,
    BeyondError,
    Linear,
    Walk,
    rule,
    weighted_by,
)


@rule.register(Blockwise)
def _blockwise(op: Any, node: Any, walk: Walk) -> Linear:
    if not isinstance(op.core_op, Dot):
        raise BeyondError
    return _dot(op, node, walk)


@rule.register(Dot)
def _dot(op: Any, node: Any, walk: Walk) -> Linear:
    left, right = node.inputs
    facts, output = walk.facts, node.outputs[0]
    if facts.depends(left) and facts.depends(right):
        raise BeyondError
    axis = facts.axis(output)
    if axis is None:
        if facts.axis(left) is not None or facts.axis(right) is not None:
            raise BeyondError
        is_left = not facts.depends(left)
        constants, linear = (left, right) if is_left else (right, left)
        found = walk.linear[linear]
        assert isinstance(found, Affine)
        return affine.product(np.asarray(walk.data(constants)), found, left=is_left)
    return Columns(_row_dot(left, right, output, axis, walk), axis)


def _row_dot(
    left: Variable, right: Variable, output: Variable, axis: int, walk: Walk
) -> NDArray[Any]:
    """Matrix product with rows, one column at a time."""
    facts = walk.facts
    ndims = left.type.ndim, right.type.ndim
    along = ndims[0] - 1, max(ndims[1] - 2, 0)
    if facts.axis(left) == along[0] or facts.axis(right) == along[1]:
        raise BeyondError
    is_left = facts.depends(left)
    linear, data = (left, right) if is_left else (right, left)
    found = walk.linear[linear]
    shape = facts.shape(output)
    result = np.empty(shape, dtype=object)
    if result.size > MOST_COLUMNS:
        raise BeyondError
    for position in np.ndindex(shape):
        places = _operands(position, ndims, (facts.shape(left), facts.shape(right)))
        of_linear, of_data = places if is_left else places[::-1]
        if isinstance(found, Affine):
            rows = _matrix(data, of_data, facts)
            result[position] = dense(rows, found.take(found.numbers[of_linear]))
        else:
            columns, weights = found.array[of_linear], walk.data(data)[of_data]
            result[position] = plus(
                [weighted_by(c, w, False) for c, w in zip(columns, weights, strict=True)]
            )
    return result


def _operands(
    position: tuple[int, ...], ndims: tuple[int, int], shapes: tuple[tuple[int, ...], ...]
) -> tuple[tuple, tuple]:
    """Where the operands of one entry of a matrix product are; a slice along the common axis."""
    batch = position[: max(*ndims, 2) - 2]
    rest = position[len(batch) :]
    first: tuple = (slice(None),) if ndims[0] == 1 else (rest[0], slice(None))
    second: tuple = (slice(None),) if ndims[1] == 1 else (slice(None), rest[-1])

    def own(place: tuple, ndim: int, shape: tuple[int, ...]) -> tuple:
        kept = batch[len(batch) - max(ndim - 2, 0) :] if ndim > 2 else ()
        kept = tuple(0 if n == 1 else k for k, n in zip(kept, shape, strict=False))
        return (*kept, *place)

    return own(first, ndims[0], shapes[0]), own(second, ndims[1], shapes[1])


def _matrix(data: Variable, place: tuple, facts: Facts) -> Variable:
    """Rows of data as a matrix, shape (m, p), at a place with one slice."""
    axis = facts.axis(data)
    along = [isinstance(k, slice) for k in place].index(True)
    if data.type.ndim == 2 and (axis, along) == (0, 1):
        return data
    if axis is None:
        raise BeyondError
    node = data.owner
    if node is not None and isinstance(node.op, DimShuffle) and data.type.ndim == 2:
        inner = node.inputs[0]
        if tuple(node.op.new_order) == (1, 0) and facts.axis(inner) == 0:
            return inner
    index = tuple(slice(None) if k in (axis, along) else int(i) for k, i in enumerate(place))
    rows = data[index]
    return rows if axis < along else rows.T
