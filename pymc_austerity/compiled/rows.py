"""Rows where they are stored, and the compiled function that evaluates them between two points."""

from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from pymc_austerity.compiled.calls import call_on_rows, prefetch
from pymc_austerity.parts import part
from pymc_austerity.pointers import integers

_LINE = 64
MOST_APART = 1_000
"""Rows that may lie far apart: they are fetched in advance, and stay in the processor's cache until
they are read. More rows are copied, which takes less time."""


class RowsByAddress(NamedTuple):
    """Stored rows, and the function that evaluates them.

    Attributes
    ----------
    function : int
        Address of the function; see `pymc_austerity.model.Kernel.address`.
    starts : unsigned int array
        Where the entries begin that each term of the predictors reads.
    entries : int array
        Entries of a point in the order of the terms.
    table : int array
        Its table: of the arrays in memory, or of what reads them from files.
    places : int array, shape (A, 2)
        Address of each array in memory, and the bytes of a row in it.
    n_entries, n_arrays : int
        Lengths of `entries` and `places`.
    """

    function: int
    starts: NDArray[np.uint64]
    entries: NDArray[np.int64]
    table: NDArray[np.int64]
    places: NDArray[np.int64]
    n_entries: int
    n_arrays: int


@part(types.void)
def order(rows: RowsByAddress, point: Any, out: Any) -> None:
    """Write the entries of a point in the order of the terms."""
    entries = integers(rows.entries)
    for i in range(rows.n_entries):
        out[i] = point[entries[i]]


@part(types.void)
def announce(rows: RowsByAddress, first: int, n_rows: int) -> None:
    """Ask for rows that will be read: their places in memory are far apart."""
    places = integers(rows.places)
    for k in range(rows.n_arrays):
        n_bytes = places[2 * k + 1]
        start = places[2 * k] + first * n_bytes
        for line in range(start, start + n_rows * n_bytes, _LINE):
            prefetch(line)


@part(types.void)
def fill_differences(
    rows: RowsByAddress, proposed: Any, current: Any, which: Any, n: int, out: Any
) -> None:
    """Differences of some rows; the points are in the order of the terms, and all are addresses."""
    call_on_rows(rows.function, proposed, current, rows.starts, which, n, rows.table, out)


@numba.njit(cache=True, error_model="numpy")
def evaluated(
    rows: RowsByAddress,
    proposed: NDArray[np.float64],
    current: NDArray[np.float64],
    which: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Values of some rows between two points, shape (n,), nats."""
    for row in which[:MOST_APART]:
        announce(rows, row, 1)
    then, now, found = np.empty(rows.n_entries), np.empty(rows.n_entries), np.empty(which.size)
    order(rows, proposed, then)
    order(rows, current, now)
    points = then.ctypes.data, now.ctypes.data
    fill_differences(rows, *points, which.ctypes.data, which.size, found.ctypes.data)
    return found
