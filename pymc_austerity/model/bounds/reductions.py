"""Reductions over a short axis: sums of enclosures, and conditions that hold for all entries."""

from typing import Any

import numpy as np

from pymc_austerity.model.bounds.intervals import Interval, point
from pymc_austerity.model.bounds.jets import Jet

__all__ = ["reduce_axes"]


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


def _reduce(function: Any, x: Interval, axes: tuple[int, ...]) -> Interval:
    if x.is_point:
        return point(function(x.lower, axis=axes))
    return Interval(function(x.lower, axis=axes), function(x.upper, axis=axes))
