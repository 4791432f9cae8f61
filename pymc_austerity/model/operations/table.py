"""One row for each scalar operation: its code, derivative, and the bound of its derivatives.

The names are those of PyTensor's scalar operations.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log, pi, sqrt
from typing import Any

import numpy as np

from pymc_austerity.model.operations import enclosures as e
from pymc_austerity.model.operations.normal_probability import log_normal_probability_jet


@dataclass(frozen=True)
class Operation:
    """What is known of an operation; what is missing makes a model do without.

    Attributes
    ----------
    code : str or None
        Python expression with ``{0}``, ``{1}`` for the names of its arguments; for an operation
        that joins any number of arguments, the operator between them.
    slopes : callable or None
        ``slopes(do, y, *arguments)``: derivatives of the result y by each argument, as formulas or
        numbers; ``do(name, *arguments)`` applies another operation.
    bound : callable or None
        From enclosures of the arguments and an order to one of the result.
    is_costly : bool
        Whether it is worth a branch to avoid it.
    takes_real : bool
        Whether its arguments are turned into real numbers.
    is_condition : bool
        Whether the result is true or false.
    joins : bool
        Whether `code` is an operator between any number of arguments.
    neutral : number, optional
        Argument that changes nothing.
    of_booleans : str, optional
        Name of the operation that it is for booleans.
    lowest, highest : float, optional
        Bounds of the result.
    is_steep : bool
        Whether its bound depends above all on where the arguments may be.
    """

    code: str | None = None
    slopes: Callable[..., list] | None = None
    bound: Callable[[list[e.Enclosed], int], e.Enclosed] | None = None
    is_costly: bool = False
    takes_real: bool = False
    is_condition: bool = False
    joins: bool = False
    neutral: int | None = None
    of_booleans: str | None = None
    lowest: float | None = None
    highest: float | None = None
    is_steep: bool = False

    def written(self, arguments: list[str]) -> str:
        """The expression for these arguments."""
        assert self.code is not None
        if self.joins:
            return f" {self.code} ".join(arguments)
        return self.code.format(*arguments)


def _of_product(do: Callable, y: Any, *factors: Any) -> list:
    every = range(len(factors))
    return [do("Mul", 1.0, *(factors[j] for j in every if j != i)) for i in every]


def _of_power(do: Callable, y: Any, base: Any, exponent: Any) -> list:
    by_base = do("Mul", exponent, do("Pow", base, do("Sub", exponent, 1.0)))
    if exponent.is_constant:
        return [by_base, 0.0]
    return [by_base, do("Switch", do("EQ", base, 0.0), 0.0, do("Mul", y, do("Log", base)))]


def _of_larger(do: Callable, y: Any, first: Any, second: Any) -> list:
    is_first = do("GE", first, second)
    return [do("Switch", is_first, 1.0, 0.0), do("Switch", is_first, 0.0, 1.0)]


def _of_clipped(do: Callable, y: Any, x: Any, low: Any, high: Any) -> list:
    is_low, is_high = do("LT", x, low), do("GT", x, high)
    by_bounds = [do("Switch", is_beyond, 1.0, 0.0) for is_beyond in (is_low, is_high)]
    return [do("Switch", do("OR", is_low, is_high), 0.0, 1.0), *by_bounds]


def _of_logarithm(base: float) -> Callable[..., list]:
    return lambda do, y, x: [do("TrueDiv", 1.0 / log(base), x)]


def _of_error(sign: float) -> Callable[..., list]:
    factor = sign * 2.0 / sqrt(pi)
    return lambda do, y, x: [do("Mul", factor, do("Exp", do("Neg", do("Sqr", x))))]


_ARITHMETIC = {
    "Add": Operation(
        "+", lambda do, y, *terms: [1.0] * len(terms), e.total,
        joins=True, neutral=0, of_booleans="OR",
    ),
    "Mul": Operation("*", _of_product, e.product_of, joins=True, neutral=1, of_booleans="AND"),
    "Sub": Operation("{0} - {1}", lambda do, y, a, b: [1.0, -1.0], e.difference),
    "Neg": Operation("-{0}", lambda do, y, x: [-1.0], e.negate),
    "TrueDiv": Operation(
        "{0} / {1}", lambda do, y, a, b: [do("Reciprocal", b), do("Neg", do("TrueDiv", y, b))],
        e.quotient, takes_real=True, is_steep=True,
    ),
    "IntDiv": Operation("{0} // {1}"),
    "Mod": Operation("{0} % {1}"),
    "Reciprocal": Operation(
        "1.0 / {0}", lambda do, y, x: [do("Neg", do("Sqr", y))], e.of_function(e.reciprocal),
        takes_real=True, is_steep=True,
    ),
    "Sqr": Operation(
        "{0} * {0}", lambda do, y, x: [do("Mul", 2.0, x)], e.of_function(e.power(2)), lowest=0.0
    ),
    "Sqrt": Operation(
        "math.sqrt({0})", lambda do, y, x: [do("TrueDiv", 0.5, y)], e.of_function(e.sqrt_),
        takes_real=True, lowest=0.0, is_steep=True,
    ),
    "Abs": Operation("abs({0})", lambda do, y, x: [do("Sign", x)], e.absolute, lowest=0.0),
    "Sign": Operation(
        "({0} if {0} == 0.0 or {0} != {0} else math.copysign(1.0, {0}))",
        lambda do, y, x: [0.0], e.step_function(np.sign), takes_real=True,
    ),
    "Floor": Operation("math.floor({0})", lambda do, y, x: [0.0], e.step_function(np.floor)),
    "Ceil": Operation("math.ceil({0})", lambda do, y, x: [0.0], e.step_function(np.ceil)),
    "Trunc": Operation(bound=e.step_function(np.trunc)),
}  # fmt: skip

_CONDITIONS = {
    "LT": Operation("{0} < {1}", bound=e.less, is_condition=True, is_steep=True),
    "GT": Operation("{0} > {1}", bound=e.greater, is_condition=True, is_steep=True),
    "LE": Operation("{0} <= {1}", bound=e.less_equal, is_condition=True, is_steep=True),
    "GE": Operation("{0} >= {1}", bound=e.greater_equal, is_condition=True, is_steep=True),
    "EQ": Operation("{0} == {1}", bound=e.equal, is_condition=True),
    "NEQ": Operation("{0} != {1}", bound=e.not_equal, is_condition=True),
    "AND": Operation("&", bound=e.both, is_condition=True, joins=True, neutral=True),
    "OR": Operation("|", bound=e.either, is_condition=True, joins=True, neutral=False),
    "XOR": Operation("^", is_condition=True, joins=True),
    "Invert": Operation("not {0}", bound=e.negation, is_condition=True),
    "IsNan": Operation("math.isnan({0})", bound=e.is_infinite, takes_real=True, is_condition=True),
    "IsInf": Operation("math.isinf({0})", bound=e.is_infinite, takes_real=True, is_condition=True),
}

_CHOICES = {
    "Identity": Operation("{0}", lambda do, y, x: [1.0], e.first),
    "Cast": Operation(bound=e.first),
    "Second": Operation("{1}", lambda do, y, a, b: [0.0, 1.0], e.second),
    "Switch": Operation(
        "one_of_two({0}, {1}, {2})",
        lambda do, y, c, a, b: [0.0, do("Switch", c, 1.0, 0.0), do("Switch", c, 0.0, 1.0)],
        e.switch,
    ),
    "Maximum": Operation(
        "({0} if {0} >= {1} or {0} != {0} else {1})", _of_larger, e.maximum, takes_real=True
    ),
    "Minimum": Operation(
        "({0} if {0} <= {1} or {0} != {0} else {1})",
        lambda do, y, a, b: _of_larger(do, y, a, b)[::-1], e.minimum, takes_real=True,
    ),
    "Clip": Operation(
        "({1} if {0} < {1} else ({2} if {0} > {2} else {0}))", _of_clipped, e.clip, takes_real=True
    ),
    "Lookup": Operation("{0}[min(max({1}, -{0}.size), {0}.size - 1)]"),
    "to_float": Operation("1.0 * {0}", lambda do, y, x: [1.0]),
    "to_int": Operation("int({0})"),
    "to_bool": Operation("({0} != 0)"),
}  # fmt: skip


def _costly(
    code: str | None, slopes: Any = None, derivatives: Any = None, **more: Any
) -> Operation:
    """A function of real numbers; `derivatives` are enclosures of its own ones."""
    bound = None if derivatives is None else e.of_function(derivatives)
    return Operation(code, slopes, more.pop("bound", bound), True, True, **more)


_FUNCTIONS = {
    "Exp": _costly("math.exp({0})", lambda do, y, x: [y], e.exp, lowest=0.0),
    "Log": _costly("math.log({0})", lambda do, y, x: [do("Reciprocal", x)], e.log, is_steep=True),
    "Log2": _costly("(math.log({0}) * 1.4426950408889634)", _of_logarithm(2.0)),
    "Log10": _costly("math.log10({0})", _of_logarithm(10.0)),
    "Log1p": _costly(
        "math.log1p({0})", lambda do, y, x: [do("Reciprocal", do("Add", 1.0, x))], e.log1p
    ),
    "Log1pOfSquare": _costly(None, None, e.log1p_of_square),
    "Expm1": _costly("math.expm1({0})", lambda do, y, x: [do("Add", y, 1.0)], e.expm1),
    "Pow": _costly("math.pow({0}, {1})", _of_power, bound=e.power_of, is_steep=True),
    "Softplus": _costly(
        "(max({0}, 0.0) + math.log1p(math.exp(-abs({0}))))",
        lambda do, y, x: [do("Sigmoid", x)], e.softplus, lowest=0.0,
    ),
    "Sigmoid": _costly(
        "1.0 / (1.0 + math.exp(-{0}))", lambda do, y, x: [do("Mul", y, do("Sub", 1.0, y))],
        e.sigmoid, lowest=0.0, highest=1.0,
    ),
    "Log1mexp": _costly(
        "log_one_minus_exp({0})",
        lambda do, y, x: [do("Neg", do("Reciprocal", do("Expm1", do("Neg", x))))],
        e.log1mexp, is_steep=True,
    ),
    "Gamma": _costly("math.gamma({0})", lambda do, y, x: [do("Mul", y, do("Psi", x))], e.gamma),
    "GammaLn": _costly("math.lgamma({0})", lambda do, y, x: [do("Psi", x)], e.gammaln),
    "Psi": _costly("digamma({0})", lambda do, y, x: [do("TriGamma", x)], e.psi),
    "TriGamma": _costly("trigamma({0})"),
    "Erf": _costly("math.erf({0})", _of_error(1.0), e.erf),
    "Erfc": _costly("math.erfc({0})", _of_error(-1.0), e.erfc),
    "Erfcx": _costly(
        "scaled_erfc({0})",
        lambda do, y, x: [do("Sub", do("Mul", 2.0, x, y), 2.0 / sqrt(pi))], e.erfcx
    ),
    "LogNormalProbability": _costly(
        None, bound=e.of_jets(lambda x, n: log_normal_probability_jet(x[0], x[1], n)), is_steep=True
    ),
    "Sin": _costly("math.sin({0})", lambda do, y, x: [do("Cos", x)], e.sin),
    "Cos": _costly("math.cos({0})", lambda do, y, x: [do("Neg", do("Sin", x))], e.cos),
    "Tan": _costly("math.tan({0})", lambda do, y, x: [do("Add", 1.0, do("Sqr", y))]),
    "ArcTan": _costly(
        "math.atan({0})", lambda do, y, x: [do("Reciprocal", do("Add", 1.0, do("Sqr", x)))]
    ),
    "Sinh": _costly("math.sinh({0})", lambda do, y, x: [do("Cosh", x)]),
    "Cosh": _costly("math.cosh({0})", lambda do, y, x: [do("Sinh", x)]),
    "Tanh": _costly("math.tanh({0})", lambda do, y, x: [do("Sub", 1.0, do("Sqr", y))], e.tanh),
}  # fmt: skip

OPERATIONS: dict[str, Operation] = _ARITHMETIC | _CONDITIONS | _CHOICES | _FUNCTIONS
"""By name."""
