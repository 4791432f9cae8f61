"""The forward walk: what does not depend on parameters, what is linear in them, what is beyond."""

from collections.abc import Mapping
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    ADVANCED_SUBTENSOR_OPS,
    Add,
    Alloc,
    Blockwise,
    CAReduce,
    Cast,
    DimShuffle,
    Dot,
    Elemwise,
    Identity,
    Join,
    JoinDims,
    MakeVector,
    Mul,
    Neg,
    Reshape,
    ScalarFromTensor,
    Second,
    SpecifyShape,
    SplitDims,
    Sub,
    Subtensor,
    Switch,
    TensorFromScalar,
    TrueDiv,
    Variable,
    indices_of,
    is_relabelling,
    join_arguments,
    run_node,
    toposort,
)
from pymc_austerity.model.predictors import affine
from pymc_austerity.model.predictors.affine import Affine, TooLargeError
from pymc_austerity.model.predictors.columns import (
    Column,
    Columns,
    dense,
    gathered,
    mapped,
    plus,
    row_vector,
    singles,
    times,
    weighted,
)
from pymc_austerity.model.predictors.facts import MANY, Facts

__all__ = ["Linear", "Walk", "walk"]

Linear: TypeAlias = Affine | Columns
_MOST_COLUMNS = 2_048


class _BeyondError(Exception):
    """The result is not linear in the parameters, or no rule tells."""


class Walk:
    """Everything that is linear in the parameters.

    Parameters
    ----------
    facts : Facts
        What is known of the graph.
    size : int
        Length of the raveled vector of the variables.

    Attributes
    ----------
    linear : dict of variable to Affine or Columns
        What has been found.
    """

    def __init__(self, facts: Facts, size: int) -> None:
        self.facts = facts
        self.size = size
        self.linear: dict[Variable, Linear] = {}

    def is_beyond(self, variable: Variable) -> bool:
        """Tell whether a variable depends on parameters in another way than linearly."""
        return self.facts.depends(variable) and variable not in self.linear

    def columns(self, variable: Variable, axis: int) -> NDArray[Any]:
        """Columns of anything but what is beyond, of length 1 along the axis of the rows."""
        found = self.linear.get(variable)
        if isinstance(found, Columns):
            return found.array
        if isinstance(found, Affine):
            return singles(found, axis).array
        return mapped(_as_column, self.data(variable))

    def data(self, variable: Variable) -> NDArray[Any]:
        """Data as an array of vectors, shape (m,), or of numbers where there are no rows."""
        axis = self.facts.axis(variable)
        if axis is None:
            if self.facts.reads_rows(variable):
                raise _BeyondError
            return np.asarray(self.facts.value(variable))
        result = np.empty(self.facts.shape(variable), dtype=object)
        if result.size > _MOST_COLUMNS:
            raise _BeyondError
        for position in np.ndindex(result.shape):
            result[position] = row_vector(variable, axis, position)
        return result


def walk(output: Variable, parameters: Mapping[Variable, Affine], facts: Facts, size: int) -> Walk:
    """Find everything linear in a graph.

    Parameters
    ----------
    output : variable
        Log-likelihoods of rows.
    parameters : mapping of variable to Affine
        The value variables as arrays of entries of the raveled vector.
    facts : Facts
        What is known of the graph.
    size : int
        Length of the raveled vector.
    """
    result = Walk(facts, size)
    result.linear.update(parameters)
    for node in toposort([output], blockers=list(parameters)):
        inputs = [i for i in node.inputs if facts.depends(i)]
        if not inputs or any(result.is_beyond(i) for i in inputs) or len(node.outputs) > 1:
            continue
        if not getattr(node.outputs[0].type, "dtype", "").startswith("float"):
            continue
        try:
            found = _rule(node.op, node, result)
        except (_BeyondError, TooLargeError):
            continue
        result.linear[node.outputs[0]] = found
    return result


@singledispatch
def _rule(op: Any, node: Any, walk: Walk) -> Linear:
    """How the output of an operation is linear, given that all its inputs are linear or data."""
    if isinstance(op, ADVANCED_SUBTENSOR_OPS):
        return _subtensor(node, walk)
    if is_relabelling(op):
        return walk.linear[node.inputs[0]]
    raise _BeyondError


def _as_column(data: Any) -> Column:
    if isinstance(data, Variable):
        return Column((), data)
    return Column((), None, float(data))


# ------------------------------------------------------------------ element by element


@_rule.register(Elemwise)
def _elemwise(op: Any, node: Any, walk: Walk) -> Linear:
    kind = op.scalar_op
    if isinstance(kind, Second):
        return _broadcast(node, node.inputs[1], walk)
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
    raise _BeyondError


def _weighted_sum(node: Any, walk: Walk, signs: list[float]) -> Linear:
    output = node.outputs[0]
    axis, shape = walk.facts.axis(output), walk.facts.shape(output)
    if axis is None:
        parts = [
            affine.scaled(part, np.array(sign), part.shape)
            if isinstance(part, Affine)
            else sign * part
            for part, sign in zip((_small(i, walk) for i in node.inputs), signs, strict=True)
        ]
        return affine.added(parts, shape, walk.size)
    arrays = [walk.columns(i, axis) for i in node.inputs]
    return Columns(
        _each(shape, lambda *c: plus([times(x, s) for x, s in zip(c, signs, strict=True)]), arrays),
        axis,
    )


def _product(node: Any, walk: Walk) -> Linear:
    linear = [i for i in node.inputs if walk.facts.depends(i)]
    if len(linear) != 1:
        raise _BeyondError
    others = [i for i in node.inputs if i is not linear[0]]
    inverse = isinstance(node.op.scalar_op, TrueDiv)
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
    return Columns(array, axis)


def _weighted_by(column: Column, weight: Any, inverse: bool) -> Column:
    if isinstance(weight, Variable):
        return weighted(column, 1 / weight if inverse else weight)
    factor = float(weight)
    return times(column, 1.0 / factor if inverse else factor)


def _switch(node: Any, walk: Walk) -> Linear:
    condition, *branches = node.inputs
    output = node.outputs[0]
    axis, shape = walk.facts.axis(output), walk.facts.shape(output)
    if any(
        not walk.facts.depends(b) and not np.isfinite(walk.facts.value(b)).all() for b in branches
    ):
        raise _BeyondError
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
    return Columns(_each(shape, _chosen, [walk.data(condition), then, otherwise]), axis)


def _chosen(condition: Any, then: Column, otherwise: Column) -> Column:
    if not isinstance(condition, Variable):
        return then if condition else otherwise
    met = pt.switch(condition, 1.0, 0.0)
    unmet = pt.switch(condition, 0.0, 1.0)
    return plus([weighted(then, met), weighted(otherwise, unmet)])


def _small(variable: Variable, walk: Walk) -> Affine | NDArray:
    """Something without rows: linear, or an array of numbers."""
    found = walk.linear.get(variable)
    if isinstance(found, Affine):
        return found
    return walk.data(variable)


def _each(shape: tuple[int, ...], function: Any, arrays: list[NDArray[Any]]) -> NDArray[Any]:
    if np.prod(shape, dtype=float) > _MOST_COLUMNS:
        raise _BeyondError
    whole = [np.broadcast_to(array, shape) for array in arrays]
    result = np.empty(shape, dtype=object)
    for position in np.ndindex(shape):
        result[position] = function(*[array[position] for array in whole])
    return result


def _broadcast(node: Any, operand: Variable, walk: Walk) -> Linear:
    """An operand repeated to the shape of the output."""
    output = node.outputs[0]
    axis, shape = walk.facts.axis(output), walk.facts.shape(output)
    found = walk.linear[operand]
    if axis is None:
        assert isinstance(found, Affine)
        return found.broadcast(shape)
    columns = walk.columns(operand, axis)
    ndim = output.type.ndim
    columns = columns.reshape((1,) * (ndim - columns.ndim) + columns.shape)
    return Columns(_each(shape, lambda c: c, [columns]), axis)


# ------------------------------------------------------------------ rearranging


@_rule.register(DimShuffle)
@_rule.register(Reshape)
@_rule.register(SpecifyShape)
@_rule.register(Subtensor)
@_rule.register(JoinDims)
@_rule.register(SplitDims)
def _rearranged(op: Any, node: Any, walk: Walk) -> Linear:
    """By running the operation on the numbers of the entries."""
    operand, *others = node.inputs
    if any(walk.facts.depends(i) for i in others):
        raise _BeyondError
    found, output = walk.linear[operand], node.outputs[0]
    axis = walk.facts.axis(output)
    values = [walk.facts.value(i) for i in others]
    if isinstance(found, Affine):
        numbers = _run(node, found.numbers, values)
        if axis is None:
            return found.take(numbers)
        if (numbers != np.take(numbers, [0], axis)).any():
            raise _BeyondError
        return singles(found.take(np.take(numbers, [0], axis)), axis)
    if axis is None:
        raise _BeyondError
    n = found.array.size
    by_row = np.arange(MANY).reshape(
        [-1 if k == found.axis else 1 for k in range(found.array.ndim)]
    )
    numbers = _run(node, by_row * n + np.arange(n).reshape(found.array.shape), values)
    row, column = np.divmod(numbers, n)
    own = np.arange(MANY).reshape([-1 if k == axis else 1 for k in range(numbers.ndim)])
    first = np.take(column, [0], axis)
    if (row != own).any() or (column != first).any():
        raise _BeyondError
    return Columns(found.array.ravel()[first], axis)


def _run(node: Any, numbers: NDArray, values: list) -> NDArray[np.int64]:
    """Output of an operation whose first operand is an array of numbers."""
    operand = pt.tensor(dtype="int64", shape=(None,) * numbers.ndim)
    again = node.op.make_node(operand, *node.inputs[1:])
    (result,) = run_node(again, [numbers.astype(np.int64), *values])
    return np.asarray(result)


@_rule.register(Alloc)
def _alloc(op: Any, node: Any, walk: Walk) -> Linear:
    if any(walk.facts.depends(i) for i in node.inputs[1:]):
        raise _BeyondError
    return _broadcast(node, node.inputs[0], walk)


@_rule.register(ScalarFromTensor)
@_rule.register(TensorFromScalar)
def _scalar(op: Any, node: Any, walk: Walk) -> Linear:
    return walk.linear[node.inputs[0]]


def _subtensor(node: Any, walk: Walk) -> Linear:
    operand, *indices = node.inputs
    if any(walk.facts.depends(i) for i in indices):
        raise _BeyondError
    found, output = walk.linear[operand], node.outputs[0]
    axis = walk.facts.axis(output)
    with_rows = [i for i in indices if hasattr(i.type, "ndim") and walk.facts.axis(i) is not None]
    if not with_rows or not isinstance(found, Affine) or axis is None:
        return _rearranged(node.op, node, walk)
    if len(with_rows) == 1 and _is_vector(with_rows[0], walk.facts):
        return _one_index(node, found, with_rows[0], axis, walk)
    return _many_indices(node, found, axis, walk)


def _is_vector(index: Variable, facts: Facts) -> bool:
    return index.type.dtype != "bool" and int(np.prod(facts.shape(index))) == 1


def _one_index(node: Any, found: Affine, index: Variable, axis: int, walk: Walk) -> Linear:
    """Rows pick along one axis: a gathered vector for every position on the others."""
    facts = walk.facts
    place = [i is index for i in indices_of(node)].index(True)
    n = found.shape[place]
    levels = np.arange(n).reshape([-1 if k == facts.axis(index) else 1 for k in range(index.ndim)])
    values = [levels if i is index else facts.value(i) for i in node.inputs[1:]]
    numbers = np.moveaxis(_run(node, found.numbers, values), axis, 0)
    rows_axis = facts.axis(index)
    assert rows_axis is not None
    picked = row_vector(index, rows_axis, [0] * index.ndim)
    picked = _not_negative(picked, n, facts)
    result = np.empty(numbers.shape[1:], dtype=object)
    for position in np.ndindex(result.shape):
        result[position] = gathered(found.take(numbers[(slice(None), *position)]), picked)
    return Columns(np.expand_dims(result, axis), axis)


def _many_indices(node: Any, found: Affine, axis: int, walk: Walk) -> Linear:
    """Rows pick along several axes: a table of numbers tells which entry."""
    table = pt.constant(found.numbers)
    numbers = node.op.make_node(table, *node.inputs[1:]).outputs[0]
    flat = found.take(np.arange(found.constant.size))
    result = np.empty(walk.facts.shape(node.outputs[0]), dtype=object)
    for position in np.ndindex(result.shape):
        result[position] = gathered(flat, row_vector(numbers, axis, position))
    return Columns(result, axis)


def _not_negative(index: Variable, n: int, facts: Facts) -> Variable:
    """An index that counts from the front."""
    array = facts.leaves.get(index)
    if index.dtype.startswith("u") or (array is not None and array.size and array.min() >= 0):
        return index
    return pt.switch(index < 0, index + n, index)


# ------------------------------------------------------------------ joining, adding up


@_rule.register(Join)
def _join(op: Any, node: Any, walk: Walk) -> Linear:
    along, parts = join_arguments(node)
    axis = walk.facts.axis(node.outputs[0])
    if axis is None:
        return affine.joined([_small(i, walk) for i in parts], along, walk.size)
    along %= node.outputs[0].type.ndim
    if along == axis or any(walk.facts.axis(i) is None for i in parts):
        raise _BeyondError
    return Columns(np.concatenate([walk.columns(i, axis) for i in parts], along), axis)


@_rule.register(MakeVector)
def _make_vector(op: Any, node: Any, walk: Walk) -> Linear:
    parts = [_small(i, walk) for i in node.inputs]
    vectors = [
        Affine((1,), p.matrix, p.constant) if isinstance(p, Affine) else np.reshape(p, (1,))
        for p in parts
    ]
    return affine.joined(vectors, 0, walk.size)


@_rule.register(CAReduce)
def _sum(op: Any, node: Any, walk: Walk) -> Linear:
    if not isinstance(op.scalar_op, Add):
        raise _BeyondError
    found = walk.linear[node.inputs[0]]
    axes = tuple(range(node.inputs[0].ndim)) if op.axis is None else tuple(op.axis)
    if isinstance(found, Affine):
        return affine.summed(found, axes)
    axis = walk.facts.axis(node.outputs[0])
    if found.axis in axes or axis is None:
        raise _BeyondError
    kept = [k for k in range(found.array.ndim) if k not in axes]
    shape = tuple(found.array.shape[k] for k in kept)
    moved = np.transpose(found.array, [*kept, *axes]).reshape(*shape, -1)
    result = np.empty(shape, dtype=object)
    for position in np.ndindex(shape):
        result[position] = plus(list(moved[position]))
    return Columns(result, axis)


@_rule.register(Blockwise)
def _blockwise(op: Any, node: Any, walk: Walk) -> Linear:
    if not isinstance(op.core_op, Dot):
        raise _BeyondError
    return _dot(op, node, walk)


@_rule.register(Dot)
def _dot(op: Any, node: Any, walk: Walk) -> Linear:
    left, right = node.inputs
    facts, output = walk.facts, node.outputs[0]
    if facts.depends(left) and facts.depends(right):
        raise _BeyondError
    axis = facts.axis(output)
    if axis is None:
        if facts.axis(left) is not None or facts.axis(right) is not None:
            raise _BeyondError
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
        raise _BeyondError
    is_left = facts.depends(left)
    linear, data = (left, right) if is_left else (right, left)
    found = walk.linear[linear]
    shape = facts.shape(output)
    result = np.empty(shape, dtype=object)
    if result.size > _MOST_COLUMNS:
        raise _BeyondError
    for position in np.ndindex(shape):
        places = _operands(position, ndims, (facts.shape(left), facts.shape(right)))
        of_linear, of_data = places if is_left else places[::-1]
        if isinstance(found, Affine):
            rows = _matrix(data, of_data, facts)
            result[position] = dense(rows, found.take(found.numbers[of_linear]))
        else:
            columns, weights = found.array[of_linear], walk.data(data)[of_data]
            result[position] = plus(
                [_weighted_by(c, w, False) for c, w in zip(columns, weights, strict=True)]
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
        raise _BeyondError
    node = data.owner
    if node is not None and isinstance(node.op, DimShuffle) and data.type.ndim == 2:
        inner = node.inputs[0]
        if tuple(node.op.new_order) == (1, 0) and facts.axis(inner) == 0:
            return inner
    index = tuple(slice(None) if k in (axis, along) else int(i) for k, i in enumerate(place))
    rows = data[index]
    return rows if axis < along else rows.T
