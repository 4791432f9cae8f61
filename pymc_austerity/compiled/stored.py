"""Rows that compiled code reads from files before it evaluates them."""

import math
from functools import cache
from typing import Any

import numba
from numba import types

from pymc_austerity.compiled.calls import call_of_reader, call_on_rows
from pymc_austerity.pointers import integers, reals


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
