"""Formulas of scalars: simplified where a number is known, derived, and compared between points."""

import math
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

from pymc_austerity.model.kernel.generated import FUNCTIONS
from pymc_austerity.model.kernel.scalar import (
    Dependence,
    Kind,
    NoKernelError,
    Scalar,
    constant,
    given,
    operation,
    subterms,
)
from pymc_austerity.model.operations.table import OPERATIONS, Operation

_FEWEST = 17
"""Fewer numbers are compared with the position one by one."""


class _Table(str):
    """Name of a table, made of its numbers, with the code that defines it."""

    __slots__ = ("definition",)
    definition: str


def is_table(numbers: Sequence[Scalar], position: Scalar) -> bool:
    """Whether rows should read an array of numbers: long, known, by data of the row."""
    return (
        len(numbers) >= _FEWEST
        and position.sources == Dependence.DATA
        and all(n.is_constant and math.isfinite(n.value) for n in numbers)
    )


def looked_up(numbers: Sequence[Scalar], position: Scalar, kind: Kind) -> Scalar:
    r"""The number at a position, from the end if it is negative.

    Examples
    --------
    >>> from pymc_austerity.model.kernel.scalar import constant
    >>> group = given("leaf_0[i]", "i", Dependence.DATA)
    >>> found = looked_up([constant(float(n)) for n in range(20)], group, "f")
    >>> found.name, definitions([found.arguments[0]])[-13:]
    ('Lookup', '18.0, 19.0])\n')
    """
    values = [{"f": float, "i": int, "b": bool}[kind](n.value) for n in numbers]
    table = _Table(f"table_{blake2b(repr(values).encode(), digest_size=8).hexdigest()}")
    table.definition = f"{table} = np.array({values})\n"
    return operation("Lookup", [given(table, kind, Dependence.NOTHING), position], kind)


def definitions(scalars: Iterable[Scalar]) -> str:
    """Lines of a module that define the tables among some scalars."""
    tables = dict.fromkeys(s.value for s in scalars if isinstance(s.value, _Table))
    return "".join(table.definition for table in tables)


def imports(scalars: Iterable[Scalar]) -> str:
    """Lines that import what operations are written with, and define the tables they read."""
    scalars = list(scalars)
    names = {scalar.name for scalar in scalars}
    codes = [OPERATIONS[name].code or "" for name in names if name in OPERATIONS]
    used = [name for name in FUNCTIONS if any(f"{name}(" in code for code in codes)]
    lines = "".join(f"from pymc_austerity.model.kernel.generated import {f}\n" for f in used)
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
    known = {f: function.py_func for f, function in FUNCTIONS.items()}
    return eval(OPERATIONS[name].written(list(names)), {"math": math} | known, names)


_ZERO, _ONE = constant(0.0), constant(1.0)


def _do(name: str, *arguments: Scalar | float) -> Scalar:
    return apply(name, list(map(_number, arguments)), "b" if OPERATIONS[name].is_condition else "f")


def _number(value: Scalar | float) -> Scalar:
    return value if isinstance(value, Scalar) else constant(value)


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
    order = subterms([root])
    wanted = set(places)
    varying = set(wanted)
    for scalar in order:
        if any(a in varying for a in scalar.arguments):
            varying.add(scalar)
    sums: dict[Scalar, list[Scalar]] = {root: [_ONE]}
    for scalar in reversed(order):
        if scalar not in varying or scalar in wanted or scalar not in sums or scalar.kind != "f":
            continue
        rule = OPERATIONS[scalar.name].slopes
        if rule is None:
            raise NoKernelError(f"the derivative of {scalar.name} has no rule")
        own = _sum(sums.pop(scalar))
        slopes = map(_number, rule(_do, scalar, *scalar.arguments))
        for argument, slope in zip(scalar.arguments, slopes, strict=True):
            if argument in varying and not (slope.is_constant and slope.value == 0.0):
                sums.setdefault(argument, []).append(_do("Mul", own, slope))
    return [_sum(sums.get(place, [_ZERO])) for place in places]


def along(
    root: Scalar, places: Sequence[Scalar], directions: Sequence[Scalar]
) -> tuple[Scalar, list[Scalar]]:
    """Derivative of a formula along a direction, and the derivatives of that.

    Parameters
    ----------
    root, places
        As in `derivatives`.
    directions : sequence of Scalar
        One for each place.

    Examples
    --------
    >>> from pymc_austerity.model.kernel.scalar import given
    >>> x, d = given("x", "f", 4), given("d", "f", 4)
    >>> slope, (curvature,) = along(_do("Sqr", x), [x], [d])
    >>> curvature is _do("Mul", d, 2.0)
    True
    """
    slopes = zip(directions, derivatives(root, places), strict=True)
    slope = _sum([_do("Mul", direction, slope) for direction, slope in slopes])
    return slope, derivatives(slope, places)


def _sum(terms: list[Scalar]) -> Scalar:
    return _do("Add", *terms) if len(terms) > 1 else terms[0]


def stripped(scalar: Scalar) -> Scalar:
    """Drop terms that do not depend on the predictors, such as log(y!).

    What is left differs from the formula by a function of the data, so differences between two
    points are the same. Infinite terms stay: a row that is impossible stays so.

    Examples
    --------
    >>> from pymc_austerity.model.kernel.scalar import given
    >>> eta, y = given("eta", "f", Dependence.PREDICTOR), given("y", "f", Dependence.DATA)
    >>> stripped(apply("Add", [eta, y], "f")) is eta
    True
    """
    if _is_data(scalar):
        is_infinite = scalar.is_constant and abs(scalar.value) == float("inf")
        return scalar if is_infinite else constant(0.0)
    arguments = scalar.arguments
    if scalar.name == "Add":
        return apply("Add", [stripped(a) for a in arguments], "f")
    if scalar.name == "Sub":
        return apply("Sub", [stripped(a) for a in arguments], "f")
    if scalar.name == "Neg":
        return apply("Neg", [stripped(arguments[0])], "f")
    if scalar.name == "Mul":
        return _without_terms_of_a_factor(scalar)
    if scalar.name == "Switch":
        return _without_terms_of_branches(*arguments)
    return scalar


def _is_data(scalar: Scalar) -> bool:
    return scalar.sources in (Dependence.NOTHING, Dependence.DATA)


def _without_terms_of_a_factor(product: Scalar) -> Scalar:
    """A constant times a sum."""
    varying = [a for a in product.arguments if not _is_data(a)]
    if len(varying) != 1:
        return product
    return apply("Mul", [stripped(a) if a is varying[0] else a for a in product.arguments], "f")


def _without_terms_of_branches(condition: Scalar, yes: Scalar, no: Scalar) -> Scalar:
    """Both branches where the data choose; else one beside a branch that is infinite."""
    if _is_data(condition) or _is_impossible(no):
        yes, no = stripped(yes), (no if _is_impossible(no) else stripped(no))
    elif _is_impossible(yes):
        no = stripped(no)
    return apply("Switch", [condition, yes, no], "f")


def _is_impossible(scalar: Scalar) -> bool:
    return scalar.is_constant and scalar.value == -float("inf")
