"""Rules: how the results of operations are linear in the parameters."""

import math
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    ADVANCED_SUBTENSOR_OPS,
    Alloc,
    Blockwise,
    CAReduce,
    CumOp,
    DimShuffle,
    Dot,
    Elemwise,
    Variable,
    axes_of,
    indices_of,
    is_dot,
    scalar_name,
)
from pymc_austerity.model.predictors import affine
from pymc_austerity.model.predictors.affine import Affine
from pymc_austerity.model.predictors.columns import (
    Column,
    ColumnArray,
    by_position,
    dense,
    gathered,
    plus,
    row_vector,
    singles,
    stored,
    times,
    weighted,
)
from pymc_austerity.model.predictors.linear import (
    MOST_COLUMNS,
    BeyondError,
    GraphFacts,
    Linear,
    Walk,
    rule,
)
from pymc_austerity.model.rearranging import (
    MANY,
    OF_ALL,
    OF_ONE,
    moved_inputs,
    numbered,
    on_axis,
    run_on_numbers,
)


def _small(variable: Variable, walk: Walk) -> Affine | NDArray:
    """Something without rows: linear, or an array of numbers."""
    found = walk.linear.get(variable)
    if isinstance(found, Affine):
        return found
    return walk.data(variable)


def _each(shape: tuple[int, ...], function: Any, arrays: list[NDArray[Any]]) -> NDArray[Any]:
    """Apply a function to the entries of arrays of one shape after broadcasting."""
    if np.prod(shape, dtype=float) > MOST_COLUMNS:
        raise BeyondError
    whole = [np.broadcast_to(array, shape) for array in arrays]
    return by_position(shape, lambda position: function(*[array[position] for array in whole]))


def _broadcast(node: Any, operand: Variable, walk: Walk) -> Linear:
    """An operand repeated to the shape of the output."""
    output = node.outputs[0]
    axis, shape = walk.facts.axis(output), walk.facts.shape(output)
    if axis is None:
        return affine.as_affine(_small(operand, walk), walk.size).broadcast(shape)
    columns = walk.columns(operand, axis)
    ndim = output.type.ndim
    columns = columns.reshape((1,) * (ndim - columns.ndim) + columns.shape)
    return ColumnArray(_each(shape, lambda c: c, [columns]), axis)


def _weighted_by(column: Column, weight: Any, inverse: bool) -> Column:
    """Multiply a column by a number or by a vector of the rows, or divide it."""
    if isinstance(weight, Variable):
        return weighted(column, 1 / weight if inverse else weight)
    factor = float(weight)
    return times(column, 1.0 / factor if inverse else factor)


@rule.register(Elemwise)
def _elemwise(op: Any, node: Any, walk: Walk) -> Linear:
    kind, inputs = scalar_name(node), node.inputs
    if kind == "Second":
        return _broadcast(node, inputs[1], walk)
    if kind in ("Cast", "Identity"):
        return walk.linear[inputs[0]]
    if kind in ("Add", "Sub", "Neg"):
        return _weighted_sum(node, walk, {"Sub": [1.0, -1.0], "Neg": [-1.0]}.get(kind))
    if kind == "Mul" or (kind == "TrueDiv" and not walk.facts.depends(inputs[1])):
        return _product(node, walk, inverse=kind == "TrueDiv")
    if kind == "Switch" and not walk.facts.depends(inputs[0]):
        return _switch(node, walk)
    raise BeyondError


def _weighted_sum(node: Any, walk: Walk, weights: list[float] | None) -> Linear:
    output, signs = node.outputs[0], weights or [1.0] * len(node.inputs)
    axis, shape = walk.facts.axis(output), walk.facts.shape(output)
    if axis is None:
        parts = [affine.as_affine(_small(i, walk), walk.size) for i in node.inputs]
        pairs = zip(parts, signs, strict=True)
        return affine.added([affine.scaled(part, np.array(sign), shape) for part, sign in pairs])
    arrays = [walk.columns(i, axis) for i in node.inputs]
    return ColumnArray(
        _each(shape, lambda *c: plus([times(x, s) for x, s in zip(c, signs, strict=True)]), arrays),
        axis,
    )


def _product(node: Any, walk: Walk, *, inverse: bool) -> Linear:
    linear = [i for i in node.inputs if walk.facts.depends(i)]
    if len(linear) != 1:
        raise BeyondError
    others = [i for i in node.inputs if i is not linear[0]]
    output = node.outputs[0]
    axis, shape = walk.facts.axis(output), walk.facts.shape(output)
    if axis is None:
        result = walk.linear[linear[0]]
        assert isinstance(result, Affine)
        for other in others:
            value = np.asarray(_small(other, walk), dtype=np.float64)
            result = affine.scaled(result, 1.0 / value if inverse else value, shape)
        return result
    array = walk.columns(linear[0], axis)
    for other in others:
        array = _each(shape, lambda c, w: _weighted_by(c, w, inverse), [array, walk.data(other)])
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
        met = np.asarray(_small(condition, walk)).astype(bool)
        numbers = [
            a.broadcast(shape)
            for a in (affine.as_affine(_small(b, walk), walk.size) for b in branches)
        ]
        n = int(np.prod(shape, dtype=int))
        every = np.arange(n).reshape(shape)
        return affine.stacked(numbers).take(np.where(met, every, n + every))
    then, otherwise = (walk.columns(b, axis) for b in branches)
    return ColumnArray(_each(shape, _chosen, [walk.data(condition), then, otherwise]), axis)


def _chosen(condition: Any, then: Column, otherwise: Column) -> Column:
    if not isinstance(condition, Variable):
        return then if condition else otherwise
    met = pt.switch(condition, 1.0, 0.0)
    unmet = pt.switch(condition, 0.0, 1.0)
    return plus([weighted(then, met), weighted(otherwise, unmet)])


@rule.register(Blockwise)
@rule.register(Dot)
def _dot(op: Any, node: Any, walk: Walk) -> Linear:
    if not is_dot(node):
        raise BeyondError
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
    if np.prod(shape, dtype=float) > MOST_COLUMNS:
        raise BeyondError

    def column(position: tuple[int, ...]) -> Column:
        places = _operands(position, ndims, (facts.shape(left), facts.shape(right)))
        of_linear, of_data = places if is_left else places[::-1]
        if isinstance(found, Affine):
            return dense(_matrix(data, of_data, facts), found.take(found.numbers[of_linear]))
        pairs = zip(found.array[of_linear], walk.data(data)[of_data], strict=True)
        return plus([_weighted_by(c, w, False) for c, w in pairs])

    return by_position(shape, column)


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


# ------------------------------------------------------------------ entries moved about


def _rearranged(op: Any, node: Any, walk: Walk) -> Linear:
    """By running the operation on the numbers of the entries."""
    facts, places, axis = walk.facts, moved_inputs(node), walk.facts.axis(node.outputs[0])
    moved = [node.inputs[k] for k in places]
    axes, shapes = list(map(facts.axis, moved)), list(map(facts.shape, moved))
    has_rows = any(own is not None for own in axes)
    if has_rows and (axis is None or None in axes):
        raise BeyondError
    if any(facts.depends(i) for k, i in enumerate(node.inputs) if k not in places):
        raise BeyondError
    values = dict(enumerate(map(facts.value, node.inputs)))
    values |= dict(zip(places, numbered(shapes, axes, MANY), strict=True))
    numbers = run_on_numbers(node, list(values.values()))
    row, entry = np.divmod(numbers, max(sum(map(math.prod, shapes)), 1))
    first = entry if axis is None else np.take(entry, [0], axis)
    own = on_axis(np.arange(MANY), axis, row.ndim) if has_rows and axis is not None else 0
    if (entry != first).any() or (row != own).any():
        raise BeyondError
    if has_rows and axis is not None:
        columns = [walk.columns(v, axis).ravel() for v in moved]
        return ColumnArray(np.concatenate(columns)[first], axis)
    picked = affine.stacked([affine.as_affine(_small(v, walk), walk.size) for v in moved])
    picked = picked.take(first)
    return picked if axis is None else singles(picked, axis)


for _op in (*OF_ONE, *OF_ALL):
    rule.register(_op, _rearranged)


@rule.register(Alloc)
def _alloc(op: Any, node: Any, walk: Walk) -> Linear:
    if any(walk.facts.depends(i) for i in node.inputs[1:]):
        raise BeyondError
    return _broadcast(node, node.inputs[0], walk)


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
    numbers = np.moveaxis(run_on_numbers(node, [found.numbers, *values]), axis, -1)
    picked = _not_negative(row_vector(index, rows_axis, [0] * index.ndim), n, facts)
    columns = by_position(numbers.shape[:-1], lambda k: gathered(found.take(numbers[k]), picked))
    return ColumnArray(np.expand_dims(columns, axis), axis)


def _many_indices(node: Any, found: Affine, axis: int, walk: Walk) -> Linear:
    """Rows pick along several axes: a table of numbers tells which entry."""
    table = pt.constant(found.numbers)
    numbers = node.op.make_node(table, *node.inputs[1:]).outputs[0]
    flat = found.take(np.arange(found.constant.size))
    shape = walk.facts.shape(node.outputs[0])
    return ColumnArray(
        by_position(shape, lambda k: gathered(flat, row_vector(numbers, axis, k))), axis
    )


def _not_negative(index: Variable, n: int, facts: GraphFacts) -> Variable:
    """An index that counts from the front."""
    array = facts.arrays.get(index)
    if index.dtype.startswith("u") or (array is not None and array.size and array.min() >= 0):
        return index
    return pt.switch(index < 0, index + n, index)


@rule.register(CumOp)
def _cumulative_sum(op: Any, node: Any, walk: Walk) -> Linear:
    found = walk.linear[node.inputs[0]]
    if op.mode != "add" or op.axis is None or not isinstance(found, Affine):
        raise BeyondError
    return affine.cumulated(found, op.axis)


@rule.register(CAReduce)
def _sum(op: Any, node: Any, walk: Walk) -> Linear:
    if scalar_name(node) != "Add":
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
    return ColumnArray(by_position(shape, lambda position: plus(list(moved[position]))), axis)


def _of_stored(node: Any, axes: tuple[int, ...], walk: Walk) -> ColumnArray | None:
    """A sum over ``b[columns] * data``, where rows store a few columns of a sparse matrix each."""
    product, facts = node.inputs[0].owner, walk.facts
    is_product = scalar_name(product) == "Mul"
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
