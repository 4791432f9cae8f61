"""Operations applied to scalars, simplified where a number is known."""

import math
from collections.abc import Callable, Iterable

from pymc_austerity.model.kernel import functions
from pymc_austerity.model.kernel.refusal import NoKernelError
from pymc_austerity.model.kernel.scalar import Kind, Scalar, constant, operation
from pymc_austerity.model.kernel.tables import definitions
from pymc_austerity.model.operations.table import OPERATIONS, Operation

__all__ = ["apply", "cast", "imports"]


def imports(scalars: Iterable[Scalar]) -> str:
    """Lines that import what operations are written with, and define the tables they read."""
    scalars = list(scalars)
    names = {scalar.name for scalar in scalars}
    codes = [OPERATIONS[name].code or "" for name in names if name in OPERATIONS]
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
    if name == "Cast":
        return cast(arguments[0], kind)
    if name not in OPERATIONS or OPERATIONS[name].code is None:
        raise NoKernelError(f"the operation {name} has no rule")
    if kind == "b":
        name = OPERATIONS[name].of_booleans or name
    if name in {"AND", "OR", "XOR", "Invert"} and any(a.kind == "i" for a in arguments):
        raise NoKernelError(f"{name} of integers has no rule")
    if OPERATIONS[name].takes_real:
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
    neutral = OPERATIONS[name].neutral
    if neutral is not None:
        arguments = [a for a in arguments if not _is(a, neutral)] or arguments[:1]
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
    limit = arguments[1].value
    operand = OPERATIONS.get(arguments[0].name, Operation())
    if name == "GE":
        return operand.lowest is not None and limit <= operand.lowest
    return operand.highest is not None and limit >= operand.highest


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
