"""Reductions over a short axis: sums of enclosures, and conditions that hold for all entries."""

from functools import partial
from typing import Any

import numpy as np

from pymc_austerity._pymc import LogSoftmax
from pymc_austerity.model.bounds import jets
from pymc_austerity.model.bounds.functions import exp, log
from pymc_austerity.model.bounds.intervals import Interval, add, point
from pymc_austerity.model.bounds.jets import Jet, compose
from pymc_austerity.model.bounds.rules import Enclosed, values_of

__all__ = ["log_softmax", "reduce_axes"]


def reduce_axes(op: Any, jet: Jet) -> Jet:
    """Jet of a reduction.

    A check asks whether a condition holds for all entries, rows included. Here it is asked of
    each row by itself, so the axis of the rows is kept.

    Raises
    ------
    NotImplementedError
        The reduction is neither a sum nor a conjunction.
    """
    kind = type(op.scalar_op).__name__
    ndim = next(iter(jet.values())).lower.ndim
    axes = tuple(range(ndim)) if op.axis is None else tuple(op.axis)
    if kind == "Add" and (ndim == 0 or 0 not in axes):
        return {m: _reduce(np.sum, x, axes) for m, x in jet.items()}
    if kind == "AND":
        others = tuple(axis for axis in axes if axis != 0)
        return {m: _reduce(np.min, x, others) for m, x in jet.items()}
    raise NotImplementedError(kind)


def log_softmax(op: Any, x: Enclosed, order: int) -> Enclosed:
    """Log of a softmax over an axis, or the softmax itself, shifted by a constant of each row."""
    axis = (op.axis,) if isinstance(op.axis, int) else op.axis  # a tuple in PyTensor 3
    values = values_of(x.center).lower
    if axis is None or any(k % values.ndim == 0 for k in axis):
        raise NotImplementedError(type(op).__name__)
    shift = values.max(axis=axis, keepdims=True)

    def apply(jet: Jet) -> Jet:
        zero = (0,) * len(next(iter(jet)))
        shifted = {m: _broadcast_to(c, values_of(jet)) for m, c in jet.items()}
        shifted[zero] = add(jet[zero], point(-shift))
        powers = compose(shifted, exp(shifted[zero], order))
        total = {
            m: _reduce(partial(np.sum, keepdims=True), _broadcast_to(c, shifted[zero]), axis)
            for m, c in powers.items()
        }
        logs = jets.add(shifted, jets.negate(compose(total, log(total[zero], order))))
        return logs if isinstance(op, LogSoftmax) else compose(logs, exp(logs[zero], order))

    center = apply(x.center)
    return Enclosed(center, center if x.box is x.center else apply(x.box))


def _full(x: Interval, like: Interval) -> tuple[Any, Any]:
    shape = like.lower.shape
    return np.broadcast_to(x.lower, shape), np.broadcast_to(x.upper, shape)


def _broadcast_to(x: Interval, like: Interval) -> Interval:
    lower, upper = _full(x, like)
    return point(lower) if x.is_point else Interval(lower, upper)


def _reduce(function: Any, x: Interval, axes: Any) -> Interval:
    if x.is_point:
        return point(function(x.lower, axis=axes))
    return Interval(function(x.lower, axis=axes), function(x.upper, axis=axes))
