"""One rule for each scalar operation: enclosures of its result from those of its inputs."""

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.model.bounds import functions, jets
from pymc_austerity.model.bounds.intervals import Interval, point
from pymc_austerity.model.bounds.jets import Jet
from pymc_austerity.model.bounds.normal_probability import log_normal_probability_jet

__all__ = ["RULES", "Enclosed", "NoRuleError", "values_of"]

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


def _for_each(rule: Callable[[list[Jet], int], Jet]) -> Rule:
    """Apply a rule for jets to centers and boxes alike."""

    def apply(inputs: list[Enclosed], order: int) -> Enclosed:
        centers, boxes = [x.center for x in inputs], [x.box for x in inputs]
        if all(x.center is x.box for x in inputs):
            return Enclosed(*2 * (rule(centers, order),))
        return Enclosed(rule(centers, order), rule(boxes, order))

    return apply


# -------------------------------------------------------------------------------- arithmetic


def _function(derivatives: functions.Derivatives) -> Rule:
    def rule(inputs: list[Jet], order: int) -> Jet:
        return jets.compose(inputs[0], derivatives(values_of(inputs[0]), order))

    return _for_each(rule)


def _sum(inputs: list[Jet], order: int) -> Jet:
    return reduce(jets.add, inputs)


def _difference(inputs: list[Jet], order: int) -> Jet:
    return jets.add(inputs[0], jets.negate(inputs[1]))


def _product(inputs: list[Jet], order: int) -> Jet:
    different = {id(x): x for x in inputs}
    factors = []
    for key, factor in different.items():
        times = sum(id(x) == key for x in inputs)
        power = functions.power(times)
        factors.append(
            jets.compose(factor, power(values_of(factor), order)) if times > 1 else factor
        )
    return reduce(lambda a, b: jets.multiply(a, b, order), factors)


def _reciprocal(inputs: list[Jet], order: int) -> Jet:
    return jets.compose(inputs[0], functions.reciprocal(values_of(inputs[0]), order))


def _quotient(inputs: list[Jet], order: int) -> Jet:
    return jets.multiply(inputs[0], _reciprocal(inputs[1:], order), order)


def _power(inputs: list[Jet], order: int) -> Jet:
    base, exponent = inputs
    if len(exponent) == 1 and np.array_equal(*values_of(exponent)):
        given = np.unique(values_of(exponent).lower)
        if given.size == 1:
            power = functions.power(float(given[0]))
            return jets.compose(base, power(values_of(base), order))
    logarithm = jets.compose(base, functions.log(values_of(base), order))
    inner = jets.multiply(exponent, logarithm, order)
    return jets.compose(inner, functions.exp(values_of(inner), order))


def _log_normal_probability(inputs: list[Jet], order: int) -> Jet:
    center, width = inputs
    return log_normal_probability_jet(center, width, order)


# -------------------------------------------------------------------------------- conditions


def _as_condition(certain: NDArray, possible: NDArray, like: Jet) -> Jet:
    zero = (0,) * len(next(iter(like)))
    return {zero: Interval(certain.astype(float), possible.astype(float))}


def _compare(rule: Callable[[Interval, Interval], tuple[Any, Any]]) -> Rule:
    """Truth values from certainly and possibly true; NaN makes a condition possible only."""

    def apply(inputs: list[Jet], order: int) -> Jet:
        a, b = map(values_of, inputs)
        certain, impossible = rule(a, b)
        return _as_condition(np.asarray(certain), ~np.asarray(impossible), inputs[0])

    return _for_each(apply)


def _is_equal(a: Interval, b: Interval) -> tuple[Any, Any]:
    certain = (a.lower == a.upper) & (b.lower == b.upper) & (a.lower == b.lower)
    return certain, (a.upper < b.lower) | (a.lower > b.upper)


def _is_infinite(inputs: list[Jet], order: int) -> Jet:
    x = values_of(inputs[0])
    finite = np.isfinite(x.lower) & np.isfinite(x.upper)
    return _as_condition(np.zeros_like(finite), ~finite, inputs[0])


def _not(inputs: list[Jet], order: int) -> Jet:
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
        both = _intersection(x, y)
        ends = [
            np.where(yes, p, np.where(no, q, np.where(same, r, np.nan)))
            for p, q, r in zip(x, y, both, strict=True)
        ]
        picked[m] = point(ends[0]) if x.is_point and y.is_point else Interval(*ends)
    return picked


def _switch(inputs: list[Enclosed], order: int) -> Enclosed:
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


_GREATER_EQUAL = _compare(lambda a, b: (a.lower >= b.upper, a.upper < b.lower))


def _maximum(inputs: list[Enclosed], order: int) -> Enclosed:
    def larger(a: Enclosed, b: Enclosed) -> Enclosed:
        return _switch([_GREATER_EQUAL([a, b], order), a, b], order)

    return reduce(larger, inputs)


_negate = _for_each(lambda inputs, order: jets.negate(inputs[0]))


def _minimum(inputs: list[Enclosed], order: int) -> Enclosed:
    return _negate([_maximum([_negate([x], order) for x in inputs], order)], order)


def _clip(inputs: list[Enclosed], order: int) -> Enclosed:
    x, lower, upper = inputs
    return _minimum([_maximum([x, lower], order), upper], order)


def _absolute(inputs: list[Enclosed], order: int) -> Enclosed:
    return _maximum([inputs[0], _negate(inputs, order)], order)


def _step_function(f: Callable[[NDArray], NDArray]) -> Rule:
    """Piecewise constant: known where the box lies in one piece."""

    def rule(inputs: list[Jet], order: int) -> Jet:
        x = values_of(inputs[0])
        a, b = f(x.lower), f(x.upper)
        zero = (0,) * len(next(iter(inputs[0])))
        return {zero: point(np.where(a == b, a, np.nan))}

    return _for_each(rule)


RULES: dict[str, Rule] = {
    "Abs": _absolute,
    "Add": _for_each(_sum),
    "AND": _compare(_and),
    "Cast": lambda inputs, order: inputs[0],
    "Ceil": _step_function(np.ceil),
    "Clip": _clip,
    "Cos": _function(functions.cos),
    "EQ": _compare(_is_equal),
    "Erf": _function(functions.erf),
    "Erfc": _function(functions.erfc),
    "Erfcx": _function(functions.erfcx),
    "Exp": _function(functions.exp),
    "Expm1": _function(functions.expm1),
    "Floor": _step_function(np.floor),
    "GammaLn": _function(functions.gammaln),
    "GE": _GREATER_EQUAL,
    "GT": _compare(lambda a, b: (a.lower > b.upper, a.upper <= b.lower)),
    "Identity": lambda inputs, order: inputs[0],
    "Invert": _for_each(_not),
    "IsInf": _for_each(_is_infinite),
    "IsNan": _for_each(_is_infinite),
    "LE": _compare(lambda a, b: (a.upper <= b.lower, a.lower > b.upper)),
    "Log": _function(functions.log),
    "Log1mexp": _function(functions.log1mexp),
    "Log1p": _function(functions.log1p),
    "Log1pOfSquare": _function(functions.log1p_of_square),
    "LogNormalProbability": _for_each(_log_normal_probability),
    "LT": _compare(lambda a, b: (a.upper < b.lower, a.lower >= b.upper)),
    "Mul": _for_each(_product),
    "Neg": _negate,
    "NEQ": _compare(lambda a, b: _is_equal(a, b)[::-1]),
    "OR": _compare(_or),
    "Pow": _for_each(_power),
    "Psi": _function(functions.psi),
    "Reciprocal": _for_each(_reciprocal),
    "ScalarMaximum": _maximum,
    "ScalarMinimum": _minimum,
    "Maximum": _maximum,
    "Minimum": _minimum,
    "Second": lambda inputs, order: inputs[1],
    "Sigmoid": _function(functions.sigmoid),
    "Sign": _step_function(np.sign),
    "Sin": _function(functions.sin),
    "Softplus": _function(functions.softplus),
    "Sqr": _function(functions.power(2)),
    "Sqrt": _function(functions.sqrt_),
    "Sub": _for_each(_difference),
    "Trunc": _step_function(np.trunc),
    "Switch": _switch,
    "Tanh": _function(functions.tanh),
    "TrueDiv": _for_each(_quotient),
}
"""Rules by the class name of PyTensor's scalar operation."""
