"""Derivatives of a formula by everything it depends on, as formulas, in the reverse mode."""

import math
from collections.abc import Callable, Sequence

from pymc_austerity.model.kernel.operations import apply
from pymc_austerity.model.kernel.refusal import NoKernelError
from pymc_austerity.model.kernel.scalar import Scalar, constant, walk

__all__ = ["derivatives"]

_Rule = Callable[..., list[Scalar]]
"""From the result of an operation and its arguments to the derivatives by the arguments."""

_ZERO, _ONE = constant(0.0), constant(1.0)


def _do(name: str, *arguments: Scalar | float) -> Scalar:
    scalars = [a if isinstance(a, Scalar) else constant(float(a)) for a in arguments]
    return apply(name, scalars, "f")


def _of_product(y: Scalar, *factors: Scalar) -> list[Scalar]:
    every = range(len(factors))
    return [_do("Mul", _ONE, *(factors[j] for j in every if j != i)) for i in every]


def _of_power(y: Scalar, base: Scalar, exponent: Scalar) -> list[Scalar]:
    by_base = _do("Mul", exponent, _do("Pow", base, _do("Sub", exponent, 1.0)))
    if exponent.is_constant:
        return [by_base, _ZERO]
    return [by_base, _do("Mul", y, _do("Log", base))]


def _of_larger(y: Scalar, first: Scalar, second: Scalar) -> list[Scalar]:
    is_first = apply("GE", [first, second], "b")
    return [_do("Switch", is_first, 1.0, 0.0), _do("Switch", is_first, 0.0, 1.0)]


def _of_error(sign: float) -> _Rule:
    factor = sign * 2.0 / math.sqrt(math.pi)
    return lambda y, x: [_do("Mul", factor, _do("Exp", _do("Neg", _do("Sqr", x))))]


_RULES: dict[str, _Rule] = {
    "Add": lambda y, *terms: [_ONE] * len(terms),
    "Mul": _of_product,
    "Sub": lambda y, a, b: [_ONE, constant(-1.0)],
    "Neg": lambda y, x: [constant(-1.0)],
    "TrueDiv": lambda y, a, b: [_do("Reciprocal", b), _do("Neg", _do("TrueDiv", y, b))],
    "Reciprocal": lambda y, x: [_do("Neg", _do("Sqr", y))],
    "Sqr": lambda y, x: [_do("Mul", 2.0, x)],
    "Sqrt": lambda y, x: [_do("TrueDiv", 0.5, y)],
    "Abs": lambda y, x: [_do("Sign", x)],
    "Identity": lambda y, x: [_ONE],
    "Second": lambda y, a, b: [_ZERO, _ONE],
    "to_float": lambda y, x: [_ONE],
    "Switch": lambda y, c, a, b: [_ZERO, _do("Switch", c, 1.0, 0.0), _do("Switch", c, 0.0, 1.0)],
    "Maximum": _of_larger,
    "Minimum": lambda y, a, b: _of_larger(y, a, b)[::-1],
    "Exp": lambda y, x: [y],
    "Log": lambda y, x: [_do("Reciprocal", x)],
    "Log1p": lambda y, x: [_do("Reciprocal", _do("Add", 1.0, x))],
    "Expm1": lambda y, x: [_do("Add", y, 1.0)],
    "Pow": _of_power,
    "Softplus": lambda y, x: [_do("Sigmoid", x)],
    "Sigmoid": lambda y, x: [_do("Mul", y, _do("Sub", 1.0, y))],
    "Log1mexp": lambda y, x: [_do("Neg", _do("Reciprocal", _do("Expm1", _do("Neg", x))))],
    "Erf": _of_error(1.0),
    "Erfc": _of_error(-1.0),
    "Erfcx": lambda y, x: [_do("Sub", _do("Mul", 2.0, x, y), 2.0 / math.sqrt(math.pi))],
    "Sin": lambda y, x: [_do("Cos", x)],
    "Cos": lambda y, x: [_do("Neg", _do("Sin", x))],
    "ArcTan": lambda y, x: [_do("Reciprocal", _do("Add", 1.0, _do("Sqr", x)))],
    "Tanh": lambda y, x: [_do("Sub", 1.0, _do("Sqr", y))],
}
_FLAT = {"Sign", "Floor", "Ceil"}


def derivatives(root: Scalar, places: Sequence[Scalar]) -> list[Scalar]:
    """Derivatives of a formula by some of its scalars.

    Parameters
    ----------
    root : Scalar
        A real number.
    places : sequence of Scalar
        What to derive by.

    Raises
    ------
    NoKernelError
        An operation has no rule.

    Examples
    --------
    >>> from pymc_austerity.model.kernel.scalar import given
    >>> x = given("x", "f", 4)
    >>> (slope,) = derivatives(_do("Exp", x), [x])
    >>> slope is _do("Exp", x)
    True
    """
    order = walk([root])
    wanted = set(places)
    varying = set(wanted)
    for scalar in order:
        if any(a in varying for a in scalar.arguments):
            varying.add(scalar)
    sums: dict[Scalar, list[Scalar]] = {root: [_ONE]}
    for scalar in reversed(order):
        if scalar not in varying or scalar in wanted or scalar not in sums or scalar.kind != "f":
            continue
        if scalar.name in _FLAT:
            continue
        if scalar.name not in _RULES:
            raise NoKernelError(f"the derivative of {scalar.name} has no rule")
        own = _sum(sums.pop(scalar))
        slopes = _RULES[scalar.name](scalar, *scalar.arguments)
        for argument, slope in zip(scalar.arguments, slopes, strict=True):
            if argument in varying and not (slope.is_constant and slope.value == 0.0):
                sums.setdefault(argument, []).append(_do("Mul", own, slope))
    return [_sum(sums.get(place, [_ZERO])) for place in places]


def _sum(terms: list[Scalar]) -> Scalar:
    return _do("Add", *terms) if len(terms) > 1 else terms[0]
