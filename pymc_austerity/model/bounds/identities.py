"""Identities that make formulas of probabilities plain, before they are enclosed.

Interval arithmetic takes the parts of an expression for independent of each other. It encloses
``log(exp(a) / (exp(a) + exp(b)))`` badly and the same as ``-softplus(b - a)`` well.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import reduce
from math import log, prod, sqrt
from typing import Any, NamedTuple

import numpy as np
import pytensor.tensor as pt

from pymc_austerity._pymc import (
    ADVANCED_SUBTENSOR_OPS,
    CAReduce,
    DimShuffle,
    Elemwise,
    Join,
    LogSoftmax,
    Softmax,
    Subtensor,
    Variable,
    ancestors,
    axes_of,
    constant_entry,
    continuous_types,
    join_arguments,
    rebuilt,
    scalar_name,
)
from pymc_austerity.model.bounds.array_rules import sum_behind
from pymc_austerity.model.cut.known import behind, has_axes_moved
from pymc_austerity.model.operations.normal_probability import log_normal_probability

_MOVES: tuple[type, ...] = (DimShuffle, Join, Subtensor, *ADVANCED_SUBTENSOR_OPS)
_ROOT = pt.constant(sqrt(2.0), dtype="float64")
_SINGLE_PRECISION = 1e-7
"""The most that rounding to single precision changes a number below one."""


class NoLogarithmError(Exception):
    """A variable has no logarithm or logit without exponentials inside."""


def simplified(graphs: Sequence[Variable]) -> list[Variable]:
    """Rewrite by identities that interval arithmetic cannot use.

    A shift of log-sum-exp or softmax by a maximum does not change them; shares of a softmax, and
    differences from 0 to 1, add up to one; a gamma distribution of shape 1 is exponential. The root
    of 1/2 of normal distribution functions is made exact.

    Examples
    --------
    >>> x = pt.dmatrix("x")
    >>> (shifted,) = simplified([pt.special.softmax(x - x.max(axis=1, keepdims=True), axis=1)])
    >>> shifted.owner.inputs[0] is x
    True
    """
    return rebuilt(graphs, _rule)


def _rule(node: Any, inputs: list[Variable]) -> list[Variable] | None:
    op, kind, found = node.op, scalar_name(node), None
    try:
        if isinstance(op, Softmax | LogSoftmax):
            found = _of_shifted(op, inputs[0])
        elif isinstance(op, CAReduce) and kind == "Add":
            found = _sum_of_shares(op, inputs[0])
        elif kind in _RULES:
            found = _RULES[kind](*inputs)
    except NoLogarithmError:
        return None
    return None if found is None else [found.astype(node.outputs[0].dtype)]


# ------------------------------------------------------------------ shifts


def _of_shifted(op: Any, x: Variable) -> Variable | None:
    axes = axes_of(op.axis, x.type.ndim)
    parts = _shifted(x, axes)
    return None if parts is None else op(parts[0])


def _log_of_shifted_sum(total: Variable) -> Variable | None:
    """log(sum(exp(x - s))) as log(sum(exp(x))) - s."""
    reduction = sum_behind(total)
    inner = None if reduction is None else _without_guard(reduction.inputs[0])
    if inner is None or scalar_name(inner.owner) != "Exp":
        return None
    axes = axes_of(reduction.op.axis, inner.type.ndim)
    parts = _shifted(inner.owner.inputs[0], axes)
    if parts is None:
        return None
    x, shift = parts
    logarithm = pt.log(pt.exp(x).sum(axis=axes)) - shift.squeeze(axes)
    return logarithm if total.owner is reduction else total.owner.op(logarithm)


def _shifted(x: Variable, axes: tuple[int, ...]) -> tuple[Variable, Variable] | None:
    """The parts of x - s, where s is a maximum and the same along the axes."""
    if scalar_name(x.owner) != "Sub":
        return None
    whole, shift = x.owner.inputs
    same = all(shift.type.broadcastable[k] for k in axes)
    return (whole, shift) if same and _is_maximum(shift) else None


def _is_maximum(v: Variable) -> bool:
    v = _without_guard(behind(v, has_axes_moved))
    return scalar_name(behind(v, has_axes_moved).owner) == "Maximum"


def _without_guard(v: Variable) -> Variable:
    """Inside of ``switch(isinf(s), exp(s), exp(x - s))``, which differs where s is infinite."""
    is_guarded = scalar_name(v.owner) == "Switch"
    return (
        v.owner.inputs[2] if is_guarded and scalar_name(v.owner.inputs[0].owner) == "IsInf" else v
    )


# ------------------------------------------------------------------ shares


def _as_softmax(above: Variable, below: Variable) -> Variable | None:
    """exp(x) / sum(exp(x)) as a softmax, whether or not axes of length one are added."""
    shuffle = above.owner.op if above.owner and isinstance(above.owner.op, DimShuffle) else None
    powers = above if shuffle is None else above.owner.inputs[0]
    reduction = sum_behind(below)
    if scalar_name(powers.owner) != "Exp" or reduction is None or reduction is below.owner:
        return None
    axes, kept = axes_of(reduction.op.axis, powers.type.ndim), below.owner.op.new_order
    left = [k for k in range(powers.type.ndim) if k not in axes]
    order = range(powers.type.ndim) if shuffle is None else shuffle.new_order
    expected = tuple("x" if k == "x" or k in axes else left.index(k) for k in order)
    if len(axes) != 1 or reduction.inputs[0] is not powers or tuple(kept) != expected:
        return None
    exponents = powers.owner.inputs[0]
    parts = _shifted(exponents, axes)
    shares = pt.special.softmax(exponents if parts is None else parts[0], axis=axes[0])
    return shares if shuffle is None else shuffle(shares)


def _sum_of_shares(op: Any, v: Variable) -> Variable | None:
    """One, where the terms are all shares of a softmax."""
    axes, node = axes_of(op.axis, v.type.ndim), v.owner
    if node is not None and isinstance(node.op, DimShuffle):
        order = node.op.new_order
        axes = tuple(order[k] for k in axes if order[k] != "x")
        node = node.inputs[0].owner
    if node is None or not isinstance(node.op, Softmax):
        return None
    own = axes_of(node.op.axis, node.inputs[0].type.ndim)
    return pt.ones_like(op(v)) if set(axes) == set(own) else None


def _difference_of_sigmoids(above: Variable, below: Variable) -> Variable | None:
    r"""Difference of logistic distribution functions, as an exponential.

    .. math:: \sigma(a) - \sigma(b) = \sigma(a) \sigma(-b) (1 - e^{b - a}), \quad a > b

    Elsewhere the logarithm is not defined, and nothing is known of it.
    """
    if constant_entry(above) == 1:
        return None
    a, b = _logit_of(above), _logit_of(below)
    return pt.exp(pt.log1mexp(b - a) - pt.softplus(-a) - pt.softplus(b))


def _logit_of(v: Variable) -> Variable:
    """Logit of a variable that is a sigmoid, 0 or 1."""
    if constant_entry(v) in (0, 1):
        return pt.log(v) - pt.log1p(-v)
    if scalar_name(v.owner) == "Sigmoid":
        logit: Variable = v.owner.inputs[0]
        return logit
    return _moved(v, _logit_of)


def _moved(v: Variable, function: Callable[[Variable], Variable]) -> Variable:
    """A function of a variable whose entries are those of others, applied to these."""
    op: Any = getattr(v.owner, "op", None)
    if not isinstance(op, _MOVES):
        raise NoLogarithmError
    if isinstance(op, Join):
        axis, parts = join_arguments(v.owner)
        return pt.join(axis, *map(function, parts))
    operand, *others = v.owner.inputs
    return v.owner.op(function(operand), *others)


# ------------------------------------------------------------------ numbers and tails


def _with_exact_root(*factors: Variable) -> Variable | None:
    """The product with the root of 1/2 in double precision, which PyMC has in single precision.

    Only then do formulas of one normal distribution function agree for different ranges, and
    probabilities of ordered categories add up to one.
    """
    numbers = [constant_entry(x) for x in factors]
    inexact = [k for k, x in enumerate(numbers) if x is not None and _is_rounded_root(x)]
    if not inexact:
        return None
    exact = list(factors)
    for k in inexact:
        root = np.full(factors[k].type.shape, np.copysign(sqrt(0.5), numbers[k]))
        exact[k] = pt.constant(root, dtype="float64")
    return pt.mul(*exact)


def _is_rounded_root(number: float) -> bool:
    return abs(number) != sqrt(0.5) and abs(abs(number) - sqrt(0.5)) < _SINGLE_PRECISION


_RULES: dict[str, Callable[..., Variable | None]] = {
    "Sub": _difference_of_sigmoids,
    "Log": _log_of_shifted_sum,
    "TrueDiv": _as_softmax,
    "Mul": _with_exact_root,
}

# ------------------------------------------------------------------ logarithms


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
    logarithms = _Logarithms(predictors)

    def rule(node: Any, inputs: list[Variable]) -> list[Variable] | None:
        if scalar_name(node) not in ("Log", "Log1p", "Reciprocal", "TrueDiv"):
            return None
        if not logarithms.varies(inputs[-1]):
            return None
        try:
            found = logarithms.rewritten(scalar_name(node), *inputs)
        except NoLogarithmError:
            return None
        return [found.astype(node.outputs[0].dtype)]

    return rebuilt(graphs, rule)


class _Logarithms:
    """Logarithms and roots of functions of the predictors that are positive."""

    def __init__(self, predictors: Sequence[Variable]) -> None:
        self._predictors = set(predictors)

    def varies(self, v: Variable) -> bool:
        """Whether it depends on the predictors."""
        return not self._predictors.isdisjoint(ancestors([v]))

    def rewritten(self, kind: str, *inputs: Variable) -> Variable:
        """What takes the place of a logarithm, or of a quotient by something that varies."""
        *above, inner = inputs
        if kind == "Log1p":
            return self._of_one_more(inner)
        logarithm = self.of(inner)
        if kind == "Log":
            return logarithm
        if kind == "Reciprocal":
            return pt.exp(-logarithm)
        with suppress(NoLogarithmError):
            if self.varies(above[0]):
                return pt.exp(self.of(above[0]) - logarithm)
        return above[0] * pt.exp(-logarithm)

    def _of_one_more(self, v: Variable) -> Variable:
        """Logarithm of 1 + v where v is a square, or less than zero."""
        less = _negative_of(v)
        if less is not None:
            return pt.log1mexp(self.of(less))
        if scalar_name(v.owner) == "Sqr":
            raise NoLogarithmError
        return pt.log1p(pt.sqr(self._root_of(v)))

    def of(self, v: Variable) -> Variable:
        """Logarithm without exponentials inside."""
        node, kind = v.owner, scalar_name(v.owner)
        if not self.varies(v):
            return pt.log(v)
        if kind == "Exp":
            return node.inputs[0]
        if kind == "Sigmoid":
            return -pt.softplus(-node.inputs[0])
        if kind == "Sub":
            if (
                constant_entry(node.inputs[0]) == 1
                and scalar_name(node.inputs[1].owner) == "Sigmoid"
            ):
                return -pt.softplus(node.inputs[1].owner.inputs[0])
            return log_of_difference(node)
        if node is not None and isinstance(node.op, Softmax):
            return pt.special.log_softmax(node.inputs[0], axis=node.op.axis)
        if kind not in _LOGARITHMS or not isinstance(node.op, Elemwise):
            return _moved(v, self.of)
        if kind == "Cast" and v.dtype not in continuous_types:
            raise NoLogarithmError
        if kind == "Pow":
            if self.varies(node.inputs[1]):
                raise NoLogarithmError
            return node.inputs[1] * self.of(node.inputs[0])
        return _LOGARITHMS[kind](*map(self.of, node.inputs))

    def _root_of(self, v: Variable) -> Variable:
        """The square root of v, for products of squares and of positive variables."""
        node, kind = v.owner, scalar_name(v.owner)
        if not self.varies(v):
            if (constant_entry(v) or 0.0) < 0:
                raise NoLogarithmError
            return pt.sqrt(v)
        if kind == "Sqr" or (kind == "Pow" and constant_entry(node.inputs[1]) == 2):
            return node.inputs[0]
        if kind in ("Mul", "TrueDiv"):
            return node.op(*map(self._root_of, node.inputs))
        return pt.exp(0.5 * self.of(v))


_LOGARITHMS: dict[str, Callable[..., Variable]] = {
    "Add": lambda *x: reduce(lambda a, b: a + pt.softplus(b - a), x),
    "Cast": lambda x: x,
    "Mul": pt.add,
    "Pow": pt.mul,
    "Reciprocal": lambda x: -x,
    "Sign": pt.zeros_like,
    "Sqr": lambda x: 2.0 * x,
    "Sqrt": lambda x: 0.5 * x,
    "TrueDiv": lambda x, y: x - y,
}
"""Of results of operations on positive arguments, from the logarithms of these."""


def _negative_of(v: Variable) -> Variable | None:
    """The variable that v is -1 times."""
    if scalar_name(v.owner) == "Neg":
        negative: Variable = v.owner.inputs[0]
        return negative
    if scalar_name(v.owner) == "Mul" and constant_entry(v.owner.inputs[0]) == -1:
        rest = v.owner.inputs[1:]
        return rest[0] if len(rest) == 1 else pt.mul(*rest)
    return None


# ------------------------------------------------------------------ error functions


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


def log_of_difference(node: Any) -> Variable:
    """Logarithm of the result of a subtraction of error functions.

    Examples
    --------
    >>> x, y = pt.dscalars("x", "y")
    >>> logarithm = log_of_difference((pt.erf(x) - pt.erf(y)).owner)
    >>> round(float(logarithm.eval({x: 1.0, y: 0.0}, mode="FAST_COMPILE")), 4)
    -0.1711
    """
    for read in (_of_functions, _of_scaled_functions):
        with suppress(NoLogarithmError):
            found = read(*node.inputs)
            if found.type.broadcastable == node.outputs[0].type.broadcastable:
                return found
    raise NoLogarithmError


def _of_functions(above: Variable, below: Variable) -> Variable:
    upper, lower = _as_affine(above), _as_affine(below)
    if upper[:2] != lower[:2]:
        raise NoLogarithmError
    return log(upper.factor) + _log_probability(lower.z, upper.z)


def _as_affine(v: Variable) -> _Affine:
    """What is linear in an error function, in terms of the normal distribution function."""
    node, kind = v.owner, scalar_name(v.owner)
    if kind == "Erf":
        return _Affine(-1.0, 2.0, _ROOT * node.inputs[0])
    if kind == "Erfc":
        return _Affine(0.0, 2.0, -_ROOT * node.inputs[0])
    if kind == "Neg":
        return _as_affine(node.inputs[0]).times(-1.0)
    if kind == "Sub":
        return _as_affine(node.inputs[0] + -node.inputs[1])
    number, rest = _constant_part(node) if kind in ("Add", "Mul") else (0.0, [])
    if len(rest) != 1 or not number:
        raise NoLogarithmError
    inner = _as_affine(rest[0])
    return inner.plus(number) if kind == "Add" else inner.times(number)


def _constant_part(node: Any) -> tuple[float, list[Variable]]:
    """Sum or product of those inputs that are numbers, and the others."""
    numbers = [constant_entry(x) for x in node.inputs]
    known = [x for x in numbers if x is not None]
    rest = [x for x, number in zip(node.inputs, numbers, strict=True) if number is None]
    return (prod(known) if scalar_name(node) == "Mul" else sum(known)), rest


def _of_scaled_functions(above: Variable, below: Variable) -> Variable:
    r"""The same for scaled complementary error functions.

    .. math:: \mathrm{erfcx}(u) - e^{u^2 - v^2} \mathrm{erfcx}(v)
        = e^{u^2} (\mathrm{erfc}(u) - \mathrm{erfc}(v))
    """
    if scalar_name(above.owner) != "Erfcx" or scalar_name(below.owner) != "Mul":
        raise NoLogarithmError
    factors = {scalar_name(x.owner): x.owner for x in below.owner.inputs}
    if len(below.owner.inputs) != 2 or factors.keys() != {"Exp", "Erfcx"}:
        raise NoLogarithmError
    exponent = factors["Exp"].inputs[0].owner
    if scalar_name(exponent) != "Sub" or any(
        scalar_name(x.owner) != "Sqr" for x in exponent.inputs
    ):
        raise NoLogarithmError
    u, v = (x.owner.inputs[0] for x in exponent.inputs)
    signs = _sign(above.owner.inputs[0], u), _sign(factors["Erfcx"].inputs[0], v)
    if signs not in ((1, 1), (-1, -1)):
        raise NoLogarithmError
    ends = (u, v) if signs == (1, 1) else (v, u)
    return pt.sqr(u) + (log(2.0) + _log_probability(*(_ROOT * end for end in ends)))


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
