"""Rules for sums, products, switches and matrix products."""

from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    Add,
    Blockwise,
    Cast,
    DimShuffle,
    Dot,
    Elemwise,
    Identity,
    Mul,
    Neg,
    Second,
    Sub,
    Switch,
    TrueDiv,
    Variable,
)
from pymc_austerity.model.predictors import affine
from pymc_austerity.model.predictors.affine import Affine
from pymc_austerity.model.predictors.columns import (
    Column,
    ColumnArray,
    dense,
    plus,
    times,
    weighted,
)
from pymc_austerity.model.predictors.linear import (
    MOST_COLUMNS,
    BeyondError,
    GraphFacts,
    Linear,
    Walk,
    broadcast,
    each,
    rule,
    small,
    weighted_by,
)


@rule.register(Elemwise)
def _elemwise(op: Any, node: Any, walk: Walk) -> Linear:
    kind = op.scalar_op
    if isinstance(kind, Second):
        return broadcast(node, node.inputs[1], walk)
    if isinstance(kind, Cast | Identity):
        return walk.linear[node.inputs[0]]
    if isinstance(kind, Add | Sub | Neg):
        signs = [1.0, -1.0] if isinstance(kind, Sub) else [1.0] * len(node.inputs)
        return _weighted_sum(node, walk, [-1.0] if isinstance(kind, Neg) else signs)
    if isinstance(kind, Mul):
        return _product(node, walk)
    if isinstance(kind, TrueDiv) and not walk.facts.depends(node.inputs[1]):
        return _product(node, walk)
    if isinstance(kind, Switch) and not walk.facts.depends(node.inputs[0]):
        return _switch(node, walk)
    raise BeyondError


def _weighted_sum(node: Any, walk: Walk, signs: list[float]) -> Linear:
    output = node.outputs[0]
    axis, shape = walk.facts.axis(output), walk.facts.shape(output)
    if axis is None:
        parts = [
            affine.scaled(part, np.array(sign), part.shape)
            if isinstance(part, Affine)
            else sign * part
            for part, sign in zip((small(i, walk) for i in node.inputs), signs, strict=True)
        ]
        return affine.added(parts, shape, walk.size)
    arrays = [walk.columns(i, axis) for i in node.inputs]
    return ColumnArray(
        each(shape, lambda *c: plus([times(x, s) for x, s in zip(c, signs, strict=True)]), arrays),
        axis,
    )


def _product(node: Any, walk: Walk) -> Linear:
    linear = [i for i in node.inputs if walk.facts.depends(i)]
    if len(linear) != 1:
        raise BeyondError
    others = [i for i in node.inputs if i is not linear[0]]
    inverse = isinstance(node.op.scalar_op, TrueDiv)
    output = node.outputs[0]
    axis, shape = walk.facts.axis(output), walk.facts.shape(output)
    if axis is None:
        result = walk.linear[linear[0]]
        assert isinstance(result, Affine)
        for other in others:
            value = np.asarray(small(other, walk), dtype=np.float64)
            result = affine.scaled(result, 1.0 / value if inverse else value, shape)
        return result
    array = walk.columns(linear[0], axis)
    for other in others:
        array = each(shape, lambda c, w: weighted_by(c, w, inverse), [array, walk.data(other)])
    return ColumnArray(array, axis)


def _switch(node: Any, walk: Walk) -> Linear:
    condition, *branches = node.inputs
    output = node.outputs[0]
    axis, shape = walk.facts.axis(output), walk.facts.shape(output)
    if any(
        not walk.facts.depends(b) and not np.isfinite(walk.facts.value(b)).all() for b in branches
    ):
        raise BeyondError
    if axis is None:
        met = np.asarray(small(condition, walk)).astype(bool)
        numbers = [
            a.broadcast(shape)
            for a in (affine.as_affine(small(b, walk), walk.size) for b in branches)
        ]
        n = int(np.prod(shape, dtype=int))
        every = np.arange(n).reshape(shape)
        return affine.stacked(numbers).take(np.where(met, every, n + every))
    then, otherwise = (walk.columns(b, axis) for b in branches)
    return ColumnArray(each(shape, _chosen, [walk.data(condition), then, otherwise]), axis)


def _chosen(condition: Any, then: Column, otherwise: Column) -> Column:
    if not isinstance(condition, Variable):
        return then if condition else otherwise
    met = pt.switch(condition, 1.0, 0.0)
    unmet = pt.switch(condition, 0.0, 1.0)
    return plus([weighted(then, met), weighted(otherwise, unmet)])


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
    return ColumnArray(_row_dot(left, right, output, axis, walk), axis)


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


def _matrix(data: Variable, place: tuple, facts: GraphFacts) -> Variable:
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
