"""Rows where they are stored, and the compiled function that evaluates them between two points."""

import math
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from pymc_austerity.compiled.calls import call_of_reader, call_on_rows, prefetch
from pymc_austerity.parts import integers, part, reals

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


def _evaluate(
    proposed: int, current: int, starts: int, rows: int, n_rows: int, table: int, out: int
) -> None:
    known, done = integers(table), 0
    function, arrays, numbers, most = known[0], known[1], known[2], known[3]
    while done < n_rows:
        n, values = min(most, n_rows - done), out + 8 * done
        call_of_reader(
            known[4], known[5], known[6], known[7], known[8], rows + 8 * done, n, known[9]
        )
        call_on_rows(function, proposed, current, starts, numbers, n, arrays, values)
        if integers(known[5])[3] > 0:  # the arrays do not hold these rows
            for k in range(n):
                reals(values)[k] = math.nan
        done += n


@cache
def evaluator() -> Any:
    """A function like that of `pymc_austerity.model.Kernel.address`, for rows in files.

    Returns
    -------
    numba.core.ccallback.CFunc
        Its table, int64, has the address of the function that evaluates rows in memory, and of its
        table; the address of the numbers 0, 1, 2 ..., uint64, and how many there are; the address
        of `pymc_austerity.rows.reader`, and of its arguments but the rows and their number. Values
        of rows that could not be read are NaN.
    """
    return numba.cfunc(types.void(*[types.intp] * 7), cache=True)(_evaluate)
