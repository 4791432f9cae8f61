"""Reductions over a short axis: sums of enclosures, and conditions that hold for all entries."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.model.bounds.intervals import Interval, point
from pymc_austerity.model.bounds.jets import Jet
from pymc_austerity.model.bounds.rules import Enclosed

__all__ = ["reduce_axes", "with_certain_total"]

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


def with_certain_total(node: Any, terms: Sequence[Enclosed], total: Enclosed) -> Enclosed:
    """The enclosure of a sum, which is constant where the terms are all shares of one.

    Probabilities of all categories add up to one, however they are written. They do where, at the
    centers of all rows that are enclosed together and whose terms vary enough to tell, these lie
    between 0 and 1, add up to 1, and their Taylor coefficients cancel to all orders: a single row
    that says otherwise is enough for the sum to be taken as it is.

    Parameters
    ----------
    node : Apply
        A sum over axes, or of several terms.
    terms : sequence of Enclosed
        What is added up: one array, or the terms.
    total : Enclosed
        Their sum.
    """
    zero = (0,) * len(next(iter(total.center)))
    varying = [m for m in total.center if m != zero]
    shares = [x.center for x in terms if len(x.center) > 1]
    if not varying or not shares:
        return total
    axes = getattr(node.op, "axis", ())
    values = [x[zero].lower for x in shares]
    outside = _over(axes, [(x < 0.0) | (x > 1.0) for x in values])
    is_one = (outside == 0) & (abs(_over(axes, values) - 1.0) < _CANCELS)
    tells: Any = True
    for order in sorted({sum(m) for m in varying}):
        terms_of_order = 0.0
        for m in (m for m in varying if sum(m) == order):
            size = _over(axes, [abs(x[m].lower) for x in shares if m in x])
            is_one = is_one & (abs(total.center[m].lower) <= _CANCELS * size)
            terms_of_order = terms_of_order + size
        tells = tells & (terms_of_order > _TERMS)
        if not (is_one & tells).any():
            return total
    if (tells & ~is_one).any():
        return total
    is_one = is_one & tells
    certain = {m: x.lower if m == zero else 0.0 for m, x in total.center.items()}
    box = {
        m: Interval(*(np.where(is_one & ~np.isnan(end), certain.get(m, 0.0), end) for end in x))
        for m, x in total.box.items()
    }
    return Enclosed(total.center, box)


def _over(axes: Any, terms: Sequence[NDArray]) -> Any:
    """Sum of one array over axes, or of several terms."""
    if axes == ():
        return sum(terms[1:], start=0.0 + terms[0])
    return np.sum(terms[0], axis=None if axes is None else tuple(axes))


def _reduce(function: Any, x: Interval, axes: Any) -> Interval:
    if x.is_point:
        return point(function(x.lower, axis=axes))
    return Interval(function(x.lower, axis=axes), function(x.upper, axis=axes))
