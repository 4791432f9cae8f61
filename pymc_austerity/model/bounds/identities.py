"""Identities that make formulas of probabilities plain, before they are enclosed."""

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc_austerity._pymc import (
    CAReduce,
    DimShuffle,
    Join,
    LogSoftmax,
    Softmax,
    Subtensor,
    Variable,
    constant_entry,
    join_arguments,
    rebuilt,
)
from pymc_austerity.model.bounds.array_rules import sum_behind
from pymc_austerity.model.operations.table import scalar_name

_SINGLE_PRECISION = 1e-7
"""The most that rounding to single precision changes a number below one."""


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
    op, kind = node.op, scalar_name(node)
    found = None
    if isinstance(op, Softmax | LogSoftmax):
        found = _of_shifted(op, inputs[0])
    elif isinstance(op, CAReduce) and kind == "Add":
        found = _sum_of_shares(op, inputs[0])
    elif kind == "Sub":
        found = _difference_of_sigmoids(*inputs)
    elif kind == "Log":
        found = _log_of_shifted_sum(inputs[0])
    elif kind == "TrueDiv":
        found = _as_softmax(*inputs)
    elif kind == "Mul":
        found = _with_exact_root(inputs)
    elif kind == "GammaIncC":
        found = _exponential_tail(*inputs)
    return None if found is None else [found.astype(node.outputs[0].dtype)]


# ------------------------------------------------------------------ shifts


def _of_shifted(op: Any, x: Variable) -> Variable | None:
    axes = _axes(op, x.type.ndim)
    parts = _shifted(x, axes)
    return None if parts is None else op(parts[0])


def _log_of_shifted_sum(total: Variable) -> Variable | None:
    """log(sum(exp(x - s))) as log(sum(exp(x))) - s."""
    reduction = sum_behind(total)
    inner = None if reduction is None else _without_guard(reduction.inputs[0])
    if inner is None or scalar_name(inner.owner) != "Exp":
        return None
    axes = _axes(reduction.op, inner.type.ndim)
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
    while v.owner is not None and isinstance(v.owner.op, DimShuffle):
        v = v.owner.inputs[0]
    if _is_guarded(v):
        return _is_maximum(v.owner.inputs[2])
    return scalar_name(v.owner) == "Maximum"


def _without_guard(v: Variable) -> Variable:
    """Inside of ``switch(isinf(s), exp(s), exp(x - s))``, which differs where s is infinite."""
    return v.owner.inputs[2] if _is_guarded(v) else v


def _is_guarded(v: Variable) -> bool:
    """Whether this is one formula for an infinite shift and another for finite ones."""
    return scalar_name(v.owner) == "Switch" and scalar_name(v.owner.inputs[0].owner) == "IsInf"


# ------------------------------------------------------------------ shares


def _as_softmax(above: Variable, below: Variable) -> Variable | None:
    """exp(x) / sum(exp(x)) as a softmax, whether or not axes of length one are added."""
    shuffle = above.owner.op if above.owner and isinstance(above.owner.op, DimShuffle) else None
    powers = above if shuffle is None else above.owner.inputs[0]
    reduction = sum_behind(below)
    if scalar_name(powers.owner) != "Exp" or reduction is None or reduction is below.owner:
        return None
    axes, kept = _axes(reduction.op, powers.type.ndim), below.owner.op.new_order
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
    axes, node = _axes(op, v.type.ndim), v.owner
    if node is not None and isinstance(node.op, DimShuffle):
        order = node.op.new_order
        axes = tuple(order[k] for k in axes if order[k] != "x")
        node = node.inputs[0].owner
    if node is None or not isinstance(node.op, Softmax):
        return None
    own = _axes(node.op, node.inputs[0].type.ndim)
    return pt.ones_like(op(v)) if set(axes) == set(own) else None


def _difference_of_sigmoids(above: Variable, below: Variable) -> Variable | None:
    r"""Difference of logistic distribution functions, as an exponential.

    .. math:: \sigma(a) - \sigma(b) = \sigma(a) \sigma(-b) (1 - e^{b - a}), \quad a > b

    Elsewhere the logarithm is not defined, and nothing is known of it.
    """
    a, b = _logit_of(above), _logit_of(below)
    if a is None or b is None or constant_entry(above) == 1:
        return None
    return pt.exp(pt.log1mexp(b - a) - pt.softplus(-a) - pt.softplus(b))


def _logit_of(v: Variable) -> Variable | None:
    """Logit of a variable that is a sigmoid, 0 or 1; None for other variables."""
    node = v.owner
    if constant_entry(v) in (0, 1):
        return pt.log(v) - pt.log1p(-v)
    if node is None:
        return None
    if scalar_name(node) == "Sigmoid":
        logit: Variable = node.inputs[0]
        return logit
    if isinstance(node.op, Subtensor):
        whole = _logit_of(node.inputs[0])
        return None if whole is None else node.op(whole, *node.inputs[1:])
    if isinstance(node.op, Join):
        axis, parts = join_arguments(node)
        logits = [_logit_of(part) for part in parts]
        return None if any(x is None for x in logits) else pt.join(axis, *logits)
    return None


# ------------------------------------------------------------------ error functions


def _with_exact_root(factors: Sequence[Variable]) -> Variable | None:
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


# ------------------------------------------------------------------ gamma functions


def _exponential_tail(shape: Variable, x: Variable) -> Variable | None:
    """The tail of the gamma distribution of shape 1."""
    return pt.exp(-x) if constant_entry(shape) == 1 and _is_nonnegative(x) else None


def _is_nonnegative(v: Variable) -> bool:
    node, kind = v.owner, scalar_name(v.owner)
    if kind in ("Exp", "Sqr"):
        return True
    if kind != "Switch" or scalar_name(node.inputs[0].owner) != "LT":
        return False
    compared, least = node.inputs[0].owner.inputs
    zeros = constant_entry(least) == 0 and constant_entry(node.inputs[1]) == 0
    return zeros and compared is node.inputs[2]


def _axes(op: Any, ndim: int) -> tuple[int, ...]:
    axes = range(ndim) if op.axis is None else op.axis
    return tuple(k % ndim for k in ((axes,) if isinstance(axes, int) else axes))
