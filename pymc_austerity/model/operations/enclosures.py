"""How scalar operations enclose their result, from enclosures of their arguments."""

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.model.operations import functions, jets
from pymc_austerity.model.operations.jets import Interval, Jet, point
from pymc_austerity.model.operations.normal_probability import log_normal_probability_jet

_SAME = 1e-9
"""Difference of Taylor coefficients, as a share of the largest one, up to which two formulas are
the same function."""


class NoRuleError(Exception):
    """An operation has no rule."""


class Enclosed(NamedTuple):
    """The enclosure of one variable of the graph.

    Attributes
    ----------
    center : Jet
        Its Taylor coefficients at the center of the box.
    box : Jet
        Enclosures of its Taylor coefficients anywhere in the box.
    """

    center: Jet
    box: Jet


Rule = Callable[[list[Enclosed], int], Enclosed]


def values_of(jet: Jet) -> Interval:
    """Enclosure of the function itself."""
    return jet[(0,) * len(next(iter(jet)))]


def of_jets(rule: Callable[[list[Jet], int], Jet]) -> Rule:
    """Apply a rule for jets to centers and boxes alike."""

    def apply(inputs: list[Enclosed], order: int) -> Enclosed:
        centers, boxes = [x.center for x in inputs], [x.box for x in inputs]
        if all(x.center is x.box for x in inputs):
            return Enclosed(*2 * (rule(centers, order),))
        return Enclosed(rule(centers, order), rule(boxes, order))

    return apply


# -------------------------------------------------------------------------------- arithmetic


def of_function(derivatives: functions.Derivatives) -> Rule:
    """Rule of a function of one argument, from enclosures of its derivatives."""

    def rule(inputs: list[Jet], order: int) -> Jet:
        return jets.compose(inputs[0], derivatives(values_of(inputs[0]), order))

    return of_jets(rule)


def total(inputs: list[Jet], order: int) -> Jet:
    """Sum of all arguments."""
    return reduce(jets.jet_sum, inputs)


def difference(inputs: list[Jet], order: int) -> Jet:
    """The first argument less the second."""
    return jets.jet_sum(inputs[0], jets.negative(inputs[1]))


def product_of(inputs: list[Jet], order: int) -> Jet:
    """Product of all arguments; of one with itself, a power."""
    different = {id(x): x for x in inputs}
    factors = []
    for key, factor in different.items():
        times = sum(id(x) == key for x in inputs)
        derivatives = functions.power(times)
        factors.append(
            jets.compose(factor, derivatives(values_of(factor), order)) if times > 1 else factor
        )
    return reduce(lambda a, b: jets.cauchy_product(a, b, order), factors)


def reciprocal_of(inputs: list[Jet], order: int) -> Jet:
    """1 / x."""
    return jets.compose(inputs[0], functions.reciprocal(values_of(inputs[0]), order))


def quotient(inputs: list[Jet], order: int) -> Jet:
    """The first argument over the second."""
    return jets.cauchy_product(inputs[0], reciprocal_of(inputs[1:], order), order)


def power_of(inputs: list[Jet], order: int) -> Jet:
    """The first argument to the power of the second."""
    base, exponent = inputs
    if len(exponent) == 1 and np.array_equal(*values_of(exponent)):
        given = np.unique(values_of(exponent).lower)
        if given.size == 1:
            fixed = functions.power(float(given[0]))
            return jets.compose(base, fixed(values_of(base), order))
    logarithm = jets.compose(base, functions.log(values_of(base), order))
    inner = jets.cauchy_product(exponent, logarithm, order)
    return jets.compose(inner, functions.exp(values_of(inner), order))


def log_normal_probability(inputs: list[Jet], order: int) -> Jet:
    """Of an interval with a center and a width."""
    center, width = inputs
    return log_normal_probability_jet(center, width, order)


# -------------------------------------------------------------------------------- conditions


def _as_condition(certain: NDArray, possible: NDArray, like: Jet) -> Jet:
    zero = (0,) * len(next(iter(like)))
    return {zero: Interval(certain.astype(float), possible.astype(float))}


def _comparison(rule: Callable[[Interval, Interval], tuple[Any, Any]]) -> Rule:
    """Truth values from certainly and possibly true; NaN makes a condition possible only."""

    def apply(inputs: list[Jet], order: int) -> Jet:
        a, b = map(values_of, inputs)
        certain, impossible = rule(a, b)
        return _as_condition(np.asarray(certain), ~np.asarray(impossible), inputs[0])

    return of_jets(apply)


def _is_equal(a: Interval, b: Interval) -> tuple[Any, Any]:
    certain = (a.lower == a.upper) & (b.lower == b.upper) & (a.lower == b.lower)
    return certain, (a.upper < b.lower) | (a.lower > b.upper)


def is_infinite(inputs: list[Jet], order: int) -> Jet:
    """Whether a number is infinite or NaN, which is possible where an end is."""
    x = values_of(inputs[0])
    finite = np.isfinite(x.lower) & np.isfinite(x.upper)
    return _as_condition(np.zeros_like(finite), ~finite, inputs[0])


def negation(inputs: list[Jet], order: int) -> Jet:
    """Whether a condition does not hold."""
    yes, no = _truth(values_of(inputs[0]))
    return _as_condition(no, ~yes, inputs[0])


def _and(a: Interval, b: Interval) -> tuple[Any, Any]:
    (yes, no), (also, neither) = _truth(a), _truth(b)
    return yes & also, no | neither


def _or(a: Interval, b: Interval) -> tuple[Any, Any]:
    (yes, no), (also, neither) = _truth(a), _truth(b)
    return yes | also, no & neither


# -------------------------------------------------------------------------------- choices


def _truth(condition: Interval) -> tuple[NDArray, NDArray]:
    """Where a condition certainly holds, and where it certainly does not."""
    yes = (condition.lower > 0.0) | (condition.upper < 0.0)
    return yes, (condition.lower == 0.0) & (condition.upper == 0.0)


def _entry(jet: Jet, m: jets.MultiIndex) -> Interval:
    return jet.get(m) or point(np.zeros(()))


def _agree(a: Jet, b: Jet) -> NDArray:
    """Whether two formulas have the same Taylor coefficients, and so are the same function."""
    pairs = [(_entry(a, m).lower, _entry(b, m).lower) for m in a.keys() | b.keys()]
    largest = reduce(np.maximum, [abs(x) for pair in pairs for x in pair])
    return reduce(np.logical_and, [abs(x - y) <= _SAME * largest for x, y in pairs])


def _intersection(x: Interval, y: Interval) -> Interval:
    """What both allow for; NaN where they contradict each other by more than rounding."""
    lower, upper = np.fmax(x.lower, y.lower), np.fmin(x.upper, y.upper)
    apart = lower - upper
    is_rounding = apart <= _SAME * (abs(lower) + abs(upper))
    ends = np.fmin(lower, upper), np.fmax(lower, upper)
    return Interval(*(np.where((apart > 0.0) & ~is_rounding, np.nan, end) for end in ends))


def _pick(yes: NDArray, no: NDArray, same: NDArray, a: Jet, b: Jet) -> Jet:
    """One of two functions, either where they are the same, and NaN where neither is certain."""
    picked = {}
    for m in a.keys() | b.keys():
        x, y = _entry(a, m), _entry(b, m)
        both = _intersection(x, y) if np.any(same) else point(np.asarray(np.nan))
        ends = [
            np.where(yes, p, np.where(no, q, np.where(same, r, np.nan)))
            for p, q, r in zip(x, y, both, strict=True)
        ]
        picked[m] = point(ends[0]) if x.is_point and y.is_point else Interval(*ends)
    return picked


def switch(inputs: list[Enclosed], order: int) -> Enclosed:
    """Choice by a condition that need not be the same all over the box.

    Formulas for different ranges of one smooth function have the same Taylor coefficients: either
    may be used. Otherwise a kink or step may lie in the box.
    """
    condition, a, b = inputs
    here, anywhere = values_of(condition.center), values_of(condition.box)
    yes, no = _truth(here)
    center = _pick(yes, no, np.asarray(False), a.center, b.center)
    if all(x.center is x.box for x in inputs):
        return Enclosed(center, center)
    yes, no = _truth(anywhere)
    return Enclosed(center, _pick(yes, no, _agree(a.center, b.center), a.box, b.box))


greater_equal = _comparison(lambda a, b: (a.lower >= b.upper, a.upper < b.lower))
greater = _comparison(lambda a, b: (a.lower > b.upper, a.upper <= b.lower))
less_equal = _comparison(lambda a, b: (a.upper <= b.lower, a.lower > b.upper))
less = _comparison(lambda a, b: (a.upper < b.lower, a.lower >= b.upper))
equal = _comparison(_is_equal)
not_equal = _comparison(lambda a, b: _is_equal(a, b)[::-1])
both = _comparison(_and)
either = _comparison(_or)


def first(inputs: list[Enclosed], order: int) -> Enclosed:
    """The first argument."""
    return inputs[0]


def second(inputs: list[Enclosed], order: int) -> Enclosed:
    """The second argument."""
    return inputs[1]


def maximum(inputs: list[Enclosed], order: int) -> Enclosed:
    """The largest argument."""

    def larger(a: Enclosed, b: Enclosed) -> Enclosed:
        return switch([greater_equal([a, b], order), a, b], order)

    return reduce(larger, inputs)


negate = of_jets(lambda inputs, order: jets.negative(inputs[0]))


def minimum(inputs: list[Enclosed], order: int) -> Enclosed:
    """The smallest argument."""
    return negate([maximum([negate([x], order) for x in inputs], order)], order)


def clip(inputs: list[Enclosed], order: int) -> Enclosed:
    """The first argument within the others."""
    x, lower, upper = inputs
    return minimum([maximum([x, lower], order), upper], order)


def absolute(inputs: list[Enclosed], order: int) -> Enclosed:
    """The larger one of x and -x."""
    return maximum([inputs[0], negate(inputs, order)], order)


def step_function(f: Callable[[NDArray], NDArray]) -> Rule:
    """Piecewise constant: known where the box lies in one piece."""

    def rule(inputs: list[Jet], order: int) -> Jet:
        x = values_of(inputs[0])
        a, b = f(x.lower), f(x.upper)
        zero = (0,) * len(next(iter(inputs[0])))
        return {zero: point(np.where(a == b, a, np.nan))}

    return of_jets(rule)
