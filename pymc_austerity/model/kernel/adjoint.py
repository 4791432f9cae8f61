"""Derivatives of a formula by everything it depends on, as formulas, in the reverse mode."""

from collections.abc import Sequence

from pymc_austerity.model.kernel.apply import apply
from pymc_austerity.model.kernel.refusal import NoKernelError
from pymc_austerity.model.kernel.scalar import Scalar, constant, walk
from pymc_austerity.model.operations.table import OPERATIONS

__all__ = ["derivatives"]

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
        rule = OPERATIONS[scalar.name].slopes
        if rule is None:
            raise NoKernelError(f"the derivative of {scalar.name} has no rule")
        own = _sum(sums.pop(scalar))
        slopes = map(_number, rule(_do, scalar, *scalar.arguments))
        for argument, slope in zip(scalar.arguments, slopes, strict=True):
            if argument in varying and not (slope.is_constant and slope.value == 0.0):
                sums.setdefault(argument, []).append(_do("Mul", own, slope))
    return [_sum(sums.get(place, [_ZERO])) for place in places]


def _sum(terms: list[Scalar]) -> Scalar:
    return _do("Add", *terms) if len(terms) > 1 else terms[0]
