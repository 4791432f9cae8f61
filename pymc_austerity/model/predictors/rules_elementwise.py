"""Rules for operations that work element by element."""

from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc_austerity._pymc import (
    Add,
    Cast,
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
from pymc_austerity.model.predictors.columns import Column, Columns, plus, times, weighted
from pymc_austerity.model.predictors.linear import (
    BeyondError,
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
    return Columns(
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
    return Columns(array, axis)


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
    return Columns(each(shape, _chosen, [walk.data(condition), then, otherwise]), axis)


def _chosen(condition: Any, then: Column, otherwise: Column) -> Column:
    if not isinstance(condition, Variable):
        return then if condition else otherwise
    met = pt.switch(condition, 1.0, 0.0)
    unmet = pt.switch(condition, 0.0, 1.0)
    return plus([weighted(then, met), weighted(otherwise, unmet)])
