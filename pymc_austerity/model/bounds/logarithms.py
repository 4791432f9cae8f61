"""Logarithms of positive products and sums in terms of the logarithms of their parts.

Interval arithmetic takes the parts of an expression for independent of each other. It encloses
``log(exp(a) / (exp(a) + exp(b)))`` badly and the same as ``-softplus(b - a)`` well.
"""

from collections.abc import Sequence
from functools import reduce
from math import log, prod, sqrt
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt

from pymc_austerity._pymc import (
    ADVANCED_SUBTENSOR_OPS,
    Constant,
    DimShuffle,
    Elemwise,
    Join,
    Softmax,
    Subtensor,
    Variable,
    ancestors,
    constant_entry,
    continuous_types,
    join_arguments,
    rebuilt,
)
from pymc_austerity.model.operations.normal_probability import log_normal_probability
from pymc_austerity.model.operations.table import scalar_name

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


def expand_logarithms(graphs: Sequence[Variable], predictors: Sequence[Variable]) -> list[Variable]:
    """Rewrite logarithms and quotients of variables that are positive as exponentials.

    Parameters
    ----------
    graphs : sequence of variables
    predictors : sequence of variables
        Nothing is done to what does not depend on them.

    Examples
    --------
    >>> a, b = pt.dscalars("a", "b")
    >>> (graph,) = expand_logarithms([pt.log(pt.exp(a) / (pt.exp(a) + pt.exp(b)))], [a, b])
    >>> round(float(graph.eval({a: 0.0, b: 0.0})), 4)
    -0.6931
    """
    varying = set(predictors)

    def rule(node: Any, inputs: list[Variable]) -> list[Variable] | None:
        if scalar_name(node) not in ("Log", "Log1p", "Reciprocal", "TrueDiv"):
            return None
        found = _rewritten(node.clone_with_new_inputs(inputs, strict=False), varying)
        return None if found is None else [found.astype(node.outputs[0].dtype)]

    return rebuilt(graphs, rule)


def _varies(v: Variable, predictors: set[Variable]) -> bool:
    return not predictors.isdisjoint(ancestors([v]))


def _rewritten(node: Any, predictors: set[Variable]) -> Variable | None:
    """Replacement of the result of a node, or None."""
    kind = scalar_name(node)
    *above, inner = node.inputs
    if not _varies(inner, predictors):
        return None
    if kind == "Log1p":
        return _log_of_one_more(inner, predictors)
    logarithm = _log_of(inner, predictors)
    if kind == "Log" or logarithm is None:
        return logarithm
    if kind == "Reciprocal":
        return pt.exp(-logarithm)
    numerator = _log_of(above[0], predictors) if _varies(above[0], predictors) else None
    if numerator is not None:
        return pt.exp(numerator - logarithm)
    return above[0] * pt.exp(-logarithm)


def _log_of_one_more(v: Variable, predictors: set[Variable]) -> Variable | None:
    """Logarithm of 1 + v where v is a square, or less than zero."""
    less = _negative_of(v)
    if less is not None:
        logarithm = _log_of(less, predictors)
        return None if logarithm is None else pt.log1mexp(logarithm)
    root = _square_root_of(v, predictors)
    return None if root is None or scalar_name(v.owner) == "Sqr" else pt.log1p(pt.sqr(root))


def _negative_of(v: Variable) -> Variable | None:
    """The variable that v is -1 times."""
    if scalar_name(v.owner) == "Neg":
        negative: Variable = v.owner.inputs[0]
        return negative
    if scalar_name(v.owner) == "Mul" and constant_entry(v.owner.inputs[0]) == -1:
        rest = v.owner.inputs[1:]
        return rest[0] if len(rest) == 1 else pt.mul(*rest)
    return None


def _log_of(v: Variable, predictors: set[Variable]) -> Variable | None:
    """Logarithm without exponentials inside; None for variables that may not be positive."""
    if not _varies(v, predictors):
        return pt.log(v)
    node, kind = v.owner, scalar_name(v.owner)
    if kind == "Exp":
        return node.inputs[0]
    if kind == "Sigmoid":
        return -pt.softplus(-node.inputs[0])
    if node is None:
        return None
    if isinstance(node.op, _MOVES):
        return _log_of_moved(node, predictors)
    if isinstance(node.op, Softmax):
        return pt.special.log_softmax(node.inputs[0], axis=node.op.axis)
    if kind == "Sub":
        difference = log_of_difference(node)
        if difference is not None:
            return difference
    if _is_complement(node):
        return -pt.softplus(node.inputs[1].owner.inputs[0])
    if kind not in _PARTS_ARE_POSITIVE or not isinstance(node.op, Elemwise):
        return None
    if kind == "Cast" and node.outputs[0].dtype not in continuous_types:
        return None
    exponent: Any = None
    inputs = node.inputs
    if kind == "Pow":
        *inputs, exponent = node.inputs
        if _varies(exponent, predictors):
            return None
    logarithms: list[Any] = [_log_of(x, predictors) for x in inputs]
    if any(x is None for x in logarithms):
        return None
    first = logarithms[0]
    return {
        "Add": lambda: reduce(lambda a, b: a + pt.softplus(b - a), logarithms),
        "Cast": lambda: first,
        "Mul": lambda: pt.add(*logarithms),
        "Pow": lambda: exponent * first,
        "Reciprocal": lambda: -first,
        "Sign": lambda: pt.zeros_like(first),
        "Sqr": lambda: 2.0 * first,
        "Sqrt": lambda: 0.5 * first,
        "TrueDiv": lambda: first - logarithms[1],
    }[kind]()


def _log_of_moved(node: Any, predictors: set[Variable]) -> Variable | None:
    """The same for operations that move entries about."""
    if isinstance(node.op, Join):
        axis, parts = join_arguments(node)
        logarithms: list[Any] = [_log_of(x, predictors) for x in parts]
        return None if any(x is None for x in logarithms) else pt.join(axis, *logarithms)
    logarithm = _log_of(node.inputs[0], predictors)
    if logarithm is None:
        return None
    made: Variable = node.op(logarithm, *node.inputs[1:])
    return made


def _is_complement(node: Any) -> bool:
    """Whether this is 1 - sigmoid(x)."""
    return (
        scalar_name(node) == "Sub"
        and constant_entry(node.inputs[0]) == 1
        and scalar_name(node.inputs[1].owner) == "Sigmoid"
    )


_MOVES: tuple[type, ...] = (DimShuffle, Join, Subtensor, *ADVANCED_SUBTENSOR_OPS)
_PARTS_ARE_POSITIVE = {
    "Add", "Cast", "Mul", "Pow", "Reciprocal", "Sign", "Sqr", "Sqrt", "TrueDiv",
}  # fmt: skip


def _square_root_of(v: Variable, predictors: set[Variable]) -> Variable | None:
    """The square root of v, for products of squares and of positive variables."""
    node, kind = v.owner, scalar_name(v.owner)
    if not _varies(v, predictors):
        entry = constant_entry(v)
        return None if entry is not None and entry < 0 else pt.sqrt(v)
    if kind == "Sqr" or (kind == "Pow" and _is_two(node.inputs[1])):
        return node.inputs[0]
    if kind in ("Mul", "TrueDiv"):
        roots: list[Any] = [_square_root_of(x, predictors) for x in node.inputs]
        if any(root is None for root in roots):
            return None
        return pt.mul(*roots) if kind == "Mul" else roots[0] / roots[1]
    logarithm = _log_of(v, predictors)
    return None if logarithm is None else pt.exp(0.5 * logarithm)


def _is_two(v: Variable) -> bool:
    return isinstance(v, Constant) and bool(np.all(v.data == 2))
