"""The difference of the exact part: terms of levels, and the rest, by their addresses."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import call_of_one, call_on_rows

__all__ = ["ExactTerms", "TermsByAddress", "difference_of_terms"]


class LoopOverLevels(Protocol):
    """Differences of the terms of levels; see `pymc_austerity.model.Kernel`."""

    @property
    def address(self) -> int: ...
    @property
    def starts(self) -> NDArray[np.uint64]: ...
    @property
    def entries(self) -> NDArray[np.int64] | None: ...


class DensityByAddress(Protocol):
    """A log-density; see `pymc_austerity.model.DensityKernel`."""

    @property
    def address(self) -> int: ...


class TermsByAddress(NamedTuple):
    """The exact part for compiled code.

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
    """

    calls: NDArray[np.int64]
    entries: NDArray[np.int64]
    numbers: NDArray[np.int64]
    work: NDArray[np.float64]
    rest: int
    levels: NDArray[np.int64]
    ends: NDArray[np.int64]
    absorbers: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ExactTerms:
    """Difference of the exact part of the log-density between two points.

    Attributes
    ----------
    loops : tuple of (loop, arrays)
        Loops over the levels of a factor, and the data of the levels.
    rest : DensityByAddress or None
    means : tuple of (int array, int)
        Levels, and the entry to which their mean is added before `rest` reads it.
    """

    loops: tuple[tuple[LoopOverLevels, tuple[NDArray, ...]], ...]
    rest: DensityByAddress | None
    means: tuple[tuple[NDArray[np.int64], int], ...] = ()

    def __call__(self, proposed: NDArray, current: NDArray) -> float:
        """Difference between two points, float arrays of shape (d,), nats."""
        new, old = (np.ascontiguousarray(point, dtype=np.float64) for point in (proposed, current))
        return float(difference_of_terms(self.by_address, new, old))

    @cached_property
    def by_address(self) -> TermsByAddress:
        """The same for compiled code; addresses are valid as long as this object exists."""
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
        )

    @cached_property
    def _tables(self) -> list[NDArray[np.int64]]:
        """Addresses and shapes of the arrays of each loop."""
        return [
            np.array([n for array in arrays for n in (array.ctypes.data, *array.shape)])
            for _, arrays in self.loops
        ]

    def __getstate__(self) -> dict[str, Any]:
        """Everything but addresses."""
        return {"loops": self.loops, "rest": self.rest, "means": self.means}


@numba.njit(cache=True, error_model="numpy")
def difference_of_terms(
    its: TermsByAddress, proposed: NDArray[np.float64], current: NDArray[np.float64]
) -> float:
    """Difference between two points, nats; loops whose entries have not moved are left out."""
    total, new, old = 0.0, proposed.ctypes.data, current.ctypes.data
    rows, work, out = its.numbers.ctypes.data, its.work, its.work.ctypes.data
    for number in range(its.calls.shape[0]):
        function, starts, table = its.calls[number, 0], its.calls[number, 1], its.calls[number, 2]
        n_levels, begin = its.calls[number, 3], its.calls[number, 4]
        size = its.calls[number, 5] - begin
        has_moved = size == 0
        for k in range(size):
            entry = its.entries[begin + k]
            work[n_levels + k], work[n_levels + size + k] = proposed[entry], current[entry]
            has_moved |= proposed[entry] != current[entry]
        if not has_moved:
            continue
        then, now = (out + 8 * n_levels, out + 8 * (n_levels + size)) if size else (new, old)
        call_on_rows(function, then, now, starts, rows, n_levels, table, out)
        for level in range(n_levels):
            total += work[level]
    if its.rest != 0:
        total += _rest_at(its, proposed) - _rest_at(its, current)
    return total


@numba.njit(cache=True)
def _rest_at(its: TermsByAddress, point: NDArray[np.float64]) -> float:
    """The log-density of all other terms, nats."""
    if its.absorbers.size == 0:
        return call_of_one(its.rest, point.ctypes.data)
    summed, first = point.copy(), 0
    for k in range(its.absorbers.size):
        total = 0.0
        for place in range(first, its.ends[k]):
            total += point[its.levels[place]]
        summed[its.absorbers[k]] += total / (its.ends[k] - first)
        first = its.ends[k]
    return call_of_one(its.rest, summed.ctypes.data)
