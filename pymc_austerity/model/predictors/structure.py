"""Linear predictors of rows as terms, and their multipliers for rows at hand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pymc as pm
from numpy.typing import NDArray
from scipy import sparse

from pymc_austerity._pymc import Constant, Variable, ancestors, scalar_name
from pymc_austerity.model.compiling import OfTypes, evaluated
from pymc_austerity.model.cut import RowLeaf


@dataclass(frozen=True, eq=False)
class Term:
    r"""Part of a linear predictor of row i.

    .. math:: s \sum_j x_{ij} \theta_{e(c_{ij})}

    with data :math:`x`, columns :math:`c` and entries :math:`e`.

    Attributes
    ----------
    entries : int array, shape (p,)
        Positions in the raveled vector; several may be one.
    columns : variable, shape (m,) or (m, k), or None
        Graph of leaf placeholders: integers from 0 to p - 1, such as the group of the row; a row
        may have one several times. None means that every row reads all p entries.
    data : variable, of the shape of the columns, or (m, p), or None
        Graph of leaf placeholders; a vector where there is one product, None where it is by 1.
    scale : float
        A constant multiple.
    """

    entries: NDArray[np.int64]
    columns: Variable | None = None
    data: Variable | None = None
    scale: float = 1.0

    @property
    def is_matrix(self) -> bool:
        """Whether it is a sum over the columns of a matrix of data."""
        return self.data is not None and self.data.type.ndim == 2

    @property
    def is_sparse(self) -> bool:
        """Whether that matrix holds the entries that are not zero of a larger one."""
        return self.is_matrix and self.columns is not None

    @property
    def is_choice(self) -> bool:
        """Whether each row reads the one entry that it picks."""
        return not self.is_matrix and self.columns is not None

    @property
    def is_plain(self) -> bool:
        """Whether all rows read one entry as it is."""
        return self.data is None and self.columns is None


@dataclass(frozen=True, eq=False)
class Predictor:
    r"""One linear predictor, :math:`\eta_i = A_i \theta + o_i`.

    Attributes
    ----------
    terms : tuple of Term
        Their sum is :math:`A_i \theta`.
    offset : variable, shape (m,), or None
        Graph of leaf placeholders; None means 0.
    name : str
        What it is in the model, such as ``a[group] + X @ b``.
    """

    terms: tuple[Term, ...]
    offset: Variable | None
    name: str


@dataclass(frozen=True, eq=False)
class RowStructure:
    r"""Rows as a function of a few linear predictors.

    .. math:: \log p(x_i | \theta) = f_i(\eta_{i1}, \dots, \eta_{ik})

    Attributes
    ----------
    predictors : tuple of Predictor
        The k predictors; no two have the same terms.
    etas : tuple of variables
        One vector per predictor, shape (m,): inputs of `function`.
    function : variable, shape (m,)
        Log-likelihoods of the rows in nats; a graph of `etas` and the placeholders of `leaves`.
        Entry i depends on no other entry of a predictor than its own.
    leaves : tuple of RowLeaf
        Data of the rows.
    size : int
        Length of the raveled vector of the variables.
    dtype : numpy.dtype
        Type of the raveled vector.
    """

    predictors: tuple[Predictor, ...]
    etas: tuple[Variable, ...]
    function: Variable
    leaves: tuple[RowLeaf, ...]
    size: int
    dtype: np.dtype

    @property
    def types(self) -> tuple[tuple[str, int], ...]:
        """Type and number of axes of the data of each leaf."""
        return tuple((str(leaf.array.dtype), leaf.array.ndim) for leaf in self.leaves)


@dataclass(frozen=True)
class PointMap:
    """Where each variable is in the raveled vector.

    Attributes
    ----------
    names : tuple of str
    starts : tuple of int
    shapes : tuple of tuple of int
    size : int
        Length of the vector.
    """

    names: tuple[str, ...]
    starts: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    size: int

    @classmethod
    def of(cls, variables: Sequence[Variable], point: Mapping[str, NDArray]) -> "PointMap":
        """PointMap of variables joined in this order."""
        shapes = tuple(np.shape(point[v.name]) for v in variables)
        ends = np.cumsum([0, *(int(np.prod(s, dtype=int)) for s in shapes)])
        starts = tuple(int(end) for end in ends[:-1])
        return cls(tuple(str(v.name) for v in variables), starts, shapes, int(ends[-1]))

    def numbers(self, entries: NDArray[np.int64]) -> NDArray[np.intp]:
        """Numbers of the variables that entries belong to."""
        return np.unique(np.searchsorted(self.starts, entries, side="right") - 1)

    def variables(self, entries: NDArray[np.int64]) -> str:
        """Names of the variables that entries belong to."""
        names = [self.names[number] for number in self.numbers(entries)]
        return names[0] if len(names) == 1 else f"[{', '.join(names)}]"

    def entry(self, entry: int) -> str:
        """Name of one entry."""
        (number,) = self.numbers(np.array([entry]))
        shape = self.shapes[number]
        if not shape:
            return self.names[number]
        where = np.unravel_index(entry - self.starts[number], shape)
        return f"{self.names[number]}[{', '.join(str(int(k)) for k in where)}]"


def named(predictor: Predictor, layout: PointMap) -> Predictor:
    """The same predictor with a name made of its terms."""
    name = ""
    for term in predictor.terms:
        text, sign = _text(term, layout), "-" if term.scale < 0 else "+"
        name += f" {sign} {text}" if name else text if sign == "+" else f"-{text}"
    if predictor.offset is not None:
        is_negative = scalar_name(predictor.offset.owner) == "Neg"
        name += f" {'-' if is_negative else '+'} {_data(predictor.offset)}"
    return replace(predictor, name=name)


def _text(term: Term, layout: PointMap) -> str:
    size = abs(term.scale)
    factor = "" if size == 1.0 else f"{size:.4g} * "
    if term.data is not None:
        factor += f"{_data(term.data)} {'@' if term.is_matrix else '*'} "
    if term.is_matrix:
        return f"{factor}{layout.variables(term.entries)}"
    if term.columns is not None:
        return f"{factor}{layout.variables(term.entries)}[{_data(term.columns)}]"
    return f"{factor}{layout.entry(int(term.entries[0]))}"


def _data(graph: Variable) -> str:
    """Name of the data that a graph is computed from."""
    inputs = [v for v in ancestors([graph]) if v.owner is None and not isinstance(v, Constant)]
    names = list(dict.fromkeys(str(v.name) for v in inputs if v.name))
    return names[0] if len(names) == 1 else f"({', '.join(names)})" if names else "data"


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
class SparseRows:
    """A few entries for every row: ``sum(data * theta[entries], axis=1)``.

    Attributes
    ----------
    entries : int array, shape (m, k)
    data : float64 array, shape (m, k)
    """

    entries: NDArray[np.int64]
    data: NDArray[np.float64]

    def matrix(self, size: int) -> sparse.csr_matrix:
        """The same as a matrix of shape (m, size), without a copy of the data."""
        m, k = self.data.shape
        starts = np.arange(0, m * k + 1, k)
        return sparse.csr_matrix((self.data.ravel(), self.entries.ravel(), starts), (m, size))


OnRows: TypeAlias = DenseRows | SparseRows


@dataclass(frozen=True, eq=False)
class Design:
    """One linear predictor on some rows.

    Attributes
    ----------
    terms : tuple of DenseRows or SparseRows
    offset : float array, shape (m,), or None
    n_rows : int
    """

    terms: tuple[OnRows, ...]
    offset: NDArray | None
    n_rows: int

    def eta(self, theta: NDArray) -> NDArray[np.float64]:
        """The linear predictor, shape (m,), or (m, n) at n points that are columns of a matrix."""
        total = self.product(theta)
        if self.offset is not None:
            total += self.offset.reshape(-1, *(1,) * (theta.ndim - 1))
        return total

    def product(self, theta: NDArray) -> NDArray[np.float64]:
        """What the parameters add to it: the matrix times a vector or a matrix."""
        total = None
        for term in self.terms:
            if isinstance(term, DenseRows):
                part = term.data @ theta[term.entries]
            else:
                part = term.matrix(len(theta)) @ theta
            total = part if total is None else np.add(total, part, out=total)
        return np.zeros((self.n_rows, *theta.shape[1:])) if total is None else total

    def spelled_out(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Entries that rows read and their multipliers, both of shape (m, t)."""
        entries = [np.broadcast_to(term.entries, term.data.shape) for term in self.terms]
        nothing = np.empty((self.n_rows, 0))
        data = np.hstack([nothing, *(term.data for term in self.terms)])
        return np.hstack([nothing, *entries]).astype(np.int64), data

    def add_transposed(self, weights: NDArray[np.float64], total: NDArray[np.float64]) -> None:
        """Add the product of the transposed matrix with a weight per row to a total, shape (d,)."""
        for term in self.terms:
            if isinstance(term, DenseRows):
                total[term.entries] += weights @ term.data
            else:
                total += weights @ term.matrix(total.size)


DesignFunction: TypeAlias = Callable[[Sequence[NDArray]], list[Design]]


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
    return _Designs(
        structure.predictors, data_reader(_graphs(structure.predictors), structure, model)
    )


@dataclass(frozen=True, eq=False)
class _Designs:
    """The function that `design_function` makes; copies can be sent to other processes."""

    predictors: tuple[Predictor, ...]
    read: Callable[[Sequence[NDArray]], dict[Variable, NDArray]]

    def __call__(self, block: Sequence[NDArray]) -> list[Design]:
        values, n_rows = self.read(block), len(block[0])
        return [
            Design(
                tuple(_on_rows(p.terms, values, n_rows)),
                None if p.offset is None else values[p.offset],
                n_rows,
            )
            for p in self.predictors
        ]


def _graphs(predictors: Sequence[Predictor]) -> list[Variable]:
    graphs = [
        graph
        for predictor in predictors
        for graph in (predictor.offset, *(g for t in predictor.terms for g in (t.data, t.columns)))
        if graph is not None
    ]
    return list(dict.fromkeys(graphs))


def data_reader(
    graphs: list[Variable], structure: RowStructure, model: pm.Model
) -> Callable[[Sequence[NDArray]], dict[Variable, NDArray]]:
    """Make a function from a block of rows to the values of graphs of their data."""
    placeholders = [leaf.placeholder for leaf in structure.leaves]
    places = {p: k for k, p in enumerate(placeholders) if p in graphs}
    computed = [g for g in graphs if g not in places]
    function: Any = None
    if computed:
        made = evaluated(model, placeholders, computed)
        function = OfTypes(made, tuple(p.dtype for p in placeholders))
    return _DataReader(places, computed, function)


@dataclass(frozen=True, eq=False)
class _DataReader:
    """The function that `data_reader` makes."""

    places: dict[Variable, int]
    computed: list[Variable]
    function: Any

    def __call__(self, block: Sequence[NDArray]) -> dict[Variable, NDArray]:
        values = {graph: block[place] for graph, place in self.places.items()}
        if self.computed:
            values.update(zip(self.computed, self.function(*block), strict=True))
        return values


def _on_rows(terms: Sequence[Term], values: dict[Variable, NDArray], n_rows: int) -> list[OnRows]:
    """Terms on rows; scalar parameters become columns of one matrix."""
    found: list[OnRows] = []
    for term in terms:
        ones = np.ones(n_rows)
        data = _scaled(ones if term.data is None else values[term.data], term.scale)
        data = data.reshape(n_rows, -1)
        if term.columns is None:
            found.append(DenseRows(term.entries, data))
        else:
            entries = _entries(term, values[term.columns])
            found.append(SparseRows(entries.reshape(n_rows, -1), data))
    return found


def _entries(term: Term, columns: NDArray) -> NDArray:
    """Positions of columns in the raveled vector, without a copy where they are the same."""
    if term.entries[0] == 0 and np.array_equal(term.entries, np.arange(term.entries.size)):
        return columns
    return term.entries.astype(np.int32)[columns]


def _scaled(data: NDArray, scale: float) -> NDArray[np.float64]:
    exact = np.asarray(data, dtype=np.float64)
    return exact if scale == 1.0 else exact * scale
