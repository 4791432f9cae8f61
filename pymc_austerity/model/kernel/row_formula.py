"""Linear predictors, and the formula of a row above them, in terms that code is written from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    UNSUITABLE,
    Variable,
    ancestors,
    clone_replace,
    rewrite_graph,
    stabilized,
)
from pymc_austerity.model.cut.known import behind, is_cast
from pymc_austerity.model.kernel.cells import Cells, filled, kind_of, unrolled
from pymc_austerity.model.kernel.formula import apply, cast
from pymc_austerity.model.kernel.scalar import Dependence, Scalar, constant, given
from pymc_austerity.model.predictors.structure import Predictor, RowStructure, Term
from pymc_austerity.model.rewritten import inlined


def prepared(function: Variable) -> Variable:
    """Rewrite a graph into stable and cheap operations, without loops or fused operations."""
    (graph,) = inlined([clone_replace(function, {}, rebuild_strict=False)])
    return rewrite_graph(
        stabilized(graph),
        include=("canonicalize", "stabilize", "specialize"),
        exclude=("local_pow_to_nested_squaring", *UNSUITABLE),
    )


@dataclass(frozen=True, eq=False)
class DotProduct:
    """A sum of products of a leaf's columns with entries of the point.

    Attributes
    ----------
    leaf : int
        Which leaf, of shape (m, p), or (m, k) where another one picks the entries.
    columns : int or None
        Which one that is, of shape (m, k).
    entries : int array, shape (p,)
        Positions in the point.
    scale : float
    """

    leaf: int
    columns: int | None
    entries: NDArray[np.int64]
    scale: float


@dataclass(frozen=True, eq=False)
class Lookup:
    """A coefficient times an entry of the point.

    Attributes
    ----------
    coefficient : Scalar
        Of the row.
    index : Scalar
        Which of the entries; constant or of the row.
    entries : int array, shape (n,)
        Positions in the point.
    """

    coefficient: Scalar
    index: Scalar
    entries: NDArray[np.int64]


Reads: TypeAlias = DotProduct | Lookup


@dataclass(frozen=True, eq=False)
class Line:
    """A linear predictor.

    Attributes
    ----------
    terms : tuple of DotProduct or Lookup
        What it is the sum of.
    offset : Scalar
        Of the row.
    """

    terms: tuple[Reads, ...]
    offset: Scalar

    @property
    def parts(self) -> list[Scalar]:
        """What a row computes for it, but for products with columns."""
        lookups = [term for term in self.terms if isinstance(term, Lookup)]
        return [self.offset, *(x for term in lookups for x in (term.coefficient, term.index))]

    @property
    def is_common(self) -> bool:
        """Whether it is the same for all rows."""
        has_columns = any(isinstance(term, DotProduct) for term in self.terms)
        return not has_columns and all(part.is_constant for part in self.parts)

    def eta(self, number: int) -> Scalar:
        """The predictor as the formula names it."""
        source = Dependence.POINT if self.is_common else Dependence.PREDICTOR
        return given(f"eta_{number}", "f", source)


@dataclass(frozen=True, eq=False)
class RowFormula:
    """Linear predictors and the formula above them.

    Attributes
    ----------
    lines : tuple of Line
        The k predictors; the formula calls them ``eta_0``, ``eta_1``, ...
    root : Scalar
        Log-density of a row.
    """

    lines: tuple[Line, ...]
    root: Scalar

    @property
    def etas(self) -> list[Scalar]:
        """The predictors as the formula names them."""
        return [line.eta(k) for k, line in enumerate(self.lines)]


def leaf_cells(number: int, shape: Sequence[int], dtype: str) -> Cells:
    """Entries of one row of a leaf, as ``leaf_0[i, 2]`` converted to its kind.

    Parameters
    ----------
    number : int
        Which leaf.
    shape : sequence of int
        Of one row.
    dtype : str
    """
    kind = kind_of(dtype)
    convert = {"f": "float({})", "i": "np.int64({})", "b": "{}"}[kind]
    scalars = np.empty((1, *shape), dtype=object)
    for where in np.ndindex(*shape):
        index = ", ".join(["i", *map(str, where)])
        code = convert.format(f"leaf_{number}[{index}]")
        scalars[(0, *where)] = given(code, kind, Dependence.DATA)
    return Cells(scalars, 0)


_made: "WeakKeyDictionary[RowStructure, RowFormula]" = WeakKeyDictionary()


def row_formula_of(structure: RowStructure) -> RowFormula:
    """Unroll predictors and function, once for each structure.

    Raises
    ------
    NoKernelError
        Some operation has no rule.
    """
    if structure not in _made:
        _made[structure] = _formula(structure, prepared(structure.function))
    return _made[structure]


def _formula(structure: RowStructure, function: Variable) -> RowFormula:
    leaves = _Leaves(structure)
    lines = tuple(_line(p, leaves) for p in structure.predictors)
    inputs = leaves.cells([function])
    for k, (eta, line) in enumerate(zip(structure.etas, lines, strict=True)):
        ndim = eta.type.ndim
        inputs[eta] = Cells(filled((1,) * ndim, [line.eta(k)]), 0 if ndim else None)
    (root,) = unrolled([function], inputs)
    return RowFormula(lines, cast(root.only, "f"))


class _Leaves:
    """Leaves by their placeholders."""

    def __init__(self, structure: RowStructure) -> None:
        self._leaves = structure.leaves
        self.numbers = {leaf.placeholder: k for k, leaf in enumerate(structure.leaves)}

    def cells(self, graphs: list[Variable]) -> dict[Variable, Cells]:
        """Cells of the leaves that graphs need: wide ones that they do not need have too many."""
        used = set(ancestors(graphs))
        return {
            leaf.placeholder: leaf_cells(k, leaf.array.shape[1:], leaf.placeholder.type.dtype)
            for k, leaf in enumerate(self._leaves)
            if leaf.placeholder in used
        }

    def of(self, graph: Variable) -> Cells:
        """Entries of one row of a graph of leaves."""
        return unrolled([graph], self.cells([graph]))[0]


def _line(predictor: Predictor, leaves: _Leaves) -> Line:
    offset = constant(0.0)
    if predictor.offset is not None:
        offset = cast(leaves.of(predictor.offset).only, "f")
    terms = [read for term in predictor.terms for read in _reads(term, leaves)]
    return Line(tuple(terms), offset)


def _reads(term: Term, leaves: _Leaves) -> list[Reads]:
    """Leaves times entries, or entry by entry where data or columns are computed."""
    data, columns = term.data, term.columns
    if term.is_matrix:
        data = behind(data, lambda v: is_cast(v) and v.type.dtype.startswith("float"))
        if data in leaves.numbers and (columns is None or columns in leaves.numbers):
            number = None if columns is None else leaves.numbers[columns]
            return [DotProduct(leaves.numbers[data], number, term.entries, float(term.scale))]
    values = [constant(1.0)] if data is None else leaves.of(data).scalars.ravel()
    scale = constant(float(term.scale))
    factors = [apply("Mul", [value, scale], "f") for value in values]
    if columns is None:
        pairs = zip(factors, term.entries, strict=True)
        return [Lookup(factor, constant(0), np.array([entry])) for factor, entry in pairs]
    places = [cast(column, "i") for column in leaves.of(columns).scalars.ravel()]
    return [Lookup(f, place, term.entries) for f, place in zip(factors, places, strict=True)]
