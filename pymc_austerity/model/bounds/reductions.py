"""Reductions over a short axis: sums of enclosures, and conditions that hold for all entries."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.model.operations.enclosures import Enclosed
from pymc_austerity.model.operations.intervals import Interval, point
from pymc_austerity.model.operations.jets import Jet

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


def with_certain_total(
    node: Any,
    terms: Sequence[Enclosed],
    total: Enclosed,
    elsewhere: Callable[[], Iterable[Sequence[NDArray]]],
) -> Enclosed:
    """The enclosure of a sum, which is constant where the terms are all shares of one.

    Probabilities of all categories add up to one, however they are written. Those of a row do
    where, at its center, they lie between 0 and 1, add up to 1, vary enough to tell, and have
    Taylor coefficients that cancel to all orders; and where they add up to 1 at random predictors
    as well. Another analytic function does so with probability zero, and a function that is not
    analytic in a cell has no enclosure there.

    Parameters
    ----------
    node : Apply
        A sum over axes, or of several terms.
    terms : sequence of Enclosed
        What is added up: one array, or the terms.
    total : Enclosed
        Their sum.
    elsewhere : callable
        Makes the values of the terms at random predictors, with the data of the same rows.
    """
    zero = (0,) * len(next(iter(total.center)))
    varying = [m for m in total.center if m != zero]
    which = [j for j, x in enumerate(terms) if len(x.center) > 1]
    shares = [terms[j].center for j in which]
    if not varying or not shares:
        return total
    axes = getattr(node.op, "axis", ())
    values = [x[zero].lower for x in shares]
    outside = _over(axes, [(x < 0.0) | (x > 1.0) for x in values])
    is_one = (outside == 0) & (abs(_over(axes, values) - 1.0) < _CANCELS)
    for order in sorted({sum(m) for m in varying}):
        terms_of_order = 0.0
        for m in (m for m in varying if sum(m) == order):
            size = _over(axes, [abs(x[m].lower) for x in shares if m in x])
            is_one = is_one & (abs(total.center[m].lower) <= _CANCELS * size)
            terms_of_order = terms_of_order + size
        is_one = is_one & (terms_of_order > _TERMS)
        if not is_one.any():
            return total
    is_one = is_one & _adds_up(axes, [[values[j] for j in which] for values in elsewhere()])
    certain = {m: x.lower if m == zero else 0.0 for m, x in total.center.items()}
    box = {
        m: Interval(*(np.where(is_one & ~np.isnan(end), certain.get(m, 0.0), end) for end in x))
        for m, x in total.box.items()
    }
    return Enclosed(total.center, box)


def _adds_up(axes: Any, points: Sequence[Sequence[NDArray]]) -> Any:
    """Whether terms add up to one at all points where they are finite, of which there is one."""
    n_finite: Any = 0
    adds_up: Any = True
    for values in points:
        sizes = _over(axes, [abs(x) for x in values])
        is_finite = np.isfinite(sizes)
        error = abs(_over(axes, values) - 1.0)
        adds_up = adds_up & (~is_finite | (error <= _CANCELS * np.maximum(sizes, 1.0)))
        n_finite = n_finite + is_finite
    return adds_up & (n_finite > 0)


def _over(axes: Any, terms: Sequence[NDArray]) -> Any:
    """Sum of one array over axes, or of several terms."""
    if axes == ():
        return sum(terms[1:], start=0.0 + terms[0])
    return np.sum(terms[0], axis=None if axes is None else tuple(axes))


def _reduce(function: Any, x: Interval, axes: Any) -> Interval:
    if x.is_point:
        return point(function(x.lower, axis=axes))
    return Interval(function(x.lower, axis=axes), function(x.upper, axis=axes))
