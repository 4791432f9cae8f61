"""Operations that move entries about, add them up, or ask whether all are true."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    ADVANCED_INC_SUBTENSOR_OPS,
    ADVANCED_SUBTENSOR_OPS,
    Alloc,
    Constant,
    CumOp,
    DimShuffle,
    IncSubtensor,
    Join,
    MakeVector,
    Reshape,
    ScalarFromTensor,
    SpecifyShape,
    Subtensor,
    TensorFromScalar,
    Variable,
    join_arguments,
)
from pymc_austerity.model.operations.enclosures import Enclosed
from pymc_austerity.model.operations.jets import Interval, Jet, point

__all__ = ["is_rearrangement", "rearrange", "reduce_axes", "with_certain_total"]

_OF_ONE: tuple[type, ...] = (
    Alloc, DimShuffle, Reshape, ScalarFromTensor, SpecifyShape, Subtensor, TensorFromScalar,
    *ADVANCED_SUBTENSOR_OPS,
)  # fmt: skip
_OF_TWO: tuple[type, ...] = (IncSubtensor, *ADVANCED_INC_SUBTENSOR_OPS)


def is_rearrangement(op: Any) -> bool:
    """Tell whether every entry of the result is an entry, or a sum of entries, of the inputs."""
    is_sum = isinstance(op, CumOp) and op.mode == "add"
    return is_sum or isinstance(op, (*_OF_ONE, *_OF_TWO, Join, MakeVector))


def rearrange(node: Any, known: Mapping[Variable, Jet], fixed: Mapping[Variable, NDArray]) -> Jet:
    """Jet of the result, by the operation itself on each Taylor coefficient.

    Parameters
    ----------
    node : Apply
        Of a rearrangement.
    known : dict of variable to Jet
        Jets of its inputs.
    fixed : dict of variable to array
        Values, in their own types, of inputs that do not depend on the predictors.

    Raises
    ------
    NotImplementedError
        Entries are chosen by something that is not among the data.
    """
    entries = _entries(node)
    zero = (0,) * len(next(iter(known[entries[0]])))
    others = [v for v in node.inputs if v not in entries]
    chosen = {v: _chosen(v, fixed) for v in others}
    is_sure = all(known[v][zero].is_point for v in others if v in known)
    result, exact = {}, _in_double_precision(node, entries)
    for m in dict.fromkeys(m for v in entries for m in known[v]):
        coefficients = [known[v].get(m) for v in entries]
        n_ends = 1 if all(c is None or c.is_point for c in coefficients) else 2
        ends = []
        for end in range(n_ends):
            values = {
                v: np.zeros(known[v][zero].lower.shape) if c is None else c[end]
                for v, c in zip(entries, coefficients, strict=True)
            }
            storage: list[list] = [[None]]
            exact.op.perform(exact, [(values | chosen)[v] for v in node.inputs], storage)
            found = np.asarray(storage[0][0], dtype=np.float64)
            ends.append(found if is_sure else np.full_like(found, np.nan))
        result[m] = point(ends[0]) if n_ends == 1 else Interval(*ends)
    return result


def _in_double_precision(node: Any, entries: Sequence[Variable]) -> Any:
    """The operation on float64, in which coefficients are whatever the model computes in."""
    if all(v.dtype != "float32" for v in entries):
        return node
    op = MakeVector("float64") if isinstance(node.op, MakeVector) else node.op
    same = {v: v.type.clone(dtype="float64")() for v in entries if v.dtype == "float32"}
    return op.make_node(*(same.get(v, v) for v in node.inputs))


def _entries(node: Any) -> Sequence[Variable]:
    """Inputs whose entries are moved; the others are indices and shapes."""
    if isinstance(node.op, Join):
        return join_arguments(node)[1]
    if isinstance(node.op, MakeVector):
        return list(node.inputs)
    return list(node.inputs[: 2 if isinstance(node.op, _OF_TWO) else 1])


def _chosen(v: Variable, fixed: Mapping[Variable, NDArray]) -> Any:
    if isinstance(v, Constant):
        return v.data
    if v not in fixed:
        raise NotImplementedError
    return np.asarray(fixed[v])


_CANCELS = 1e-6
"""Share of the terms below which their sum is zero but for rounding."""
_TERMS = 1e-8
"""Size of terms that are large enough to tell."""


def reduce_axes(op: Any, jet: Jet) -> Jet:
    """Jet of a reduction.

    A check asks whether a condition holds for all entries, rows included. Here it is asked of
    each row by itself, so the axis of the rows is kept.

    Raises
    ------
    NotImplementedError
        The reduction is neither a sum nor a conjunction.
    """
    kind = type(op.scalar_op).__name__
    ndim = next(iter(jet.values())).lower.ndim
    axes = tuple(range(ndim)) if op.axis is None else tuple(op.axis)
    if kind == "Add" and (ndim == 0 or 0 not in axes):
        return {m: _reduce(np.sum, x, axes) for m, x in jet.items()}
    if kind == "AND":
        others = tuple(axis for axis in axes if axis != 0)
        return {m: _reduce(np.min, x, others) for m, x in jet.items()}
    raise NotImplementedError(kind)


def with_certain_total(
    node: Any,
    terms: Sequence[Enclosed],
    total: Enclosed,
    elsewhere: Callable[[], Iterable[Sequence[NDArray]]],
) -> Enclosed:
    """The enclosure of a sum, which is constant where the terms are all shares of one.

    Probabilities of all categories add up to one, however they are written. Those of a row do
    where, at its center, they lie between 0 and 1, add up to 1, vary enough to tell, and have
    Taylor coefficients that cancel to all orders; and where they add up to 1 at random predictors
    as well. Another analytic function does so with probability zero, and a function that is not
    analytic in a cell has no enclosure there.

    Parameters
    ----------
    node : Apply
        A sum over axes, or of several terms.
    terms : sequence of Enclosed
        What is added up: one array, or the terms.
    total : Enclosed
        Their sum.
    elsewhere : callable
        Makes the values of the terms at random predictors, with the data of the same rows.
    """
    zero = (0,) * len(next(iter(total.center)))
    varying = [m for m in total.center if m != zero]
    which = [j for j, x in enumerate(terms) if len(x.center) > 1]
    shares = [terms[j].center for j in which]
    if not varying or not shares:
        return total
    axes = getattr(node.op, "axis", ())
    values = [x[zero].lower for x in shares]
    outside = _over(axes, [(x < 0.0) | (x > 1.0) for x in values])
    is_one = (outside == 0) & (abs(_over(axes, values) - 1.0) < _CANCELS)
    for order in sorted({sum(m) for m in varying}):
        terms_of_order = 0.0
        for m in (m for m in varying if sum(m) == order):
            size = _over(axes, [abs(x[m].lower) for x in shares if m in x])
            is_one = is_one & (abs(total.center[m].lower) <= _CANCELS * size)
            terms_of_order = terms_of_order + size
        is_one = is_one & (terms_of_order > _TERMS)
        if not is_one.any():
            return total
    is_one = is_one & _adds_up(axes, [[values[j] for j in which] for values in elsewhere()])
    certain = {m: x.lower if m == zero else 0.0 for m, x in total.center.items()}
    box = {
        m: Interval(*(np.where(is_one & ~np.isnan(end), certain.get(m, 0.0), end) for end in x))
        for m, x in total.box.items()
    }
    return Enclosed(total.center, box)


def _adds_up(axes: Any, points: Sequence[Sequence[NDArray]]) -> Any:
    """Whether terms add up to one at all points where they are finite, of which there is one."""
    n_finite: Any = 0
    adds_up: Any = True
    for values in points:
        sizes = _over(axes, [abs(x) for x in values])
        is_finite = np.isfinite(sizes)
        error = abs(_over(axes, values) - 1.0)
        adds_up = adds_up & (~is_finite | (error <= _CANCELS * np.maximum(sizes, 1.0)))
        n_finite = n_finite + is_finite
    return adds_up & (n_finite > 0)


def _over(axes: Any, terms: Sequence[NDArray]) -> Any:
    """Sum of one array over axes, or of several terms."""
    if axes == ():
        return sum(terms[1:], start=0.0 + terms[0])
    return np.sum(terms[0], axis=None if axes is None else tuple(axes))


def _reduce(function: Any, x: Interval, axes: Any) -> Interval:
    if x.is_point:
        return point(function(x.lower, axis=axes))
    return Interval(function(x.lower, axis=axes), function(x.upper, axis=axes))
