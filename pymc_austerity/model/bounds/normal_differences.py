"""Differences of normal distribution functions, whichever error function they are written in."""

from math import log, prod, sqrt
from typing import Any, NamedTuple

import pytensor.tensor as pt

from pymc_austerity._pymc import Variable, constant_entry
from pymc_austerity.model.operations.normal_probability import log_normal_probability
from pymc_austerity.model.operations.table import scalar_name

__all__ = ["log_of_difference"]

_ROOT = pt.constant(sqrt(2.0), dtype="float64")


class _Affine(NamedTuple):
    """offset + factor * Phi(z), with a positive factor."""

    offset: float
    factor: float
    z: Variable

    def plus(self, number: float) -> "_Affine":
        return self._replace(offset=self.offset + number)

    def times(self, number: float) -> "_Affine":
        offset, factor = number * self.offset, number * self.factor
        if number > 0.0:
            return _Affine(offset, factor, self.z)
        return _Affine(offset + factor, -factor, -self.z)  # Phi(z) = 1 - Phi(-z)


def log_of_difference(node: Any) -> Variable | None:
    """Logarithm of the result of a subtraction; None for differences of other functions.

    Examples
    --------
    >>> x, y = pt.dscalars("x", "y")
    >>> log_of_difference((pt.erf(x) - y).owner) is None
    True
    >>> log_of_difference((pt.erf(x) - pt.erf(y)).owner) is None
    False
    """
    for read in (_of_functions, _of_scaled_functions):
        found = read(*node.inputs)
        if found is not None and found.type.broadcastable == node.outputs[0].type.broadcastable:
            return found
    return None


def _of_functions(above: Variable, below: Variable) -> Variable | None:
    upper, lower = _as_affine(above), _as_affine(below)
    if upper is None or lower is None or upper[:2] != lower[:2]:
        return None
    return log(upper.factor) + _log_probability(lower.z, upper.z)


def _as_affine(v: Variable) -> _Affine | None:
    """What is linear in an error function, in terms of the normal distribution function."""
    node, kind = v.owner, scalar_name(v.owner)
    if kind == "Erf":
        return _Affine(-1.0, 2.0, _ROOT * node.inputs[0])
    if kind == "Erfc":
        return _Affine(0.0, 2.0, -_ROOT * node.inputs[0])
    if kind == "Neg":
        inner = _as_affine(node.inputs[0])
        return inner and inner.times(-1.0)
    if kind == "Sub":
        return _as_affine(node.inputs[0] + -node.inputs[1])
    if kind not in ("Add", "Mul"):
        return None
    number, rest = _constant_part(node)
    inner = _as_affine(rest[0]) if len(rest) == 1 and number else None
    return inner and (inner.plus(number) if kind == "Add" else inner.times(number))


def _constant_part(node: Any) -> tuple[float, list[Variable]]:
    """Sum or product of those inputs that are numbers, and the others."""
    numbers = [constant_entry(x) for x in node.inputs]
    known = [x for x in numbers if x is not None]
    rest = [x for x, number in zip(node.inputs, numbers, strict=True) if number is None]
    return (prod(known) if scalar_name(node) == "Mul" else sum(known)), rest


def _of_scaled_functions(above: Variable, below: Variable) -> Variable | None:
    r"""The same for scaled complementary error functions.

    .. math:: \mathrm{erfcx}(u) - e^{u^2 - v^2} \mathrm{erfcx}(v)
        = e^{u^2} (\mathrm{erfc}(u) - \mathrm{erfc}(v))
    """
    found = _scaled_pair(above, below)
    if found is None:
        return None
    (u, v), (of_u, of_v) = found
    signs = _sign(of_u, u), _sign(of_v, v)
    if signs not in ((1, 1), (-1, -1)):
        return None
    ends = (u, v) if signs == (1, 1) else (v, u)
    return pt.sqr(u) + (log(2.0) + _log_probability(*(_ROOT * end for end in ends)))


def _scaled_pair(above: Variable, below: Variable) -> tuple[list[Variable], list[Variable]] | None:
    """Arguments of the squares, and those of the functions."""
    if scalar_name(above.owner) != "Erfcx" or scalar_name(below.owner) != "Mul":
        return None
    factors = {scalar_name(x.owner): x.owner for x in below.owner.inputs}
    if len(below.owner.inputs) != 2 or factors.keys() != {"Exp", "Erfcx"}:
        return None
    exponent = factors["Exp"].inputs[0].owner
    if scalar_name(exponent) != "Sub" or any(
        scalar_name(x.owner) != "Sqr" for x in exponent.inputs
    ):
        return None
    arguments = [above.owner.inputs[0], factors["Erfcx"].inputs[0]]
    return [x.owner.inputs[0] for x in exponent.inputs], arguments


def _sign(a: Variable, b: Variable) -> int:
    """1 where the variables are the same, -1 where they differ in sign, 0 for others."""
    (factor, rest), (other, others) = map(_with_sign, (a, b))
    return int(factor / other) if rest == others and abs(factor) == abs(other) else 0


def _with_sign(v: Variable) -> tuple[float, list[Variable]]:
    if scalar_name(v.owner) == "Cast":
        return _with_sign(v.owner.inputs[0])
    if scalar_name(v.owner) == "Neg":
        return -1.0, [v.owner.inputs[0]]
    return _constant_part(v.owner) if scalar_name(v.owner) == "Mul" else (1.0, [v])


def _log_probability(lower: Variable, upper: Variable) -> Variable:
    return log_normal_probability(0.5 * (lower + upper), upper - lower)
