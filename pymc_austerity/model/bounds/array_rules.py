"""Enclosures of operations on whole arrays: log-sum-exp, reductions and rearrangements."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    CAReduce,
    Constant,
    CumOp,
    DimShuffle,
    LogSoftmax,
    Variable,
    axes_of,
    scalar_name,
)
from pymc_austerity.model.operations import jets
from pymc_austerity.model.operations.enclosures import Enclosed, each
from pymc_austerity.model.operations.jets import Interval, Jet, point, values_of, zero_of
from pymc_austerity.model.rearranging import OF_ALL, OF_ONE, OF_TWO, UNMOVED, moved_inputs, of_type

Axes = tuple[int, ...]
_CANCELS = 1e-6
"""Share of the terms below which their sum is zero but for rounding."""

_TERMS = 1e-8
"""Size of terms that are large enough to tell."""


def operands(node: Any) -> list[Variable]:
    """What the enclosure of a node's result is made from: its inputs, or those of log-sum-exp.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> x = pt.dmatrix("x")
    >>> operands(pt.log(pt.exp(x).sum(axis=1)).owner) == [x]
    True
    """
    reduction = _sum_of_exponentials(node)
    return list(node.inputs if reduction is None else reduction.inputs[0].owner.inputs)


def log_sum_exp(node: Any, x: Enclosed, order: int) -> Enclosed:
    """Enclosure of the logarithm of a sum of exponentials.

    Parameters
    ----------
    node : Apply
        Of the logarithm.
    x : Enclosed
        Exponents, the `operands` of the node.
    order : int

    Raises
    ------
    NotImplementedError
        The sum is over rows.
    """
    reduction, above = _sum_of_exponentials(node), node.inputs[0].owner

    def apply(jet: Jet) -> Jet:
        axes = _not_of_rows(reduction.op.axis, jet)

        def shaped(end: NDArray) -> NDArray:
            total = end.squeeze(axes)
            return total if above is reduction else _shuffled(above.op, total)

        return {m: c.each(shaped) for m, c in _Sum(jet, axes, order).logs.items()}

    return each(apply, x)


def softmax(op: Any, x: Enclosed, order: int) -> Enclosed:
    """Enclosure of a softmax over an axis or of its logarithm.

    Raises
    ------
    NotImplementedError
        It is over rows.
    """

    def apply(jet: Jet) -> Jet:
        axes = _not_of_rows(op.axis, jet)
        if isinstance(op, LogSoftmax):
            return _Sum(jet, axes, order).log_shares()
        return _Sum(jet, axes, order, with_shares=True).shares

    return each(apply, x)


class _Sum:
    r"""The logarithm L of a sum of :math:`e^{x_j}` over some axes, and the shares :math:`p_j`.

    .. math::
        L' = \sum_j p_j x_j', \quad p_j' = p_j (x_j' - L'), \quad p_j = e^{x_j - L}

    give the Taylor coefficients one after the other. Their values come from the ends: L increases
    in every :math:`x_j`, and :math:`p_j` increases in :math:`x_j` and decreases in the others.

    Attributes
    ----------
    logs, shares, differences : Jet
        Of L, with the axes kept; of :math:`p_j`; of :math:`x_j - L`, without its value.
    """

    def __init__(self, jet: Jet, axes: Axes, order: int, *, with_shares: bool = False) -> None:
        self.zero, shape = zero_of(jet), values_of(jet).lower.shape
        self.x = {m: c.each(lambda end: np.broadcast_to(end, shape)) for m, c in jet.items()}
        log, share = _values(self.x[self.zero], axes)
        self.logs, self.shares, self.differences = {self.zero: log}, {self.zero: share}, {}
        for m in jets.indices(len(self.zero), order)[1:]:
            total = self._coefficient(m, self.x)
            if total is not None:
                self.logs[m] = total.each(lambda end: end.sum(axis=axes, keepdims=True))
            parts = [c for c in (self.x.get(m), total and jets.negate(self.logs[m])) if c]
            if parts:
                self.differences[m] = parts[0] if len(parts) == 1 else jets.add(*parts)
            if with_shares or sum(m) < order:
                found = self._coefficient(m, self.differences)
                if found is not None:
                    self.shares[m] = found

    def log_shares(self) -> Jet:
        """Taylor coefficients of the logarithms of the shares."""
        value = jets.add(self.x[self.zero], jets.negate(self.logs[self.zero]))
        if not value.is_point:
            share = self.shares[self.zero]
            ends = np.fmax(value.lower, np.log(share.lower)), np.fmin(value.upper, 0.0)
            value = Interval(ends[0], np.fmin(ends[1], np.log(share.upper)))
        return {self.zero: value} | self.differences

    def _coefficient(self, m: jets.MultiIndex, inner: Jet) -> Interval | None:
        """Coefficient m of a function whose derivative is that of `inner` times the shares."""
        i = next(j for j, n in enumerate(m) if n)
        total: Interval | None = None
        for k, c in inner.items():
            rest = tuple(a - b for a, b in zip(m, k, strict=True))
            if k[i] and min(rest) >= 0 and rest in self.shares:
                term = jets.scale(jets.multiply(c, self.shares[rest]), k[i] / m[i])
                total = term if total is None else jets.add(total, term)
        return total


def _values(x: Interval, axes: Axes) -> tuple[Interval, Interval]:
    """L and the shares themselves."""
    shift = x.upper.max(axis=axes, keepdims=True)
    shift = np.where(np.isneginf(shift), 0.0, shift)
    low, high = np.exp(x.lower - shift), np.exp(x.upper - shift)
    least, most = (ends.sum(axis=axes, keepdims=True) for ends in (low, high))
    if x.is_point:
        return point(shift + np.log(least)), point(low / least)
    share = Interval(
        low / (low + _sum_of_others(high, axes)), high / (high + _sum_of_others(low, axes))
    )
    return Interval(shift + np.log(least), shift + np.log(most)), share


def _sum_of_others(terms: NDArray, axes: Axes) -> NDArray:
    """Sum over some axes without the term itself, which must not be subtracted: it may be large."""
    last = tuple(range(-len(axes), 0))
    moved = np.moveaxis(terms, axes, last)
    flat = moved.reshape(*moved.shape[: -len(axes)], -1)
    others = np.zeros_like(flat)
    others[..., 1:] = np.cumsum(flat[..., :-1], axis=-1)
    others[..., :-1] += np.cumsum(flat[..., :0:-1], axis=-1)[..., ::-1]
    return np.moveaxis(others.reshape(moved.shape), last, axes)


# ------------------------------------------------------------------ the graph
def _sum_of_exponentials(node: Any) -> Any:
    """The sum in log(sum(exp(x))), whether or not the axes are kept; None for other nodes."""
    if scalar_name(node) != "Log":
        return None
    inner = sum_behind(node.inputs[0])
    return inner if inner and scalar_name(inner.inputs[0].owner) == "Exp" else None


def sum_behind(v: Variable) -> Any:
    """The sum over axes that a variable is, whether or not the axes are kept; None for others."""
    node = v.owner
    if node is not None and isinstance(node.op, DimShuffle):
        node = node.inputs[0].owner
    is_sum = scalar_name(node) == "Add" and isinstance(node.op, CAReduce)
    return node if is_sum else None


def _not_of_rows(axis: int | Axes | None, jet: Jet) -> Axes:
    """Axes of a reduction, which must leave the first one."""
    ndim = values_of(jet).lower.ndim
    axes = axes_of(axis, ndim)
    if 0 in axes:
        raise NotImplementedError("a reduction of rows")
    return axes


def _shuffled(op: Any, end: NDArray) -> NDArray:
    moved = end.transpose([k for k in op.new_order if k != "x"])
    return moved[tuple(None if k == "x" else slice(None) for k in op.new_order)]


def is_rearrangement(op: Any) -> bool:
    """Tell whether every entry of the result is an entry, or a sum of entries, of the inputs."""
    is_sum = isinstance(op, CumOp) and op.mode == "add"
    return is_sum or isinstance(op, (*OF_ONE, *OF_TWO, *OF_ALL))


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
    entries = [node.inputs[k] for k in moved_inputs(node)]
    zero = zero_of(known[entries[0]])
    others = [v for v in node.inputs if v not in entries]
    chosen = {v: _chosen(v, fixed) for v in others}
    is_sure = all(known[v][zero].is_point for v in others if v in known)
    is_single = any(v.dtype == "float32" for v in entries) and not isinstance(node.op, UNMOVED)
    # coefficients are in double precision, whatever the model computes in
    result, exact = {}, of_type(node, "float64") if is_single else node
    for m in dict.fromkeys(m for v in entries for m in known[v]):
        nothing = {v: point(np.zeros(known[v][zero].lower.shape)) for v in entries}
        coefficients = {v: known[v].get(m, nothing[v]) for v in entries}
        ends = []
        for end in (0,) if all(c.is_point for c in coefficients.values()) else (0, 1):
            values = chosen | {v: c[end] for v, c in coefficients.items()}
            storage: list[list] = [[None]]
            exact.op.perform(exact, [values[v] for v in node.inputs], storage)
            found = np.asarray(storage[0][0], dtype=np.float64)
            ends.append(found if is_sure else np.full_like(found, np.nan))
        result[m] = Interval(ends[0], ends[-1])
    return result


def _chosen(v: Variable, fixed: Mapping[Variable, NDArray]) -> Any:
    if isinstance(v, Constant):
        return v.data
    if v not in fixed:
        raise NotImplementedError
    return np.asarray(fixed[v])


def reduce_axes(op: Any, jet: Jet) -> Jet:
    """Jet of a reduction.

    Raises
    ------
    NotImplementedError
        The reduction is neither a sum nor a conjunction, or it is over rows.
    """
    functions: dict[str, Any] = {"Add": np.sum, "AND": np.min}
    kind, axes = type(op.scalar_op).__name__, _not_of_rows(op.axis, jet)
    if kind not in functions:
        raise NotImplementedError(kind)
    return {m: x.each(lambda end: functions[kind](end, axis=axes)) for m, x in jet.items()}


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
    zero = zero_of(total.center)
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
