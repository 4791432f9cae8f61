"""Rows at given predictors, with derivatives or summed at many points, as compiled loops."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numba
import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity.model.kernel.formula import (
    derivatives,
    derivatives_along,
    indented,
    module_with,
)
from pymc_austerity.model.kernel.generated import Generated
from pymc_austerity.model.kernel.kernel import from_table
from pymc_austerity.model.kernel.row_formula import RowFormula, row_formula_of
from pymc_austerity.model.kernel.scalar import (
    Dependence,
    Names,
    NoKernelError,
    Scalar,
    given,
    or_reason,
    parts_from,
    statements,
)
from pymc_austerity.model.predictors.derivatives import predictor_values
from pymc_austerity.model.predictors.structure import DesignFunction, RowStructure, design_function

_LOOP = """
@njit(error_model="numpy", cache=CACHE, nogil=True)
def derivatives(etas, out, {arrays}):
    for i in range(out.shape[1]):
{body}


"""

_SLOPES = """def derivatives_at(etas, out, table):
    table = carray(pointer(table), ({n_numbers},), np.int64)
    shape = ({n_predictors}, table[0])
    derivatives(
        carray(pointer(etas), shape, np.float64),
        carray(pointer(out), (1 + shape[0], shape[1]), np.float64),
{leaves}
    )
"""
"""The second function takes addresses: of the predictors, of what it fills in, and of a table, in
which are the number of rows, and the address and shape of each array of a block."""

_OF_LEVELS = """
def of_levels_at(point, out, table):
    table = carray(pointer(table), ({n_numbers},), np.int64)
    n, q = table[0], table[1]
    point = carray(pointer(point), (n,), np.float64)
    starts = carray(pointer(table[2]), (n,), np.int64)
    entries = carray(pointer(table[3]), (n,), np.int64)
    coefficients = carray(pointer(table[4]), (n,), np.float64)
    offsets = carray(pointer(table[5]), (n,), np.float64)
    multipliers = carray(pointer(table[6]), (n,), np.float64)
    out = carray(pointer(out), (n,), np.float64)
{leaves}
    i = 0
{common}
    for i in range(n):
{own}
        out[i] = {value}
        for a in range(q):
{left}
            out[n + i * q + a] = {gradient}
            for b in range(q):
{right}
                out[n + n * q + (i * q + a) * q + b] = {hessian}
"""
"""The second function takes addresses: of a point, of what it fills in, and of a table, in which
are the numbers of levels and of the entries of each, addresses of five arrays, and the address and
shape of each array of a block. Lengths of arrays with one axis do not matter."""

_SUM = """eta_{k} = offsets[{k} * n + i]
for term in range(starts[{k} * n + i], starts[{k} * n + i + 1]):
    eta_{k} += coefficients[term] * point[entries[term]]"""

_TOTALS = """
@njit(error_model="numpy", cache=CACHE)
def totals(etas, out, {arrays}):
    common = np.empty(({n_common}, out.size))
    for p in range(out.size):
{of_points}
    for i in range(etas.shape[1]):
{of_row}
        for p in range(out.size):
{own}
            out[p] += {value}
"""

_TITLE = "Rows and their derivatives"
_MOST_OPERATIONS = 2_000
"""Beyond, compiling takes longer than it saves."""


@dataclass(frozen=True, eq=False)
class _Loop(Generated):
    """A compiled loop over rows.

    Attributes
    ----------
    n_outputs : int
        Numbers that a row gives.
    """

    by_arrays: ClassVar = "derivatives"
    n_outputs: int

    def __call__(self, etas: NDArray[np.float64], *inputs: NDArray) -> NDArray[np.float64]:
        """Results for m rows, shape (n_outputs, m), from k predictors, shape (k, m), and a block.

        Directions stand between the predictors and the block.
        """
        out = np.empty((self.n_outputs, etas.shape[1]))
        self._function(etas, out, *inputs)
        return out


@dataclass(frozen=True, eq=False)
class RowSlopes(_Loop):
    """Log-likelihoods of m rows and first derivatives by their k predictors: 1 + k numbers a row.

    The function at `address` takes addresses: of the predictors, shape (k, m); of what it fills in,
    shape (1 + k, m): log-likelihoods in nats, then the derivatives; and of a table, int64: m, and
    for each array of a block its address and its shape.
    """

    by_address: ClassVar = ("derivatives_at", 3, numba.void)


@dataclass(frozen=True, eq=False)
class RowDerivatives(Generated):
    """Log-likelihoods of levels in nats, their gradients and Hessians, as one compiled function.

    They are made of derivatives by some of the predictors. For the function at `address` see
    `pymc_austerity.model.LevelsAsRows.address`.
    """

    by_address: ClassVar = ("of_levels_at", 3, numba.void)


@dataclass(frozen=True, eq=False)
class RowLoops:
    """Rows with first and second derivatives by all k predictors, as two compiled loops.

    Code for the k (k + 1) / 2 second derivatives would take minutes to compile for many predictors;
    the second loop computes the k of them along a direction, and is called k times.

    Attributes
    ----------
    slopes, curvatures : callable
        Log-likelihoods and first derivatives; products of second ones with a direction.
    """

    slopes: _Loop
    curvatures: _Loop

    def first(self, *arguments: NDArray) -> NDArray[np.float64]:
        """Log-likelihoods in nats and first derivatives, from k predictors and a block."""
        etas, block = self._split(arguments)
        return self.slopes(etas, *block)

    def second(self, *arguments: NDArray) -> Iterator[NDArray[np.float64]]:
        """The upper triangle of the second derivatives, row by row."""
        etas, block = self._split(arguments)
        for k, direction in enumerate(np.eye(len(etas))):
            yield from self.curvatures(etas, direction, *block)[k:]

    def _split(self, arguments: Sequence[NDArray]) -> tuple[NDArray[np.float64], list[NDArray]]:
        k = self.curvatures.n_outputs
        return np.stack(arguments[:k]), [np.ascontiguousarray(a) for a in arguments[k:]]


@or_reason
def row_derivatives_of(structure: RowStructure, chosen: Sequence[int]) -> RowDerivatives:
    """Write rows and their derivatives; they are compiled when they are called first.

    Parameters
    ----------
    structure : RowStructure
        Predictors and the function above them.
    chosen : sequence of int
        The r predictors to derive by.

    Returns
    -------
    RowDerivatives or str
        Or the reason why there are none.
    """
    layout = row_formula_of(structure)
    places = [layout.etas[k] for k in chosen]
    slopes = derivatives(layout.root, places)
    curvatures = [c for k, slope in enumerate(slopes) for c in derivatives(slope, places[k:])]
    outputs = [layout.root, *slopes, *curvatures]
    functions = _of_levels(outputs, layout, len(places), structure.types)
    return RowDerivatives(module_with(_TITLE, outputs, functions, _MOST_OPERATIONS))


@or_reason
def row_slopes_of(structure: RowStructure) -> RowSlopes:
    """Write rows and their first derivatives by all predictors.

    Returns
    -------
    RowSlopes or str
        Or the reason why there are none.
    """
    types, k, layout = structure.types, len(structure.predictors), row_formula_of(structure)
    outputs = [layout.root, *derivatives(layout.root, layout.etas)]
    n_numbers = 1 + sum(1 + ndim for _, ndim in types)
    leaves = indented(2, from_table(types, 1))
    by_address = _SLOPES.format(n_numbers=n_numbers, n_predictors=k, leaves=leaves)
    return RowSlopes(_rows(outputs, layout, types) + by_address, 1 + k)


@or_reason
def row_loops_of(structure: RowStructure) -> RowLoops:
    """Write rows with first and second derivatives by all predictors.

    Returns
    -------
    RowLoops or str
        Or the reason why there are none.
    """
    slopes, layout = row_slopes_of(structure), row_formula_of(structure)
    if isinstance(slopes, str):
        raise NoKernelError(slopes)
    directions = [given(f"along[{k}]", "f", Dependence.POINT) for k in range(len(layout.lines))]
    _, products = derivatives_along(layout.root, layout.etas, directions)
    source = _rows(products, layout, structure.types, "along, ")
    return RowLoops(slopes, _Loop(source, len(products)))


def _rows(
    outputs: list[Scalar],
    layout: RowFormula,
    types: Sequence[tuple[str, int]],
    others: str = "",
) -> str:
    """The function of predictors, maybe of something else, and of a block."""
    names = Names("t")
    body = [f"eta_{k} = etas[{k}, i]" for k in range(len(layout.lines))]
    body += statements(outputs, names)
    body += [f"out[{n}, i] = {names.of(output)}" for n, output in enumerate(outputs)]
    arrays = others + ", ".join(f"leaf_{k}" for k in range(len(types)))
    functions = _LOOP.format(arrays=arrays, body=indented(2, body))
    return module_with(_TITLE, outputs, functions, _MOST_OPERATIONS)


def _of_levels(
    outputs: list[Scalar], layout: RowFormula, r: int, types: Sequence[tuple[str, int]]
) -> str:
    """The function of addresses, for levels as rows."""
    are_common, names = [line.is_common for line in layout.lines], Names("t")
    common = _sums(are_common, which=True) + statements(
        parts_from(outputs, Dependence.POINT), names
    )
    own = _sums(are_common, which=False) + statements(outputs, names)
    found = [names.of(output) for output in outputs]
    made = [f"leaf_{k} = {x.removesuffix(',')}" for k, x in enumerate(from_table(types, 7))]
    return _OF_LEVELS.format(
        n_numbers=7 + sum(1 + ndim for _, ndim in types),
        leaves=indented(1, made),
        common=indented(1, common),
        own=indented(2, own),
        value=found[0],
        left=indented(3, [f"u{k} = multipliers[({k} * n + i) * q + a]" for k in range(r)]),
        gradient=" + ".join(f"{found[1 + k]} * u{k}" for k in range(r)) or "0.0",
        right=indented(4, [f"v{k} = multipliers[({k} * n + i) * q + b]" for k in range(r)]),
        hessian=_quadratic_form(found[1 + r :], r),
    )


def _sums(are_common: list[bool], *, which: bool) -> list[str]:
    """Predictors of level i: those that are common to all levels, or the others."""
    chosen = [k for k, is_common in enumerate(are_common) if is_common == which]
    return "\n".join(_SUM.format(k=k) for k in chosen).splitlines()


def _quadratic_form(upper: Sequence[str], r: int) -> str:
    """Of u and v, with the upper triangle of its matrix."""
    pairs = combinations_with_replacement(range(r), 2)
    products = (f"u{k} * v{k}" if k == m else f"(u{k} * v{m} + u{m} * v{k})" for k, m in pairs)
    return " + ".join(f"{c} * {p}" for c, p in zip(upper, products, strict=True)) or "0.0"


# ------------------------------------------------------------------ totals


@dataclass(frozen=True, eq=False)
class RowTotals(Generated):
    """Sums over rows of their log-likelihoods, at many points at once.

    The linear predictors of a block of rows at all points are one product of two matrices.

    Attributes
    ----------
    source : str
        Of the generated module; empty where the formula of a row has no rule.
    designs : callable
        Evaluates the matrices of the predictors.
    by_graph : callable or None
        In its place, ``f(*etas, *block)``: a list of the log-likelihoods of the rows at one point.
    """

    by_arrays: ClassVar = "totals"
    designs: DesignFunction
    by_graph: Callable[..., list] | None = None

    def __call__(self, points: NDArray, *block: NDArray) -> NDArray[np.float64]:
        """Sums over a block of rows, shape (n,), nats.

        Parameters
        ----------
        points : float array, shape (n, d)
        *block : array
            One for each leaf, rows on axis 0, C-contiguous.
        """
        columns = points.T.astype(np.float64, copy=False)
        with np.errstate(all="ignore"):  # what is not finite is rejected
            etas = np.stack([design.eta(columns) for design in self.designs(block)])
            if self.by_graph is not None:
                at_points = (self.by_graph(*etas[..., p], *block) for p in range(len(points)))
                return np.array([float(values.sum()) for (values,) in at_points])
            total = np.zeros(len(points))
            self._function(np.ascontiguousarray(etas), total, *block)
            return total


def row_totals(
    structure: RowStructure, model: pm.Model, *, compile_kwargs: dict[str, Any] | None = None
) -> RowTotals:
    """Make the sums of rows that are functions of linear predictors.

    Parameters
    ----------
    structure : RowStructure
        The rows as a function of linear predictors.
    model : pymc.Model
        The model, for compilation.
    compile_kwargs : dict, optional
        Passed on to ``pymc.compile`` where the formula of a row has no rule.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.model import ModelAt, find_predictors, row_totals, split_log_density
    >>> with pm.Model() as model:
    ...     b = pm.Normal("b", shape=2)
    ...     _ = pm.Poisson("y", pm.math.exp(np.eye(2) @ b), observed=np.zeros(2))
    >>> split = split_log_density(model)
    >>> structure = find_predictors(ModelAt(split, model.value_vars, {}, model.initial_point()))
    >>> row_totals(structure, model)(np.zeros((2, 2)), *split.arrays)
    array([-2., -2.])
    """
    designs = design_function(structure, model)
    try:
        return RowTotals(_source_of_totals(structure), designs)
    except NoKernelError:
        return RowTotals("", designs, predictor_values(structure, model, compile_kwargs))


def _source_of_totals(structure: RowStructure) -> str:
    """Source of the module: what points or rows share is computed once for them.

    Raises
    ------
    NoKernelError
        An operation has no rule, or there are too many.
    """
    layout = row_formula_of(structure)
    lines = range(len(layout.lines))
    shared = {k for k in lines if layout.lines[k].is_common}
    names = Names("t")
    common = parts_from([layout.root], Dependence.POINT)
    of_points = [f"eta_{k} = etas[{k}, 0, p]" for k in lines if k in shared]
    of_points += statements(common, names)
    of_points += [f"common[{n}, p] = {names.of(scalar)}" for n, scalar in enumerate(common)]
    names = Names("r", {scalar: _read(scalar, n) for n, scalar in enumerate(common)})
    of_row = statements(parts_from([layout.root], Dependence.DATA), names)
    own = [f"eta_{k} = etas[{k}, i, p]" for k in lines]
    own += statements([layout.root], names)
    function = _TOTALS.format(
        arrays=", ".join(f"leaf_{k}" for k in range(len(structure.leaves))),
        n_common=len(common),
        of_points=indented(2, of_points),
        of_row=indented(2, of_row),
        own=indented(3, own),
        value=names.of(layout.root),
    )
    title = "Log-likelihoods of rows at many points"
    return module_with(title, [layout.root], function, _MOST_OPERATIONS)


def _read(scalar: Scalar, n: int) -> str:
    """A scalar that was stored as a real number."""
    number = f"common[{n}, p]"
    return {"b": f"({number} != 0.0)", "i": f"int({number})", "f": number}[scalar.kind]
