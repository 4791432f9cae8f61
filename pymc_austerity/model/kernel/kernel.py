"""Compiled differences of rows between two points, by one small loop, and its source."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.model.kernel.formula import (
    apply,
    derivatives_along,
    indented,
    module_with,
    stripped,
)
from pymc_austerity.model.kernel.generated import Generated
from pymc_austerity.model.kernel.row_formula import (
    DotProduct,
    Line,
    Lookup,
    RowFormula,
    row_formula_of,
)
from pymc_austerity.model.kernel.scalar import (
    Dependence,
    Names,
    Scalar,
    given,
    largest_parts,
    literal,
    or_reason,
    statements,
    subterms,
)
from pymc_austerity.model.predictors.structure import RowStructure

_FUNCTIONS = """
@njit(error_model="numpy", cache=CACHE)
def log_density({parameters}):
{formula}

{expansion}
@njit(error_model="numpy", fastmath={{"reassoc", "contract", "nsz"}}, cache=CACHE)
def differences(proposed, current, starts, rows, out, {arrays}):
{before}
    for n in range(out.size):
        i = rows[n]
{row}
        out[n] = {value}


def differences_at(proposed, current, starts, rows, n_rows, table, out):
    table = carray(pointer(table), ({n_numbers},), np.int64)
    differences(
        carray(pointer(proposed), (n_rows,), np.float64),
        carray(pointer(current), (n_rows,), np.float64),
        carray(pointer(starts), (n_rows,), np.uint64),
        carray(pointer(rows), (n_rows,), np.uint64),
        carray(pointer(out), (n_rows,), np.float64),
{leaves}
    )
"""
"""Sums over columns may be reordered, so that they use vector instructions; formulas may not.

The second function takes addresses; in the table are those of the arrays, each followed by the
array's shape. Lengths of other arrays do not matter, but that of the output.
"""

_EXPANSION = """
@njit(error_model="numpy", cache=CACHE)
def expansion({parameters}):
{formula}

"""
"""Of the difference of a row about the anchor, where its derivatives there are not stored."""

_POINTS = {"new": "proposed", "old": "current", "fixed": "anchor"}
"""Names of the points in those of predictors, and their entries. Those of the anchor follow the
starts of the terms, as bits."""


@dataclass(frozen=True, eq=False)
class _Formula:
    """A log-density as a function of scalars that are computed before it.

    Attributes
    ----------
    root : Scalar
        The log-density.
    point, data : list of Scalar
        What depends on the point alone, and on the data of the row alone.
    """

    root: Scalar
    etas: list[Scalar]
    point: list[Scalar]
    data: list[Scalar]

    @property
    def parameters(self) -> dict[Scalar, str]:
        """Names in the compiled function."""
        names = {eta: str(eta.value) for eta in self.etas}
        names |= {scalar: f"p{k}" for k, scalar in enumerate(self.point)}
        return names | {scalar: f"d{k}" for k, scalar in enumerate(self.data)}


def source_of(
    layout: RowFormula, types: Sequence[tuple[str, int]], order: int, *, by_row: bool = False
) -> str:
    """Source of a module with `differences`, and `log_density` of one row.

    Parameters
    ----------
    layout : RowFormula
        Predictors and formula.
    types : sequence of (str, int)
        Dtype and ndim of the arrays of a block, without the constants at the anchor.
    order : {0, 1, 2}
        Plain differences, or residuals of an expansion of that order.
    by_row : bool
        Whether rows are expanded when they are read; else their derivatives at the anchor are
        constants.

    Notes
    -----
    There are no data of rows in it, so models that differ in these alone have one source.
    """
    formula, k = _split(stripped(layout.root)), len(layout.lines)
    expanded = _split(_expansion(layout, order)) if by_row else None
    is_stored = order > 0 and not by_row
    arrays = [f"leaf_{k}" for k in range(len(types))] + ["constants"] * is_stored
    stored = [*types, *[("float64", 2)] * is_stored]
    points = {"new": Names("new_t"), "old": Names("old_t")}
    before = _starts(layout.lines) + _common(layout.lines, formula, points)
    rows, data, module = Names("d"), list(formula.data), ""
    if expanded is not None:
        points["fixed"] = Names("fixed_t")
        before += ["anchor = starts.view(np.float64)"]
        before += _common(layout.lines, expanded, {"fixed": points["fixed"]})
        module = _EXPANSION.format(**_function(expanded))
        data += expanded.data
    parts = [part for line in layout.lines for part in line.parts]
    row = statements([*data, *parts], rows)
    row += _etas(layout.lines, rows, list(points))
    value = [
        " - ".join(_called("log_density", formula, points[w], rows, w) for w in ("new", "old"))
    ]
    if expanded is not None:
        value.append(_called("expansion", expanded, points["fixed"], rows, "fixed"))
    elif order > 0:
        value += [f"constants[i, {k + a}] * {_step(a)}" for a in range(k)]
        value += _second_order(k) if order > 1 else []
        value.append("common")
        before += ["n_entries = starts[n_terms]"]
        row += _of_common_functions(_n_constants(k))
    functions = _FUNCTIONS.format(
        **_function(formula),
        expansion=module,
        arrays=", ".join(arrays),
        n_numbers=sum(1 + ndim for _, ndim in stored),
        leaves=indented(2, from_table(stored)),
        before=indented(1, before),
        row=indented(2, row),
        value="(\n            " + "\n            - ".join(value) + "\n        )",
    )
    title = "Row differences of a log-likelihood"
    roots = [layout.root if expanded is None else expanded.root, layout.root, *parts]
    return module_with(title, roots, functions, None)


def _function(formula: _Formula) -> dict[str, str]:
    """Parameters and body of a function that computes a formula."""
    names = Names("t", formula.parameters)
    body = [*statements([formula.root], names), f"return {names.of(formula.root)}"]
    parameters = ", ".join(formula.parameters.values())
    return {"parameters": parameters, "formula": indented(1, body)}


def _expansion(layout: RowFormula, order: int) -> Scalar:
    """First and second order of the difference of a row, of predictors at the anchor.

    The second one is d' H m, with d the difference of the points and m the distance of their middle
    from the anchor.
    """
    k = len(layout.lines)
    steps, middles = (
        [given(f"{name}_{a}", "f", Dependence.PREDICTOR) for a in range(k)]
        for name in ("step", "middle")
    )
    slope, curvatures = derivatives_along(layout.root, layout.etas, steps)
    if order == 1:
        return slope
    products = [apply("Mul", [c, m], "f") for c, m in zip(curvatures, middles, strict=True)]
    return apply("Add", [slope, *products], "f")


def from_table(types: Sequence[tuple[str, int]], first: int = 0) -> list[str]:
    """Arrays from their addresses and shapes in a table, from `first` on."""
    code = []
    for dtype, ndim in types:
        shape = ", ".join(f"table[{first + 1 + axis}]" for axis in range(ndim))
        name = "bool_" if dtype == "bool" else dtype
        code.append(f"carray(pointer(table[{first}]), ({shape},), np.{name}),")
        first += 1 + ndim
    return code


def _split(root: Scalar) -> _Formula:
    """Find scalars that are computed once for all rows, or once for both points."""

    def is_outside(scalar: Scalar) -> bool:
        return scalar.name == "given" or scalar.sources in (Dependence.POINT, Dependence.DATA)

    outside = [s for s in largest_parts([root], is_outside) if not s.is_constant]
    return _Formula(
        root,
        [s for s in outside if s.sources == Dependence.PREDICTOR],
        [s for s in outside if s.sources == Dependence.POINT],
        [s for s in outside if s.sources == Dependence.DATA],
    )


def _starts(lines: Sequence[Line]) -> list[str]:
    """Where the entries of each term begin; unsigned, so that no index is taken from the end."""
    terms = [f"start_{k}_{n}" for k, line in enumerate(lines) for n in range(len(line.terms))]
    code = [f"{name} = starts[{number}]" for number, name in enumerate(terms)]
    return [*code, f"n_terms = np.uint64({len(terms)})"]


def _entry(which: str, position: str) -> str:
    """An entry of a point."""
    return f"{_POINTS[which]}[{position}{' + n_terms' * (which == 'fixed')}]"


def _common(lines: Sequence[Line], formula: _Formula, points: dict[str, Names]) -> list[str]:
    """Predictors that are the same for all rows, and scalars of these alone."""
    code = []
    for which, names in points.items():
        for k, line in enumerate(lines):
            if line.is_common:
                terms = [
                    f"{literal(term.coefficient)} * {_entry(which, f'start_{k}_{n}')}"
                    for n, term in enumerate(line.terms)
                    if isinstance(term, Lookup)
                ]
                code.append(f"{which}_{k} = {' + '.join([literal(line.offset), *terms])}")
        for scalar in subterms(formula.point):
            if scalar.name == "given":
                names.known[scalar] = str(scalar.value).replace("eta", which)
        code += statements(formula.point, names)
    return code


def _etas(lines: Sequence[Line], names: Names, points: list[str]) -> list[str]:
    """Predictors of the row at all points."""
    code = []
    for k, line in enumerate(lines):
        if line.is_common:
            continue
        code.append(f"{' = '.join(f'{w}_{k}' for w in points)} = {names.of(line.offset)}")
        for n, term in enumerate(line.terms):
            start = f"start_{k}_{n}"
            if isinstance(term, DotProduct):
                leaf, position = f"leaf_{term.leaf}", f"{start} + np.uint64(j)"
                if term.columns is not None:
                    position = f"{start} + np.uint64(leaf_{term.columns}[i, j])"
                code += [f"{' = '.join(points)} = 0.0", f"for j in range({leaf}.shape[1]):"]
                code += [f"    {w} += {leaf}[i, j] * {_entry(w, position)}" for w in points]
                scale = repr(term.scale)
            else:
                code.append(f"at = {start} + np.uint64({names.of(term.index)})")
                code += [f"{w} = {_entry(w, 'at')}" for w in points]
                scale = names.of(term.coefficient)
            scaled = "{}" if scale == "1.0" else f"{scale} * {{}}"
            code += [f"{w}_{k} += {scaled.format(w)}" for w in points]
    return code


def _called(function: str, formula: _Formula, names: Names, rows: Names, which: str) -> str:
    """A function called at one of the points."""
    arguments = [_argument(str(eta.value), which) for eta in formula.etas]
    arguments += [names.of(scalar) for scalar in formula.point]
    arguments += [rows.of(scalar) for scalar in formula.data]
    return f"{function}({', '.join(arguments)})"


def _argument(name: str, which: str) -> str:
    kind, number = name.split("_")
    if kind == "eta":
        return f"{which}_{number}"
    fixed = f"fixed_{number}"
    return _step(number) if kind == "step" else _middle(number, fixed)


def _second_order(k: int) -> list[str]:
    """Half of (b - s)' H (b - s) - (a - s)' H (a - s), which is (b - a)' H (b + a - 2 s)."""
    pieces, column = [], 2 * k
    for a in range(k):
        for b in range(a, k):
            product = f"{_step(a)} * {_middle(b, f'constants[i, {b}]')}"
            if a != b:
                product = f"({product} + {_step(b)} * {_middle(a, f'constants[i, {a}]')})"
            pieces.append(f"constants[i, {column}] * {product}")
            column += 1
    return pieces


def _of_common_functions(first: int) -> list[str]:
    """A combination of functions that rows share; its coefficients follow the derivatives."""
    entry = "n_entries + np.uint64(j)"
    return [
        "common = 0.0",
        f"for j in range(constants.shape[1] - {first}):",
        f"    common += constants[i, {first} + j] * (proposed[{entry}] - current[{entry}])",
    ]


def _n_constants(k: int) -> int:
    """Predictors, first derivatives and second ones of a row."""
    return 2 * k + k * (k + 1) // 2


def _step(a: int | str) -> str:
    return f"(new_{a} - old_{a})"


def _middle(a: int | str, fixed: str) -> str:
    return f"(0.5 * (new_{a} + old_{a}) - {fixed})"


@dataclass(frozen=True, eq=False)
class CommonFunctions:
    r"""Functions of a point that are combinations of the residuals of a few rows.

    Attributes
    ----------
    block : tuple of arrays
        Data of m rows, and their constants.
    anchor : float array
        The point about which these are expanded.
    combinations : float array, shape (m, r)
        Of their residuals, for each of the functions.
    """

    block: tuple[NDArray, ...]
    anchor: NDArray[np.float64]
    combinations: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Kernel(Generated):
    """Row differences, or residuals of their expansion, as a compiled function.

    The function at `address` takes seven integers and evaluates rows by their positions: addresses
    of the two points, entries in the order of the terms, and of `starts`; of the positions, uint64;
    their number; addresses of a table and of the output, float64. In the table, int64, each array
    of a block has its address and its shape.

    Attributes
    ----------
    order : {0, 1, 2}
        Order of the expansion about the anchor; 0 for plain differences.
    n_predictors : int
        Linear predictors of a row, k.
    types : tuple of (str, int)
        Dtype and ndim of the arrays of a block.
    starts : unsigned int array
        Where the entries begin that each term of the predictors reads. Behind them is where those
        end, of a kernel with constants, or the bits of the anchor, of a kernel `at` one.
    entries : int array or None
        Entries of the point to be put in the order of the terms; None where the terms read
        contiguous entries of the point itself.
    by_row : bool
        Whether rows are expanded when they are read, about the anchor that `at` gives, instead of
        with constants.
    common : CommonFunctions or None
        Functions of the point whose combinations are subtracted from the residuals.
    """

    by_address: ClassVar = ("differences_at", 7, numba.void)
    by_arrays: ClassVar = "differences"
    order: int
    n_predictors: int
    types: tuple[tuple[str, int], ...]
    starts: NDArray[np.uint64]
    entries: NDArray[np.int64] | None
    by_row: bool = False
    common: CommonFunctions | None = None

    def __call__(self, proposed: NDArray, current: NDArray, *block: NDArray) -> NDArray[np.float64]:
        """Differences of the log-densities of rows, float64 array, shape (m,), nats.

        Parameters
        ----------
        proposed, current : float array, shape (d,)
        *block : array
            One for each leaf, rows on axis 0, C-contiguous. For residuals one more: constants at
            the anchor, float64, shape (m, `n_constants`): the k predictors, the k first
            derivatives, and the upper triangle of the second derivatives by rows; then the
            coefficients of the common functions.
        """
        return self._between(self.ordered(proposed), self.ordered(current), block)

    def _between(self, new: NDArray, old: NDArray, block: Sequence[NDArray]) -> NDArray[np.float64]:
        rows, out = np.arange(len(block[0]), dtype=np.uint64), np.empty(len(block[0]))
        self._function(new, old, self.starts, rows, out, *block)
        return out

    @property
    def n_constants(self) -> int:
        """Derivatives stored for each row, 2k + k(k+1)/2 numbers, or none."""
        return _n_constants(self.n_predictors) * (self.order > 0 and not self.by_row)

    def at(self, anchor: NDArray) -> "Kernel":
        """The kernel that expands rows about an anchor, shape (d,)."""
        bits = self.ordered(anchor).view(np.uint64)
        return replace(self, starts=np.concatenate([self.starts, bits]))

    def differences(
        self, proposed: NDArray, current: NDArray, *block: NDArray
    ) -> NDArray[np.float64]:
        """Plain differences of rows, nats, shape (m,), of a kernel that is not `by_row`."""
        no_expansion = [np.zeros((len(block[0]), self.n_constants))] * (self.n_constants > 0)
        return self(proposed, current, *block, *no_expansion)

    def ordered(self, point: NDArray) -> NDArray[np.float64]:
        """Entries of a point as the compiled function takes them, and the common functions."""
        point = np.ascontiguousarray(point, dtype=np.float64)
        point = point if self.entries is None else point.take(self.entries)
        if self.common is None:
            return point
        residuals = self._between(point, self.common.anchor, self.common.block)
        return np.concatenate([point, residuals @ self.common.combinations])

    def sharing(self, common: "CommonFunctions") -> "Kernel":
        """The kernel of residuals that are known up to combinations of common functions."""
        return replace(self, common=replace(common, anchor=self.ordered(common.anchor)))

    def compile(self) -> None:
        """Compile now, or read what an earlier process compiled."""
        _ = self._function

    @cached_property
    def _function(self) -> Any:
        function = super()._function
        points, positions, out = [("float64", 1)] * 2, [("uint64", 1)] * 2, ("float64", 1)
        types = [*points, *positions, out, *self.types]
        types += [("float64", 2)] * (self.n_constants > 0)
        function.compile(
            tuple(numba.types.Array(numba.from_dtype(np.dtype(t)), n, "C") for t, n in types)
        )
        return function


def kernel_of(structure: RowStructure, order: int, *, by_row: bool = False) -> Kernel | str:
    """Write and compile the kernel of rows that are functions of linear predictors.

    Parameters
    ----------
    structure : RowStructure
        Predictors and the function above them.
    order : {0, 1, 2}
        Plain differences, or residuals of an expansion of that order.
    by_row : bool
        As in `Kernel`.

    Returns
    -------
    Kernel or str
        Or the reason why there is none.
    """
    kernel = written_kernel(structure, order, by_row=by_row)
    if isinstance(kernel, Kernel):
        kernel.compile()
    return kernel


@or_reason
def written_kernel(structure: RowStructure, order: int, *, by_row: bool = False) -> Kernel:
    """The same, not yet compiled."""
    layout, types = row_formula_of(structure), structure.types
    source = source_of(layout, types, order, by_row=by_row)
    starts, entries = _positions(layout)
    if order > 0 and not by_row:
        n_entries = structure.size if entries is None else entries.size
        starts = np.append(starts, np.uint64(n_entries))
    return Kernel(source, order, len(layout.lines), types, starts, entries, by_row)


def _positions(layout: RowFormula) -> tuple[NDArray[np.uint64], NDArray[np.int64] | None]:
    """Where terms begin, and the entries of the point in the order of the terms if it differs."""
    terms = [term.entries for line in layout.lines for term in line.terms]
    if all(np.array_equal(t, np.arange(t[0], t[0] + len(t))) for t in terms):
        return np.array([t[0] for t in terms], dtype=np.uint64), None
    starts = np.cumsum([0, *map(len, terms[:-1])])
    return starts.astype(np.uint64), np.concatenate(terms).astype(np.int64)
