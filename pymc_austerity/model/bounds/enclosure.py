"""Enclosures of every variable of a scalar function over boxes, and norms of derivatives."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    CAReduce,
    Elemwise,
    LogSoftmax,
    Softmax,
    Variable,
    continuous_types,
    discrete_types,
    scalar_name,
)
from pymc_austerity.model.bounds.array_rules import (
    is_rearrangement,
    log_sum_exp,
    operands,
    rearrange,
    reduce_axes,
    softmax,
    with_certain_total,
)
from pymc_austerity.model.bounds.scalar_function import ScalarFunction
from pymc_austerity.model.operations import jets
from pymc_austerity.model.operations.enclosures import Enclosed, NoRuleError, each, of_jets
from pymc_austerity.model.operations.jets import Interval, Jet, MultiIndex, point, values_of
from pymc_austerity.model.operations.table import OPERATIONS, Operation
from pymc_austerity.time_limit import end_if_late


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of predictors and intervals of data.

    Attributes
    ----------
    center, lower, upper : float array, shape (n, k)
        A point of each box, and its ends.
    data : dict of variable to Interval
        Intervals of the data of the rows in each cell.
    examples : dict of variable to array
        The data of one row in each cell, in their own types.
    """

    center: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    data: Mapping[Variable, Interval]
    examples: Mapping[Variable, NDArray]

    @cached_property
    def are_points(self) -> bool:
        """Whether every box is one point."""
        return self.lower is self.upper


def is_by_row(values: NDArray, n_rows: int) -> bool:
    """Whether data have one entry for each row; others are the same for all rows."""
    return np.ndim(values) > 0 and len(values) == n_rows


def of_rows(
    data: Mapping[Variable, NDArray], rows: NDArray[np.intp], n_rows: int
) -> dict[Variable, NDArray]:
    """Data of some of the rows."""
    return {v: x[rows] if is_by_row(x, n_rows) else x for v, x in data.items()}


def _points(data: Mapping[Variable, NDArray]) -> dict[Variable, Interval]:
    return {v: point(np.asarray(x, dtype=np.float64)) for v, x in data.items()}


def at_points(center: NDArray[np.float64], data: Mapping[Variable, NDArray]) -> Boxes:
    """One cell for each row, which is a point."""
    return Boxes(center, center, center, _points(data), data)


def about_rows(
    center: NDArray[np.float64], half_widths: NDArray[np.float64], data: Mapping[Variable, NDArray]
) -> Boxes:
    """One cell for each row, which is a box about its predictors."""
    return Boxes(center, center - half_widths, center + half_widths, _points(data), data)


def about_groups(
    groups: list[NDArray[np.intp]],
    center: NDArray[np.float64],
    half_widths: NDArray[np.float64],
    data: Mapping[Variable, NDArray],
) -> Boxes:
    """One cell for each group of rows, which holds the boxes of all its rows."""
    order = np.concatenate(groups)
    sizes = np.array([len(rows) for rows in groups])
    starts = np.cumsum(sizes) - sizes
    lower = np.minimum.reduceat((center - half_widths)[order], starts)
    upper = np.maximum.reduceat((center + half_widths)[order], starts)
    first, n_rows = order[starts], len(center)
    intervals, examples = {}, {}
    for v, values in data.items():
        if is_by_row(values, n_rows):
            ordered = np.asarray(values[order], dtype=np.float64)
            ends = np.minimum.reduceat(ordered, starts), np.maximum.reduceat(ordered, starts)
            intervals[v] = point(ends[0]) if np.array_equal(*ends) else Interval(*ends)
            examples[v] = values[first]
        else:
            intervals[v], examples[v] = point(np.asarray(values, dtype=np.float64)), values
    return Boxes(center[first], lower, upper, intervals, examples)


class TaylorForm:
    r"""Powers of the differences between the points of boxes and their centers.

    .. math::
        f(\eta) = \sum_{|n| < P} f_n (\eta - c)^n + \sum_{|n| = P} F_n (\eta - c)^n

    with the coefficients :math:`f` at the center, which are exact, and :math:`F` in the box. The
    difference of two functions that are nearly the same is enclosed by it well, and by the
    difference of their enclosures badly.

    Parameters
    ----------
    center, lower, upper : float array, shape (n, k)
        A point of each box, and its ends.
    order : int
        P.
    """

    def __init__(self, center: NDArray, lower: NDArray, upper: NDArray, order: int) -> None:
        down, up = np.minimum(lower - center, 0.0), np.maximum(upper - center, 0.0)
        self.order, self.n_cells = order, len(center)
        indices = jets.indices(center.shape[1], order)
        self.powers = {n: _monomial(down, up, n) for n in indices}

    def tightened(self, x: Enclosed) -> Enclosed:
        """The same with smaller enclosures of the values."""
        natural = values_of(x.box)
        if x.box is x.center or not is_by_row(natural.lower, self.n_cells):
            return x
        form = self._form(x)
        lower = np.where(form.lower > natural.lower, form.lower, natural.lower)
        upper = np.where(form.upper < natural.upper, form.upper, natural.upper)
        return Enclosed(x.center, x.box | {jets.zero_of(x.box): Interval(lower, upper)})

    def _form(self, x: Enclosed) -> Interval:
        ndim = values_of(x.box).lower.ndim
        total = point(np.zeros((1,) * ndim))
        for n, power in self.powers.items():
            coefficient = (x.center if sum(n) < self.order else x.box).get(n)
            if coefficient is not None:
                along = power.each(lambda end: end.reshape(-1, *(1,) * (ndim - 1)))
                total = jets.add(total, jets.multiply(coefficient, along))
        return total


def _power(x: Interval, exponent: int) -> Interval:
    """Power, above zero, of intervals that hold zero."""
    if exponent % 2:
        return Interval(x.lower**exponent, x.upper**exponent)
    return Interval(np.zeros_like(x.lower), np.maximum(-x.lower, x.upper) ** exponent)


def _monomial(down: NDArray, up: NDArray, exponents: MultiIndex) -> Interval:
    total = point(np.ones(len(down)))
    for j, exponent in enumerate(exponents):
        if exponent:
            total = jets.multiply(total, _power(Interval(down[:, j], up[:, j]), exponent))
    return total


Known = dict[Variable, Enclosed]
Fixed = Mapping[Variable, NDArray]

_SCALES = (1.0, 0.1, 0.01)
"""Of the random steps that tell whether a sum is constant. A form of probabilities that holds
within limits alone, such as those of ordered categories, is defined after the short ones."""


def enclose(function: ScalarFunction, cells: Boxes, order: int) -> Enclosed:
    """Enclosures of the Taylor coefficients of the log-likelihood over cells.

    Parameters
    ----------
    function : ScalarFunction
    cells : Boxes
        Where to evaluate it.
    order : int
        Highest order.

    Returns
    -------
    Enclosed
        NaN where the log-likelihood is not defined, or a check of parameters may fail, in the cell.

    Raises
    ------
    NoRuleError
        The message names the operation that has no rule.
    """
    with np.errstate(all="ignore"):
        return _walk(function, cells, order)[function.value]


def first_unbounded(function: ScalarFunction, cells: Boxes, order: int) -> str:
    """Name of the first operation whose result has no finite enclosure for some cell."""
    with np.errstate(all="ignore"):
        known = _walk(function, cells, order)
    unbounded = (
        _name(node)
        for node in function.nodes
        if not all(np.isfinite(end).all() for x in known[node.outputs[0]].box.values() for end in x)
    )
    return next(unbounded)


def _walk(function: ScalarFunction, cells: Boxes, order: int) -> Known:
    k = function.n_predictors
    known: Known = {}
    for v, data in cells.data.items():
        example = np.asarray(cells.examples[v], dtype=np.float64)
        # what holds for the data of one row need not hold for those of a group
        center = jets.constant_jet(np.where(data.lower == data.upper, example, np.nan), k)
        known[v] = Enclosed(center, center if data.is_point else {(0,) * k: data})
    for j, variable in enumerate(function.predictors):
        x = jets.predictor(point(cells.center[:, j]), j, k)
        box = Interval(cells.lower[:, j], cells.upper[:, j])
        known[variable] = Enclosed(x, x if cells.are_points else jets.predictor(box, j, k))
    layout = function.layout_of(len(cells.center))
    for v, values in layout.items():
        x = jets.constant_jet(np.asarray(values, dtype=np.float64), k)
        known[v] = Enclosed(x, x)
    fixed = {**cells.examples, **layout}
    steps, elsewhere = _steps(function, cells, order), _Elsewhere(function, cells)
    for node in function.nodes:
        end_if_late()
        try:
            known[node.outputs[0]] = _apply(node, known, fixed, steps, elsewhere, order)
        except NotImplementedError:
            raise NoRuleError(_name(node)) from None
    return known


def _steps(function: ScalarFunction, cells: Boxes, order: int) -> TaylorForm | None:
    """TaylorForm from the centers, where these have the data of all rows of their cells."""
    if cells.are_points or not function.has_rows_first:
        return None
    if not all(data.is_point for data in cells.data.values()):
        return None
    return TaylorForm(cells.center, cells.lower, cells.upper, order)


class _Elsewhere:
    """Values with the data of the same rows at random predictors, near and far from the centers.

    The steps away from the centers are the same for all cells, so that what is found for a row
    does not depend on the others.
    """

    def __init__(self, function: ScalarFunction, cells: Boxes) -> None:
        self.function, self.cells = function, cells

    @cached_property
    def known(self) -> list[Known]:
        """All variables, for each of the steps."""
        rng, k = np.random.default_rng(8), self.function.n_predictors
        steps = (scale * rng.standard_normal(k) for scale in _SCALES)
        return [
            _walk(self.function, at_points(self.cells.center + step, self.cells.examples), 0)
            for step in steps
        ]

    def terms(self, node: Any) -> Iterator[list[NDArray]]:
        """Values of the terms that a node adds up, at each of the points."""
        for known in self.known:
            yield [values_of(_as_number(node, v, known).center).lower for v in node.inputs]


def _apply(
    node: Any,
    known: Known,
    fixed: Fixed,
    steps: TaylorForm | None,
    elsewhere: _Elsewhere,
    order: int,
) -> Enclosed:
    op = node.op
    if isinstance(op, Elemwise):
        return each(_broadcast, _elementwise(node, known, steps, elsewhere, order))
    if isinstance(op, CAReduce):
        numbers = _as_number(node, node.inputs[0], known)
        total = each(lambda jet: reduce_axes(op, jet), numbers)
        if steps is None or scalar_name(node) != "Add":
            return total
        return with_certain_total(node, [numbers], total, lambda: elsewhere.terms(node))
    if isinstance(op, LogSoftmax | Softmax):
        return each(_broadcast, softmax(op, known[node.inputs[0]], order))
    if is_rearrangement(op):
        inputs = {v: _as_number(node, v, known) for v in node.inputs if v in known}
        moved = of_jets(lambda x, _: rearrange(node, dict(zip(inputs, x, strict=True)), fixed))
        return moved(list(inputs.values()), order)
    raise NotImplementedError


def _elementwise(
    node: Any, known: Known, steps: TaylorForm | None, elsewhere: _Elsewhere, order: int
) -> Enclosed:
    kind, inputs = scalar_name(node), operands(node)
    if inputs != node.inputs:
        return log_sum_exp(node, known[inputs[0]], order)
    if kind == "Log1p" and scalar_name(inputs[0].owner) == "Sqr":
        kind, inputs = "Log1pOfSquare", inputs[0].owner.inputs
    if kind == "Cast" and node.outputs[0].dtype == "bool":
        raise NotImplementedError
    if kind == "Cast" and _loses_fractions(node):
        kind = "Trunc"
    row = OPERATIONS.get(kind, Operation())
    if row.bound is None:
        raise NotImplementedError
    enclosed = [_as_number(node, v, known) for v in inputs]
    if steps is not None and row.is_steep:
        pairs = zip(inputs, enclosed, strict=True)
        enclosed = [x if v.dtype == "bool" else steps.tightened(x) for v, x in pairs]
    result = row.bound(enclosed, order)
    if steps is None or kind != "Add":
        return result
    return with_certain_total(node, enclosed, result, lambda: elsewhere.terms(node))


def _loses_fractions(node: Any) -> bool:
    return node.inputs[0].dtype in continuous_types and node.outputs[0].dtype in discrete_types


def _as_number(node: Any, v: Variable, known: Known) -> Enclosed:
    """A condition in arithmetic is a step, and is unknown where it is not certain."""
    x = known[v]
    is_choice = scalar_name(node) == "Switch"
    if v.dtype != "bool" or node.outputs[0].dtype == "bool" or (is_choice and v is node.inputs[0]):
        return x
    return each(_certain, x)


def _certain(jet: Jet) -> Jet:
    sure = {m: x.lower == x.upper for m, x in jet.items()}
    return {m: Interval(*(np.where(sure[m], end, np.nan) for end in x)) for m, x in jet.items()}


def _broadcast(jet: Jet) -> Jet:
    """Coefficients of one shape, as later indexing and reshaping needs them."""
    shape = np.broadcast_shapes(*(x.lower.shape for x in jet.values()))
    if all(x.lower.shape == shape for x in jet.values()):
        return jet
    return {m: x.each(lambda end: np.broadcast_to(end, shape)) for m, x in jet.items()}


def _name(node: Any) -> str:
    return scalar_name(node).lower() or type(node.op).__name__


# ------------------------------------------------------------------ norms of derivatives


@np.errstate(invalid="ignore", over="ignore")
def norms(
    jet: Jet, orders: range, lengths: NDArray[np.float64], spread: NDArray[np.float64]
) -> list[NDArray[np.float64]]:
    """Bounds on the norms of the derivatives of some orders in whitened coordinates.

    One is NaN where any coefficient is, of whatever order: a row that is not smooth has no bound.

    Parameters
    ----------
    jet : Jet
    orders : range
    lengths : float array, shape (n, k)
        Of the predictors' rows of Z.
    spread : float array, shape (n,)
        Largest eigenvalue of the matrix of cosines between these.
    """
    unknown = sum(np.multiply(end, 0.0) for x in jet.values() for end in x)
    found = []
    for q in orders:
        total = np.zeros(len(lengths)) + unknown
        squares = total.copy()
        for m, x in jet.items():
            if sum(m) == q:
                entry = np.maximum(abs(x.lower), abs(x.upper))
                entry = entry * np.prod(lengths ** np.array(m), axis=1)
                total = total + factorial(q) * entry
                # each of the q! / m! equal entries of the tensor is m! times the coefficient
                squares = squares + factorial(q) * np.prod([factorial(j) for j in m]) * entry**2
        found.append(np.minimum(total, np.sqrt(squares * spread**q)))
    return found


def smallest_taylor_form(
    here: Sequence[NDArray], inside: Sequence[NDArray], radius: Any
) -> NDArray[np.float64]:
    """The smallest of the bounds on third derivatives of order 3, 4, ... in the radius.

    Parameters
    ----------
    here : sequence of arrays
        Norms of the derivatives of order 3, 4, ... at the center.
    inside : sequence of arrays
        The same over the box, one order more.
    radius : float, or float array with one for each box
    """
    smallest, exact = inside[0], np.zeros_like(inside[0])
    for n, at_center in enumerate(here):
        exact = exact + radius**n / factorial(n) * at_center
        form = exact + radius ** (n + 1) / factorial(n + 1) * inside[n + 1]
        smallest = np.fmin(smallest, form)
    return smallest
