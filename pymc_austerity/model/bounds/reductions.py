"""Reductions over a short axis: sums of enclosures, and conditions that hold for all entries."""

from typing import Any

import numpy as np

from pymc_austerity.model.bounds.intervals import Interval, point
from pymc_austerity.model.bounds.jets import Jet
from pymc_austerity.model.bounds.rules import Enclosed

__all__ = ["reduce_axes", "without_what_cancels"]

_CANCELS = 1e-6
"""Share of the terms below which their sum is zero but for rounding."""
_TERMS = 1e-8
"""Size of terms that are large enough to tell."""


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


def without_what_cancels(op: Any, terms: Enclosed, total: Enclosed) -> Enclosed:
    """The enclosure of a sum, which is constant where its terms cancel to all orders.

    Probabilities of all categories add up to one, however they are written. Where Taylor
    coefficients of the terms at the center are not zero, and those of the sum are, the sum is one
    number. As with choices between formulas, functions with the same coefficients are the same.
    """
    zero = (0,) * len(next(iter(total.center)))
    varying = [m for m in total.center if m != zero]
    axes = None if op.axis is None else tuple(op.axis)
    sizes = {m: np.sum(abs(terms.center[m].lower), axis=axes) for m in varying}
    is_constant = np.asarray(bool(varying))
    for m in varying:
        is_constant = is_constant & (abs(total.center[m].lower) <= _CANCELS * sizes[m])
    for order in {sum(m) for m in varying}:
        of_order = sum(size for m, size in sizes.items() if sum(m) == order)
        is_constant = is_constant & (of_order > _TERMS)
    if not is_constant.any():
        return total
    values = {m: total.center[zero].lower if m == zero else 0.0 for m in total.box}
    box = {
        m: Interval(*(np.where(is_constant & ~np.isnan(end), values[m], end) for end in x))
        for m, x in total.box.items()
    }
    return Enclosed(total.center, box)


def _reduce(function: Any, x: Interval, axes: Any) -> Interval:
    if x.is_point:
        return point(function(x.lower, axis=axes))
    return Interval(function(x.lower, axis=axes), function(x.upper, axis=axes))
