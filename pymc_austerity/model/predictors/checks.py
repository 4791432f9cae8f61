"""Checks of parameters as conditions of each row."""

from typing import Any

import pytensor.tensor as pt

from pymc_austerity._pymc import (
    CAReduce,
    CheckAndRaise,
    DimShuffle,
    Elemwise,
    Join,
    LogicalAnd,
    MakeVector,
    ScalarFromTensor,
    TensorFromScalar,
    Variable,
    join_arguments,
    rebuilt,
)
from pymc_austerity.model.predictors.facts import Facts

__all__ = ["checked_by_row"]


def checked_by_row(rows: Variable, facts: Facts) -> Variable:
    """Give a row -inf where it fails a check, so that no row depends on the checks of others.

    Parameters
    ----------
    rows : variable, shape (m,)
        Log-likelihoods of rows, which raise or are -inf all together where a check fails.
    facts : Facts
        Properties of the graph.
    """

    def by_row(node: Any, inputs: list[Variable]) -> list[Variable] | None:
        if not isinstance(node.op, CheckAndRaise):
            return None
        value = inputs[0]
        for old, new in zip(node.inputs[1:], inputs[1:], strict=True):
            for part, changed in zip(_parts(old), _parts(new), strict=True):
                met = _along(changed, facts.axis(part), node.inputs[0], facts)
                value = pt.switch(met, value, -float("inf")).astype(value.dtype)
        return [value]

    return rebuilt([rows], by_row)[0]


def _parts(condition: Variable) -> list[Variable]:
    """Conditions that must all be true, as arrays."""
    node = condition.owner
    if node is None:
        return [condition]
    op: Any = node.op
    if isinstance(op, ScalarFromTensor | TensorFromScalar | MakeVector):
        return [part for i in node.inputs for part in _parts(i)]
    if isinstance(op, Join):
        return [part for i in join_arguments(node)[1] for part in _parts(i)]
    if isinstance(op, DimShuffle) and condition.type.ndim <= 1:
        return _parts(node.inputs[0])
    is_all = isinstance(op, CAReduce) and isinstance(op.scalar_op, LogicalAnd)
    if is_all and condition.type.ndim == 0:
        return _parts(node.inputs[0])
    is_and = isinstance(op, Elemwise) and isinstance(op.scalar_op, LogicalAnd)
    if is_and and condition.type.ndim == 0:
        return [part for i in node.inputs for part in _parts(i)]
    return [condition]


def _along(condition: Variable, own: int | None, value: Variable, facts: Facts) -> Variable:
    """A condition per row, in the position of the rows of a value."""
    axis, tensor = facts.axis(value), pt.as_tensor(condition)
    others = [k for k in range(tensor.type.ndim) if k != own]
    met = pt.all(tensor, axis=others) if others else tensor
    if own is None or axis is None:
        return met
    return met.dimshuffle([0 if k == axis else "x" for k in range(value.type.ndim)])
