"""A formula without the terms that cancel in differences."""

from pymc_austerity.model.kernel.apply import apply
from pymc_austerity.model.kernel.scalar import Scalar, Source, constant

__all__ = ["stripped"]


def stripped(scalar: Scalar) -> Scalar:
    """Drop terms that do not depend on the predictors, such as log(y!).

    What is left differs from the formula by a function of the data, so differences between two
    points are the same. Infinite terms stay: a row that is impossible stays so.

    Examples
    --------
    >>> from pymc_austerity.model.kernel.scalar import given
    >>> eta, y = given("eta", "f", Source.PREDICTOR), given("y", "f", Source.DATA)
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
    return scalar.sources in (Source.NOTHING, Source.DATA)


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
