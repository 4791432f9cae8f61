"""Terms of the log-density of a model with groups: the expansion of rows, and what has no rows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pymc_austerity.compiled import addressed, call, call_for_number, table_of
from pymc_austerity.parts import compiled_once, integers, reals

_DENSE = 0.5
"""Share of nonzero numbers, in the columns that have some, from which on a matrix is stored as a
dense array: a product with it takes a quarter of the time."""

_MOST_KEPT = 3
"""Number of values: at the current point, at a proposed one, and at the anchor."""


@dataclass(frozen=True, eq=False)
class SparseExpansion:
    r"""Sum of the second-order expansions of all rows about a point.

    .. math:: g'\delta + \tfrac{1}{2} \delta' H \delta, \qquad \delta = \theta - \theta^*

    Attributes
    ----------
    point : float array, shape (d,)
        The anchor.
    gradient : float array, shape (d,)
        Gradient of the rows at the anchor, nats per unit.
    hessian : scipy.sparse.csr_array, shape (d, d)
        Hessian of the rows at the anchor.
    """

    point: NDArray[np.float64]
    gradient: NDArray[np.float64]
    hessian: sparse.csr_array

    def depends_on(self, entries: NDArray[np.int64]) -> bool:
        """Whether the expansion depends on any of these entries."""
        starts = self.hessian.indptr
        return bool(self.gradient[entries].any() or (starts[entries + 1] > starts[entries]).any())

    def slope(self, theta: NDArray[np.float64], entries: NDArray[np.int64]) -> NDArray[np.float64]:
        """Gradient of the expansion at a point with respect to some entries, shape (n,)."""
        found = _products(self.hessian, entries, theta - self.point)
        return self.gradient[entries] + found

    def difference(self, proposed: NDArray[np.float64], current: NDArray[np.float64]) -> float:
        """Difference of the expansion between two points, nats.

        Examples
        --------
        >>> identity = sparse.csr_array(-np.eye(2))
        >>> expansion = SparseExpansion(np.zeros(2), np.array([1.0, 0.0]), identity)
        >>> float(expansion.difference(np.array([2.0, 1.0]), np.zeros(2)))
        -0.5
        """
        moved = proposed - current
        rows = np.flatnonzero(moved)  # most moves are of a few entries
        middle = 0.5 * (proposed + current) - self.point
        slope = self.gradient[rows] + _products(self.hessian, rows, middle)
        return float(moved[rows].dot(slope))


@dataclass(frozen=True, eq=False)
class Products:
    """Products of a matrix with vectors, without the overhead of scipy.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array or float array
        The matrix, or a dense array of those columns that are mostly nonzero.
    columns : int array
        Columns that are stored, or that have nonzero numbers.

    Examples
    --------
    >>> matrix = sparse.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]]))
    >>> Products.of(matrix)(np.array([1.0, 5.0, 10.0]))
    array([21., 30.])
    """

    matrix: sparse.csr_array | NDArray[np.float64]
    columns: NDArray[np.int64]

    @classmethod
    def of(cls, matrix: sparse.csr_array) -> "Products":
        """Store a matrix in the form in which products are fastest."""
        columns = np.unique(matrix.indices).astype(np.int64)
        if matrix.nnz < _DENSE * matrix.shape[0] * columns.size:
            return cls(matrix, columns)
        return cls(np.ascontiguousarray(matrix[:, columns].toarray()), columns)

    def __call__(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Product with a vector."""
        if isinstance(self.matrix, np.ndarray):
            found: NDArray[np.float64] = self.matrix @ vector[self.columns]
            return found
        return _products(self.matrix, np.arange(self.matrix.shape[0]), vector)


def _products(
    matrix: sparse.csr_array, rows: NDArray[np.int64], vector: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Products of some rows of a matrix with a vector."""
    found = np.empty(rows.size)
    _fill_products(matrix.indptr, matrix.indices, matrix.data, rows, vector, found)
    return found


@compiled_once
def _fill_products(
    starts: NDArray[np.int32],
    columns: NDArray[np.int32],
    numbers: NDArray[np.float64],
    rows: NDArray[np.int64],
    vector: NDArray[np.float64],
    found: NDArray[np.float64],
) -> None:
    for n in range(rows.size):
        total = 0.0
        for k in range(starts[rows[n]], starts[rows[n] + 1]):
            total += numbers[k] * vector[columns[k]]
        found[n] = total


class KeptAtAnchor:
    """Evaluate a function with some entries at the anchor, unless the value is known.

    Parameters
    ----------
    function : callable
        Of a point, shape (d,).
    given : int array
        Other entries that the value depends on.
    entries : int array
        Entries that are set to the anchor.
    anchor : float array, shape (d,)

    Examples
    --------
    >>> kept = KeptAtAnchor(np.sum, np.array([1]), np.array([0]), np.zeros(2))
    >>> float(kept(np.array([5.0, 3.0])))
    3.0
    """

    def __init__(
        self,
        function: Callable[[NDArray], Any],
        given: NDArray[np.int64],
        entries: NDArray[np.int64],
        anchor: NDArray[np.float64],
    ) -> None:
        self._function = function
        self._given = given
        self._entries = entries
        self._anchor = anchor[entries]
        self._known: dict[bytes, Any] = {}

    def __call__(self, point: NDArray[np.float64]) -> Any:
        """Value at a point, shape (d,)."""
        key = point[self._given].tobytes()
        if key in self._known:
            value = self._known.pop(key)
        else:
            there = point.copy()
            there[self._entries] = self._anchor
            value = self._function(there)
            if len(self._known) >= _MOST_KEPT:
                del self._known[next(iter(self._known))]
        self._known[key] = value  # those that were used last are kept
        return value


class _LoopOverLevels(Protocol):
    """Differences of the terms of levels; see `pymc_austerity.model.Kernel`."""

    @property
    def address(self) -> int: ...
    @property
    def starts(self) -> NDArray[np.uint64]: ...
    @property
    def entries(self) -> NDArray[np.int64] | None: ...


class _DensityByAddress(Protocol):
    """A log-density; see `pymc_austerity.model.DensityKernel`."""

    @property
    def address(self) -> int: ...


class TermsByAddress(NamedTuple):
    """The row-free part for compiled code, with addresses of arrays.

    Attributes
    ----------
    calls : int array, shape (n, 6)
        Of each loop over levels: addresses of the function, of the places where its terms begin,
        and of the table of its arrays; the number of levels; where its own `entries` begin and end.
        If it has none, it reads the point itself.
    entries : int array
        Entries of a point in the order of the terms.
    numbers : int array
        0, 1, 2, ... for all levels.
    work : float array
        Working space for one loop: its result, and entries of two points.
    rest : int
        Address of the log-density of all other terms; 0 if there are none.
    levels, ends, absorbers : int array
        Means of levels are added to some entries before `rest` reads these: the levels of all means
        one after the other, where those of each mean end, and the entries to which they are added.
    n_calls, n_means : int
        Lengths of `calls` and `absorbers`.
    """

    calls: NDArray[np.int64]
    entries: NDArray[np.int64]
    numbers: NDArray[np.int64]
    work: NDArray[np.float64]
    rest: int
    levels: NDArray[np.int64]
    ends: NDArray[np.int64]
    absorbers: NDArray[np.int64]
    n_calls: int
    n_means: int


@dataclass(frozen=True, eq=False)
class RowFreeTerms:
    """Difference of the row-free part of the log-density between two points.

    Attributes
    ----------
    loops : tuple of (loop, arrays)
        Loops over the levels of a factor, and the data of the levels.
    rest : _DensityByAddress or None
    means : tuple of (int array, int)
        Levels, and the entry to which their mean is added before `rest` reads it.
    """

    loops: tuple[tuple[_LoopOverLevels, tuple[NDArray, ...]], ...]
    rest: _DensityByAddress | None
    means: tuple[tuple[NDArray[np.int64], int], ...] = ()

    def __call__(self, proposed: NDArray, current: NDArray) -> float:
        """Difference between two points, float arrays of shape (d,), nats."""
        new, old = (np.ascontiguousarray(point, dtype=np.float64) for point in (proposed, current))
        return float(difference_of_terms(self.by_address, new, old))

    @cached_property
    def by_address(self) -> TermsByAddress:
        """The same for compiled code; addresses are valid as long as this object exists."""
        by_address: TermsByAddress = addressed(self._arrays)
        return by_address

    @cached_property
    def _arrays(self) -> TermsByAddress:
        calls, entries, longest, n_work = [], [np.empty(0, np.int64)], 0, 0
        for (loop, _), table in zip(self.loops, self._tables, strict=True):
            own = entries[0] if loop.entries is None else loop.entries
            begin = sum(map(len, entries))
            entries.append(own.astype(np.int64))
            n_levels = int(table[1])
            where = (loop.address, loop.starts.ctypes.data, table.ctypes.data)
            calls.append((*where, n_levels, begin, begin + own.size))
            longest, n_work = max(longest, n_levels), max(n_work, n_levels + 2 * own.size)
        return TermsByAddress(
            np.array(calls, dtype=np.int64).reshape(-1, 6),
            np.concatenate(entries),
            np.arange(longest),
            np.empty(n_work),
            0 if self.rest is None else self.rest.address,
            np.concatenate([np.empty(0, np.int64), *(levels for levels, _ in self.means)]),
            np.cumsum([levels.size for levels, _ in self.means], dtype=np.int64),
            np.array([absorber for _, absorber in self.means], dtype=np.int64),
            len(calls),
            len(self.means),
        )

    @cached_property
    def _tables(self) -> list[NDArray[np.int64]]:
        """Addresses and shapes of the arrays of each loop."""
        return [table_of(arrays) for _, arrays in self.loops]

    def __getstate__(self) -> dict[str, Any]:
        """Everything but addresses."""
        return {"loops": self.loops, "rest": self.rest, "means": self.means}


@compiled_once
def difference_of_terms(
    its: TermsByAddress, proposed: NDArray[np.float64], current: NDArray[np.float64]
) -> float:
    """Difference between two points, nats; loops whose entries have not moved are left out."""
    total, new, old = 0.0, proposed.ctypes.data, current.ctypes.data
    calls, entries = integers(its.calls), integers(its.entries)
    rows, work, out = its.numbers, reals(its.work), its.work
    for number in range(its.n_calls):
        function, starts, table = calls[6 * number], calls[6 * number + 1], calls[6 * number + 2]
        n_levels, begin = calls[6 * number + 3], calls[6 * number + 4]
        size = calls[6 * number + 5] - begin
        has_moved = size == 0
        for k in range(size):
            entry = entries[begin + k]
            work[n_levels + k], work[n_levels + size + k] = proposed[entry], current[entry]
            has_moved |= proposed[entry] != current[entry]
        if not has_moved:
            continue
        then, now = (out + 8 * n_levels, out + 8 * (n_levels + size)) if size else (new, old)
        call(function, (then, now, starts, rows, n_levels, table, out))
        for level in range(n_levels):
            total += work[level]
    if its.rest != 0:
        total += _rest_at(its, proposed) - _rest_at(its, current)
    return total


@compiled_once
def _rest_at(its: TermsByAddress, point: NDArray[np.float64]) -> float:
    """The log-density of all other terms, nats."""
    if its.n_means == 0:
        return call_for_number(its.rest, (point.ctypes.data,))
    levels, ends, absorbers = integers(its.levels), integers(its.ends), integers(its.absorbers)
    summed, first = point.copy(), 0
    for k in range(its.n_means):
        total = 0.0
        for place in range(first, ends[k]):
            total += point[levels[place]]
        summed[absorbers[k]] += total / (ends[k] - first)
        first = ends[k]
    return call_for_number(its.rest, (summed.ctypes.data,))
