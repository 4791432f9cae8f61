"""Enclosures of log-sum-exp and softmax, each as one smooth operation."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import CAReduce, DimShuffle, LogSoftmax, Variable
from pymc_austerity.model.operations.enclosures import Enclosed, values_of
from pymc_austerity.model.operations.jets import (
    Interval,
    Jet,
    MultiIndex,
    add,
    multiply,
    negate,
    point,
    scale,
)
from pymc_austerity.model.operations.table import scalar_name

__all__ = ["log_sum_exp", "operands", "softmax"]

Axes = tuple[int, ...]


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
    return list(node.inputs) if reduction is None else [_exponents(reduction)]


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
        logs = _Sum(jet, axes, order).logs
        squeezed = {m: _each_end(lambda end: end.squeeze(axes), c) for m, c in logs.items()}
        if above is reduction:
            return squeezed
        return {m: _each_end(lambda end: _shuffled(above.op, end), c) for m, c in squeezed.items()}

    center = apply(x.center)
    return Enclosed(center, center if x.box is x.center else apply(x.box))


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

    center = apply(x.center)
    return Enclosed(center, center if x.box is x.center else apply(x.box))


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
        n_predictors = len(next(iter(jet)))
        self.zero = (0,) * n_predictors
        self.x = {m: _broadcast(c, values_of(jet)) for m, c in jet.items()}
        log, share = _values(self.x[self.zero], axes)
        self.logs, self.shares, self.differences = {self.zero: log}, {self.zero: share}, {}
        for m in _indices(n_predictors, order):
            total = self._coefficient(m, self.x)
            if total is not None:
                self.logs[m] = _each_end(lambda end: end.sum(axis=axes, keepdims=True), total)
            parts = [c for c in (self.x.get(m), total and negate(self.logs[m])) if c]
            if parts:
                self.differences[m] = parts[0] if len(parts) == 1 else add(*parts)
            if with_shares or sum(m) < order:
                found = self._coefficient(m, self.differences)
                if found is not None:
                    self.shares[m] = found

    def log_shares(self) -> Jet:
        """Taylor coefficients of the logarithms of the shares."""
        value = add(self.x[self.zero], negate(self.logs[self.zero]))
        if not value.is_point:
            share = self.shares[self.zero]
            ends = np.fmax(value.lower, np.log(share.lower)), np.fmin(value.upper, 0.0)
            value = Interval(ends[0], np.fmin(ends[1], np.log(share.upper)))
        return {self.zero: value} | self.differences

    def _coefficient(self, m: MultiIndex, inner: Jet) -> Interval | None:
        """Coefficient m of a function whose derivative is that of `inner` times the shares."""
        i = next(j for j, n in enumerate(m) if n)
        total: Interval | None = None
        for k, c in inner.items():
            rest = tuple(a - b for a, b in zip(m, k, strict=True))
            if k[i] and min(rest) >= 0 and rest in self.shares:
                term = scale(multiply(c, self.shares[rest]), k[i] / m[i])
                total = term if total is None else add(total, term)
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


def _indices(n_predictors: int, order: int) -> Iterator[MultiIndex]:
    """All multi-indices but zero up to an order, low orders first."""
    every = [m for m in product(range(order + 1), repeat=n_predictors) if 0 < sum(m) <= order]
    return iter(sorted(every, key=sum))


# ------------------------------------------------------------------ the graph


def _sum_of_exponentials(node: Any) -> Any:
    """The sum in log(sum(exp(x))), whether or not the axes are kept; None for other nodes."""
    if scalar_name(node) != "Log":
        return None
    inner = node.inputs[0].owner
    if inner is not None and isinstance(inner.op, DimShuffle):
        inner = inner.inputs[0].owner
    if inner is None or not isinstance(inner.op, CAReduce) or scalar_name(inner) != "Add":
        return None
    return inner if scalar_name(inner.inputs[0].owner) == "Exp" else None


def _exponents(reduction: Any) -> Variable:
    exponents: Variable = reduction.inputs[0].owner.inputs[0]
    return exponents


def _not_of_rows(axis: int | Axes | None, jet: Jet) -> Axes:
    """Axes of a reduction, which must leave the first one."""
    ndim = values_of(jet).lower.ndim
    axes = tuple(range(ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = tuple(k % ndim for k in axes)
    if 0 in axes:
        raise NotImplementedError("a reduction of rows")
    return axes


def _shuffled(op: Any, end: NDArray) -> NDArray:
    moved = end.transpose([k for k in op.new_order if k != "x"])
    return moved[tuple(None if k == "x" else slice(None) for k in op.new_order)]


def _broadcast(x: Interval, like: Interval) -> Interval:
    return _each_end(lambda end: np.broadcast_to(end, like.lower.shape), x)


def _each_end(function: Callable[[NDArray], NDArray], x: Interval) -> Interval:
    return point(function(x.lower)) if x.is_point else Interval(*map(function, x))
