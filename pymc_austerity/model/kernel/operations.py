"""One rule for every operation on scalars that likelihoods use: how it reads in Python.

The names are those of PyTensor's scalar operations.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pymc_austerity.model.kernel import functions
from pymc_austerity.model.kernel.refusal import NoKernelError
from pymc_austerity.model.kernel.scalar import Kind, Scalar, constant, operation
from pymc_austerity.model.kernel.tables import definitions

__all__ = ["OPERATIONS", "Operation", "apply", "imports"]


@dataclass(frozen=True)
class Operation:
    """How an operation is written.

    Attributes
    ----------
    code : str
        Python expression with ``{0}``, ``{1}`` for the names of its arguments; for an operation
        that joins any number of arguments, the operator between them.
    is_costly : bool
        Whether it is worth a branch to avoid it.
    joins : bool
        Whether `code` is an operator between any number of arguments.
    """

    code: str
    is_costly: bool = False
    joins: bool = False

    def written(self, arguments: list[str]) -> str:
        """The expression for these arguments."""
        if self.joins:
            return f" {self.code} ".join(arguments)
        return self.code.format(*arguments)


def _cheap(**codes: str) -> dict[str, Operation]:
    return {name: Operation(code) for name, code in codes.items()}


def _joining(**codes: str) -> dict[str, Operation]:
    return {name: Operation(code, joins=True) for name, code in codes.items()}


def _costly(**codes: str) -> dict[str, Operation]:
    return {name: Operation(code, is_costly=True) for name, code in codes.items()}


OPERATIONS: dict[str, Operation] = (
    _joining(Add="+", Mul="*", AND="&", OR="|", XOR="^")
    | _cheap(
        Sub="{0} - {1}",
        Neg="-{0}",
        TrueDiv="{0} / {1}",
        IntDiv="{0} // {1}",
        Mod="{0} % {1}",
        Reciprocal="1.0 / {0}",
        Sqr="{0} * {0}",
        Sqrt="math.sqrt({0})",
        Abs="abs({0})",
        Sign="({0} if {0} == 0.0 or {0} != {0} else math.copysign(1.0, {0}))",
        Floor="math.floor({0})",
        Ceil="math.ceil({0})",
        Identity="{0}",
        Second="{1}",
        Switch="choose({0}, {1}, {2})",
        LT="{0} < {1}",
        GT="{0} > {1}",
        LE="{0} <= {1}",
        GE="{0} >= {1}",
        EQ="{0} == {1}",
        NEQ="{0} != {1}",
        Invert="not {0}",
        IsNan="math.isnan({0})",
        IsInf="math.isinf({0})",
        Maximum="({0} if {0} >= {1} or {0} != {0} else {1})",
        Minimum="({0} if {0} <= {1} or {0} != {0} else {1})",
        Lookup="{0}[min(max({1}, -{0}.size), {0}.size - 1)]",
        Clip="({1} if {0} < {1} else ({2} if {0} > {2} else {0}))",
        to_float="1.0 * {0}",
        to_int="int({0})",
        to_bool="({0} != 0)",
    )
    | _costly(
        Exp="math.exp({0})",
        Log="math.log({0})",
        Log2="(math.log({0}) * 1.4426950408889634)",
        Log10="math.log10({0})",
        Log1p="math.log1p({0})",
        Expm1="math.expm1({0})",
        Pow="math.pow({0}, {1})",
        Softplus="(max({0}, 0.0) + math.log1p(math.exp(-abs({0}))))",
        Sigmoid="1.0 / (1.0 + math.exp(-{0}))",
        Log1mexp="log1mexp({0})",
        GammaLn="math.lgamma({0})",
        Erf="math.erf({0})",
        Erfc="math.erfc({0})",
        Erfcx="erfcx({0})",
        Sin="math.sin({0})",
        Cos="math.cos({0})",
        Tan="math.tan({0})",
        ArcTan="math.atan({0})",
        Sinh="math.sinh({0})",
        Cosh="math.cosh({0})",
        Tanh="math.tanh({0})",
    )
)
"""By name."""

_ALIASES = {"ScalarMaximum": "Maximum", "ScalarMinimum": "Minimum"}
_LOGICAL = {"Add": "OR", "Mul": "AND"}
_NEUTRAL = {"Add": 0, "Mul": 1, "AND": True, "OR": False}
_NEVER_NEGATIVE = {"Exp", "Sigmoid", "Softplus", "Sqr", "Abs", "Sqrt"}
_REAL = {name for name, operation in OPERATIONS.items() if operation.is_costly} | {
    "Sqrt", "Sign", "Maximum", "Minimum", "Clip", "Reciprocal", "TrueDiv", "IsNan", "IsInf",
}  # fmt: skip
"""Operations whose arguments are turned into real numbers."""


def imports(scalars: Iterable[Scalar]) -> str:
    """Lines that import what operations are written with, and define the tables they read."""
    scalars = list(scalars)
    names = {scalar.name for scalar in scalars}
    codes = [OPERATIONS[name].code for name in names if name in OPERATIONS]
    used = [name for name in functions.__all__ if any(f"{name}(" in code for code in codes)]
    lines = "".join(f"from pymc_austerity.model.kernel.functions import {f}\n" for f in used)
    return lines + definitions(scalars)


def apply(name: str, arguments: list[Scalar], kind: Kind) -> Scalar:
    """An operation on scalars, simplified where a number is known.

    Parameters
    ----------
    name : str
        Name of PyTensor's scalar operation.
    arguments : list of Scalar
    kind : {"b", "i", "f"}
        Of the result.

    Raises
    ------
    NoKernelError
        The operation has no rule.

    Examples
    --------
    >>> from pymc_austerity.model.kernel.scalar import constant
    >>> apply("Mul", [constant(2), constant(3)], "i").value
    6
    """
    name = _ALIASES.get(name, name)
    if name == "Cast":
        return cast(arguments[0], kind)
    if name not in OPERATIONS:
        raise NoKernelError(f"the operation {name} has no rule")
    if kind == "b":
        name = _LOGICAL.get(name, name)
    if name in {"AND", "OR", "XOR", "Invert"} and any(a.kind == "i" for a in arguments):
        raise NoKernelError(f"{name} of integers has no rule")
    if name in _REAL:
        real = [cast(a, "f") for a in arguments]
        if kind != "b":
            return cast(_simplified(name, real, "f"), kind)
        return _simplified(name, real, kind)
    return _simplified(name, arguments, kind)


def cast(scalar: Scalar, kind: Kind) -> Scalar:
    """The same number as another kind."""
    if scalar.kind == kind:
        return scalar
    convert: dict[str, Callable] = {"f": float, "i": int, "b": bool}
    if scalar.is_constant:
        return constant(convert[kind](scalar.value))
    return operation({"f": "to_float", "i": "to_int", "b": "to_bool"}[kind], [scalar], kind)


def _simplified(name: str, arguments: list[Scalar], kind: Kind) -> Scalar:
    if name in _NEUTRAL:
        arguments = [a for a in arguments if not _is(a, _NEUTRAL[name])] or arguments[:1]
        if len(arguments) == 1:
            return cast(arguments[0], kind)
    if name == "AND" and any(_is(a, False) for a in arguments):
        return constant(False)
    if name in {"Identity", "Second"}:
        return cast(arguments[-1], kind)
    if name == "Switch":
        return _chosen(arguments, kind)
    if name == "Mul" and any(_is_mask(a) for a in arguments):
        return _masked(arguments, kind)
    if _is_sure(name, arguments):
        return constant(True)
    if all(a.is_constant for a in arguments) and not OPERATIONS[name].is_costly:
        return constant(_computed(name, arguments))
    return operation(name, arguments, kind)


def _is_mask(scalar: Scalar) -> bool:
    """Whether it is a switch between zero and something else."""
    return scalar.name == "Switch" and any(_is(a, 0) for a in scalar.arguments[1:])


def _masked(arguments: list[Scalar], kind: Kind) -> Scalar:
    """A product with a mask, zero where the mask is whatever the other factors are.

    PyTensor rewrites such products alike: masks stand beside data that are missing.
    """
    position = next(k for k, a in enumerate(arguments) if _is_mask(a))
    mask, others = arguments[position], arguments[:position] + arguments[position + 1 :]
    condition, *branches = mask.arguments
    products = [cast(a if _is(a, 0) else apply("Mul", [*others, a], kind), kind) for a in branches]
    return _chosen([condition, *products], kind)


def _is_sure(name: str, arguments: list[Scalar]) -> bool:
    """Whether a bound holds for all real numbers; a NaN makes the log-density NaN anyway."""
    if name not in {"GE", "LE"} or not arguments[1].is_constant:
        return False
    operand, bound = arguments[0], arguments[1].value
    if name == "GE":
        return operand.name in _NEVER_NEGATIVE and bound <= 0
    return operand.name == "Sigmoid" and bound >= 1


def _is(scalar: Scalar, value: float) -> bool:
    return scalar.is_constant and scalar.value == value


def _chosen(arguments: list[Scalar], kind: Kind) -> Scalar:
    """A switch; where both branches apply one function to one thing, the things are switched."""
    condition, yes, no = arguments
    condition, yes, no = cast(condition, "b"), cast(yes, kind), cast(no, kind)
    if yes is no:
        return yes
    if condition.is_constant:
        return yes if condition.value else no
    is_same = yes.name == no.name and yes.arguments and len(yes.arguments) == len(no.arguments)
    if is_same and all(a.kind == b.kind for a, b in zip(yes.arguments, no.arguments, strict=True)):
        differ = [a is not b for a, b in zip(yes.arguments, no.arguments, strict=True)]
        if sum(differ) == 1 and yes.name != "Switch":
            pairs = zip(yes.arguments, no.arguments, strict=True)
            inner = [a if a is b else _chosen([condition, a, b], a.kind) for a, b in pairs]
            return operation(yes.name, inner, kind)
    return operation("Switch", [condition, yes, no], kind)


def _computed(name: str, arguments: list[Scalar]) -> object:
    names = {f"x{k}": a.value for k, a in enumerate(arguments)}
    known = {f: getattr(functions, f).py_func for f in functions.__all__}
    return eval(OPERATIONS[name].written(list(names)), {"math": math} | known, names)
