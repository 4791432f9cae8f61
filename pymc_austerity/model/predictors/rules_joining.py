"""Rules for operations that join arrays or add up their entries."""

from typing import Any

import numpy as np

from pymc_austerity._pymc import Add, CAReduce, CumOp, Join, MakeVector, join_arguments
from pymc_austerity.model.predictors import affine
from pymc_austerity.model.predictors.affine import Affine
from pymc_austerity.model.predictors.columns import Columns, plus
from pymc_austerity.model.predictors.linear import BeyondError, Linear, Walk, rule, small


@rule.register(Join)
def _join(op: Any, node: Any, walk: Walk) -> Linear:
    along, parts = join_arguments(node)
    axis = walk.facts.axis(node.outputs[0])
    if axis is None:
        return affine.joined([small(i, walk) for i in parts], along, walk.size)
    along %= node.outputs[0].type.ndim
    if along == axis or any(walk.facts.axis(i) is None for i in parts):
        raise BeyondError
    return Columns(np.concatenate([walk.columns(i, axis) for i in parts], along), axis)


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
    axes = tuple(range(node.inputs[0].ndim)) if op.axis is None else tuple(op.axis)
    if isinstance(found, Affine):
        return affine.summed(found, axes)
    axis = walk.facts.axis(node.outputs[0])
    if found.axis in axes or axis is None:
        raise BeyondError
    kept = [k for k in range(found.array.ndim) if k not in axes]
    shape = tuple(found.array.shape[k] for k in kept)
    moved = np.transpose(found.array, [*kept, *axes]).reshape(*shape, -1)
    result = np.empty(shape, dtype=object)
    for position in np.ndindex(shape):
        result[position] = plus(list(moved[position]))
    return Columns(result, axis)
