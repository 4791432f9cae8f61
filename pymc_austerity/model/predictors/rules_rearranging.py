"""Rules for operations that move, pick, join or add up entries."""

from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc_austerity._pymc import (
    ADVANCED_SUBTENSOR_OPS,
    Add,
    Alloc,
    CAReduce,
    CumOp,
    DimShuffle,
    Join,
    JoinDims,
    MakeVector,
    Mul,
    Reshape,
    ScalarFromTensor,
    SpecifyShape,
    SplitDims,
    Subtensor,
    TensorFromScalar,
    Variable,
    axes_of,
    indices_of,
    join_arguments,
)
from pymc_austerity.model.predictors import affine
from pymc_austerity.model.predictors.affine import Affine
from pymc_austerity.model.predictors.columns import (
    ColumnArray,
    gathered,
    plus,
    row_vector,
    singles,
    stored,
)
from pymc_austerity.model.predictors.linear import (
    BeyondError,
    GraphFacts,
    Linear,
    Walk,
    broadcast,
    rule,
    small,
)
from pymc_austerity.model.rearranging import MANY, on_axis, run_on_numbers


@rule.register(DimShuffle)
@rule.register(Reshape)
@rule.register(SpecifyShape)
@rule.register(Subtensor)
@rule.register(JoinDims)
@rule.register(SplitDims)
def _rearranged(op: Any, node: Any, walk: Walk) -> Linear:
    """By running the operation on the numbers of the entries."""
    operand, *others = node.inputs
    if any(walk.facts.depends(i) for i in others):
        raise BeyondError
    found, output = walk.linear[operand], node.outputs[0]
    axis = walk.facts.axis(output)
    values = [walk.facts.value(i) for i in others]
    if isinstance(found, Affine):
        numbers = run_on_numbers(node, [found.numbers, *values])
        if axis is None:
            return found.take(numbers)
        if (numbers != np.take(numbers, [0], axis)).any():
            raise BeyondError
        return singles(found.take(np.take(numbers, [0], axis)), axis)
    if axis is None:
        raise BeyondError
    n = found.array.size
    by_row = on_axis(np.arange(MANY), found.axis, found.array.ndim)
    own = np.arange(n).reshape(found.array.shape)
    row, column = np.divmod(run_on_numbers(node, [by_row * n + own, *values]), n)
    first = np.take(column, [0], axis)
    if (row != on_axis(np.arange(MANY), axis, row.ndim)).any() or (column != first).any():
        raise BeyondError
    return ColumnArray(found.array.ravel()[first], axis)


@rule.register(Alloc)
def _alloc(op: Any, node: Any, walk: Walk) -> Linear:
    if any(walk.facts.depends(i) for i in node.inputs[1:]):
        raise BeyondError
    return broadcast(node, node.inputs[0], walk)


@rule.register(ScalarFromTensor)
@rule.register(TensorFromScalar)
def _scalar(op: Any, node: Any, walk: Walk) -> Linear:
    return walk.linear[node.inputs[0]]


def _subtensor(op: Any, node: Any, walk: Walk) -> Linear:
    operand, *indices = node.inputs
    if any(walk.facts.depends(i) for i in indices):
        raise BeyondError
    found, output = walk.linear[operand], node.outputs[0]
    axis = walk.facts.axis(output)
    with_rows = [i for i in indices if hasattr(i.type, "ndim") and walk.facts.axis(i) is not None]
    if not with_rows or not isinstance(found, Affine) or axis is None:
        return _rearranged(node.op, node, walk)
    if len(with_rows) == 1 and _is_vector(with_rows[0], walk.facts):
        return _one_index(node, found, with_rows[0], axis, walk)
    return _many_indices(node, found, axis, walk)


for _op in ADVANCED_SUBTENSOR_OPS:
    rule.register(_op, _subtensor)


def _is_vector(index: Variable, facts: GraphFacts) -> bool:
    return index.type.dtype != "bool" and int(np.prod(facts.shape(index))) == 1


def _one_index(node: Any, found: Affine, index: Variable, axis: int, walk: Walk) -> Linear:
    """Rows pick along one axis: a gathered vector for every position on the others."""
    facts = walk.facts
    place = [i is index for i in indices_of(node)].index(True)
    n, rows_axis = found.shape[place], facts.axis(index)
    assert rows_axis is not None
    levels = on_axis(np.arange(n), rows_axis, index.ndim)
    values = [levels if i is index else facts.value(i) for i in node.inputs[1:]]
    numbers = np.moveaxis(run_on_numbers(node, [found.numbers, *values]), axis, 0)
    picked = _not_negative(row_vector(index, rows_axis, [0] * index.ndim), n, facts)
    result = np.empty(numbers.shape[1:], dtype=object)
    for position in np.ndindex(result.shape):
        result[position] = gathered(found.take(numbers[(slice(None), *position)]), picked)
    return ColumnArray(np.expand_dims(result, axis), axis)


def _many_indices(node: Any, found: Affine, axis: int, walk: Walk) -> Linear:
    """Rows pick along several axes: a table of numbers tells which entry."""
    table = pt.constant(found.numbers)
    numbers = node.op.make_node(table, *node.inputs[1:]).outputs[0]
    flat = found.take(np.arange(found.constant.size))
    result = np.empty(walk.facts.shape(node.outputs[0]), dtype=object)
    for position in np.ndindex(result.shape):
        result[position] = gathered(flat, row_vector(numbers, axis, position))
    return ColumnArray(result, axis)


def _not_negative(index: Variable, n: int, facts: GraphFacts) -> Variable:
    """An index that counts from the front."""
    array = facts.arrays.get(index)
    if index.dtype.startswith("u") or (array is not None and array.size and array.min() >= 0):
        return index
    return pt.switch(index < 0, index + n, index)


@rule.register(Join)
def _join(op: Any, node: Any, walk: Walk) -> Linear:
    along, parts = join_arguments(node)
    axis = walk.facts.axis(node.outputs[0])
    if axis is None:
        return affine.joined([small(i, walk) for i in parts], along, walk.size)
    along %= node.outputs[0].type.ndim
    if along == axis or any(walk.facts.axis(i) is None for i in parts):
        raise BeyondError
    return ColumnArray(np.concatenate([walk.columns(i, axis) for i in parts], along), axis)


@rule.register(MakeVector)
def _make_vector(op: Any, node: Any, walk: Walk) -> Linear:
    parts = [small(i, walk) for i in node.inputs]
    vectors = [
        Affine((1,), p.matrix, p.constant) if isinstance(p, Affine) else np.reshape(p, (1,))
        for p in parts
    ]
    return affine.joined(vectors, 0, walk.size)


@rule.register(CumOp)
def _cumulative_sum(op: Any, node: Any, walk: Walk) -> Linear:
    found = walk.linear[node.inputs[0]]
    if op.mode != "add" or op.axis is None or not isinstance(found, Affine):
        raise BeyondError
    return affine.cumulated(found, op.axis)


@rule.register(CAReduce)
def _sum(op: Any, node: Any, walk: Walk) -> Linear:
    if not isinstance(op.scalar_op, Add):
        raise BeyondError
    found = walk.linear[node.inputs[0]]
    axes = axes_of(op.axis, node.inputs[0].ndim)
    if isinstance(found, Affine):
        return affine.summed(found, axes)
    axis = walk.facts.axis(node.outputs[0])
    if found.axis in axes or axis is None:
        raise BeyondError
    if (of_rows := _of_stored(node, axes, walk)) is not None:
        return of_rows
    kept = [k for k in range(found.array.ndim) if k not in axes]
    shape = tuple(found.array.shape[k] for k in kept)
    moved = np.transpose(found.array, [*kept, *axes]).reshape(*shape, -1)
    result = np.empty(shape, dtype=object)
    for position in np.ndindex(shape):
        result[position] = plus(list(moved[position]))
    return ColumnArray(result, axis)


def _of_stored(node: Any, axes: tuple[int, ...], walk: Walk) -> ColumnArray | None:
    """A sum over ``b[columns] * data``, where rows store a few columns of a sparse matrix each."""
    product, facts = node.inputs[0].owner, walk.facts
    is_product = isinstance(getattr(product.op, "scalar_op", None), Mul)
    if axes != (1,) or not is_product or len(product.inputs) != 2:
        return None
    for picked, data in (product.inputs, product.inputs[::-1]):
        inner = picked.owner
        if inner is None or not isinstance(inner.op, ADVANCED_SUBTENSOR_OPS) or facts.depends(data):
            continue
        found, (columns, *others) = walk.linear.get(inner.inputs[0]), indices_of(inner)
        if not isinstance(found, Affine) or others or getattr(columns.type, "ndim", 0) != 2:
            continue
        values, rest = data, data.owner
        if rest is not None and getattr(rest.op, "new_order", None) == (0, 1, "x"):
            (values,) = rest.inputs
        shapes = {facts.shape(v) for v in (columns, values) if facts.axis(v) == 0}
        if values.type.ndim != 2 or len(shapes) != 1 or (facts.axis(values) != 0):
            continue
        columns = _not_negative(columns, found.shape[0], facts)
        own = found.numbers.reshape(found.shape[0], -1)
        result = np.empty(own.shape[1], dtype=object)
        result[:] = [stored(columns, values, found.take(numbers)) for numbers in own.T]
        if all(result):
            return ColumnArray(result.reshape(1, *found.shape[1:]), 0)
    return None
