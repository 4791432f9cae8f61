"""The matrices of the linear predictors on some rows, and products with them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable
from pymc_austerity.model.compiling import OneAtATime, compiled
from pymc_austerity.model.interpret import interpreted
from pymc_austerity.model.predictors.structure import Dense, Gathered, RowStructure, Term

__all__ = [
    "DenseRows",
    "Design",
    "DesignFunction",
    "GatheredRows",
    "data_reader",
    "design_function",
    "predictors_at",
]


@dataclass(frozen=True, eq=False)
class DenseRows:
    """ColumnArray of a matrix: ``data @ theta[entries]``.

    Attributes
    ----------
    entries : int array, shape (p,)
    data : float64 array, shape (m, p)
    """

    entries: NDArray[np.int64]
    data: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GatheredRows:
    """One entry for every row: ``coefficient * theta[entries]``.

    Attributes
    ----------
    entries : int array, shape (m,)
    coefficient : float64 array, shape (m,)
    """

    entries: NDArray[np.int64]
    coefficient: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Design:
    """One linear predictor on some rows.

    Attributes
    ----------
    terms : tuple of DenseRows or GatheredRows
    offset : float array, shape (m,), or None
    n_rows : int
    """

    terms: tuple[DenseRows | GatheredRows, ...]
    offset: NDArray | None
    n_rows: int

    def eta(self, theta: NDArray) -> NDArray[np.float64]:
        """The linear predictor, shape (m,)."""
        total = np.zeros(self.n_rows) if self.offset is None else self.offset.astype(np.float64)
        for term in self.terms:
            if isinstance(term, DenseRows):
                total += term.data @ theta[term.entries]
            else:
                total += term.coefficient * theta[term.entries]
        return total

    def add_transposed(self, weights: NDArray[np.float64], total: NDArray[np.float64]) -> None:
        """Add the product of the transposed matrix with a weight per row to a total, shape (d,)."""
        for term in self.terms:
            if isinstance(term, DenseRows):
                total[term.entries] += weights @ term.data
            else:
                products = weights * term.coefficient
                total += np.bincount(term.entries, products, minlength=total.size)


DesignFunction: TypeAlias = Callable[[Sequence[NDArray]], list[Design]]


def predictors_at(
    designs: DesignFunction, point: NDArray, block: Sequence[NDArray]
) -> tuple[list[Design], list[NDArray]]:
    """The matrices of the predictors on a block of rows, and the predictors at a point."""
    on_rows, exact = designs(block), point.astype(np.float64)
    return on_rows, [design.eta(exact) for design in on_rows]


def design_function(structure: RowStructure, model: pm.Model) -> DesignFunction:
    """Make the function that evaluates the linear predictors' matrices on a block of rows.

    Parameters
    ----------
    structure : RowStructure
        The predictors.
    model : pymc.Model
        The model, for compilation.

    Returns
    -------
    callable
        ``f(block)``: one `Design` per predictor.
    """
    read = data_reader(_graphs(structure), structure, model)

    def designs(block: Sequence[NDArray]) -> list[Design]:
        values = read(block)
        n_rows = len(block[0])
        return [
            Design(
                tuple(_on_rows(p.terms, values, n_rows)),
                None if p.offset is None else values[p.offset],
                n_rows,
            )
            for p in structure.predictors
        ]

    return designs


def _graphs(structure: RowStructure) -> list[Variable]:
    found: dict[Variable, None] = {}
    for predictor in structure.predictors:
        graphs = [predictor.offset]
        for term in predictor.terms:
            if isinstance(term, Dense):
                graphs.append(term.data)
            else:
                graphs.append(term.coefficient)
                graphs.append(term.index if isinstance(term, Gathered) else None)
        found.update(dict.fromkeys(g for g in graphs if g is not None))
    return list(found)


def data_reader(
    graphs: list[Variable], structure: RowStructure, model: pm.Model
) -> Callable[[Sequence[NDArray]], dict[Variable, NDArray]]:
    """Make a function from a block of rows to the values of graphs of their data."""
    placeholders = [leaf.placeholder for leaf in structure.leaves]
    places = {p: k for k, p in enumerate(placeholders)}
    computed = [g for g in graphs if g not in places]
    function: Any = None
    if computed:
        function = interpreted(model, placeholders, computed)
        function = function or OneAtATime(compiled(model, placeholders, computed, None))

    def read(block: Sequence[NDArray]) -> dict[Variable, NDArray]:
        values = {g: block[places[g]] for g in graphs if g in places}
        if function is not None:
            given = [np.asarray(b, dtype=p.dtype) for b, p in zip(block, placeholders, strict=True)]
            values.update(zip(computed, function(*given), strict=True))
        return values

    return read


def _on_rows(
    terms: Sequence[Term], values: dict[Variable, NDArray], n_rows: int
) -> list[DenseRows | GatheredRows]:
    """Terms on rows; scalar parameters become columns of one matrix."""
    found: list[DenseRows | GatheredRows] = []
    for term in terms:
        if isinstance(term, Dense):
            found.append(DenseRows(term.entries, _scaled(values[term.data], term.scale)))
            continue
        coefficient = np.full(n_rows, term.scale)
        if term.coefficient is not None:
            coefficient *= values[term.coefficient]
        if isinstance(term, Gathered):
            found.append(GatheredRows(term.entries[values[term.index]], coefficient))
        else:
            found.append(DenseRows(np.array([term.entry]), coefficient[:, None]))
    return found


def _scaled(data: NDArray, scale: float) -> NDArray[np.float64]:
    exact = np.asarray(data, dtype=np.float64)
    return exact if scale == 1.0 else exact * scale
