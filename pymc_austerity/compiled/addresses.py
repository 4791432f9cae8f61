"""Compiled functions and arrays that compiled code knows by their addresses, among them rows.

An address is an argument like any other, so that what calls a function is compiled once for all
models; and what is compiled is a fraction of what numba makes of arrays with their shapes.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.special.cython_special
from llvmlite import ir
from numba import types
from numba.core.cgutils import unpack_tuple
from numba.extending import get_cython_function_address, intrinsic
from numpy.typing import NDArray

from pymc_austerity.parts import compiled_once, integers, part, reals


def addressed(known: Any) -> Any:
    """A named tuple with the addresses of its arrays, which have to live as long as it is used.

    Parameters
    ----------
    known : NamedTuple
        Arrays of numbers of eight bytes, without gaps; other named tuples, and numbers.
    """
    if isinstance(known, tuple):
        return type(known)(*map(addressed, known))
    if isinstance(known, np.ndarray):
        assert known.flags.c_contiguous and known.dtype.itemsize == 8
        return known.ctypes.data
    return known


def table_of(arrays: Sequence[NDArray]) -> NDArray[np.int64]:
    """Address and shape of each array."""
    numbers = [number for array in arrays for number in (array.ctypes.data, *array.shape)]
    return np.array(numbers, dtype=np.int64)


def _code_of_call(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Code that calls a C function at an address."""
    address, given = arguments[0], unpack_tuple(builder, arguments[1])
    result = signature.return_type
    returned = ir.VoidType() if result is types.void else context.get_value_type(result)
    kind = ir.FunctionType(returned, [ir.IntType(64)] * len(given))
    value = builder.call(builder.inttoptr(address, kind.as_pointer()), given)
    return context.get_dummy_value() if result is types.void else value


@intrinsic
def call(typing_context, address, integers):  # type: ignore[no-untyped-def]
    """Call a C function of a tuple of integers, among them addresses, that returns nothing."""
    return types.void(types.intp, types.UniTuple(types.intp, len(integers))), _code_of_call


@intrinsic
def call_for_number(typing_context, address, integers):  # type: ignore[no-untyped-def]
    """Call a C function of a tuple of integers, among them addresses, that returns a float64."""
    return types.float64(types.intp, types.UniTuple(types.intp, len(integers))), _code_of_call


@intrinsic
def call_of_two(typing_context, address, first, second):  # type: ignore[no-untyped-def]
    """Call a real function of two real numbers, and of an integer that does not matter.

    Functions that Cython exports have one more argument than they are declared with.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        real, flag = ir.DoubleType(), ir.IntType(32)
        kind = ir.FunctionType(real, [real, real, flag])
        pointer = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(pointer, [*arguments[1:], flag(0)])

    return types.float64(types.intp, types.float64, types.float64), codegen


@intrinsic
def prefetch(typing_context, address):  # type: ignore[no-untyped-def]
    """Ask for the cache line at an address, which will be read soon."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        flag, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        for_reading, most_local, data = flag(0), flag(3), flag(1)
        line = builder.inttoptr(arguments[0], byte)
        builder.call(function, [line, for_reading, most_local, data])
        return context.get_dummy_value()

    return types.void(types.intp), codegen


_SIGNATURE = "double (double, double"


@cache
def address_of_tail() -> int | None:
    """Address of what ``scipy.special.stdtr`` evaluates in double precision.

    Returns
    -------
    int or None
        None where this version of SciPy does not offer it.

    Notes
    -----
    SciPy compiles it for several types, whose functions have names that Cython makes.
    """
    offered: dict[str, object] = scipy.special.cython_special.__pyx_capi__
    for name, function in offered.items():
        if name.endswith("stdtr") and f'"{_SIGNATURE}' in repr(function):
            address: int = get_cython_function_address("scipy.special.cython_special", name)
            return address
    return None


_LINE = 64
MOST_APART = 1_000
"""Rows that may lie far apart: they are fetched in advance, and stay in the processor's cache until
they are read. More rows are copied, which takes less time."""


class CommonByAddress(NamedTuple):
    """The functions of a `pymc_austerity.model.CommonFunctions`; there may be none.

    Attributes
    ----------
    anchor : float array
    table : int array
        Of the rows.
    numbers : unsigned int array, shape (m,)
        0 to m - 1.
    combinations : float array, shape (m, r)
    n_rows, n_functions : int
        m and r.
    """

    anchor: NDArray[np.float64]
    table: NDArray[np.int64]
    numbers: NDArray[np.uint64]
    combinations: NDArray[np.float64]
    n_rows: int
    n_functions: int


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
    common : CommonByAddress
        Functions that rows share.
    """

    function: int
    starts: NDArray[np.uint64]
    entries: NDArray[np.int64]
    table: NDArray[np.int64]
    places: NDArray[np.int64]
    n_entries: int
    n_arrays: int
    common: CommonByAddress

    @property
    def n_numbers(self) -> int:
        """Entries of a point in the order of the terms, and common functions."""
        return self.n_entries + self.common.n_functions


@part(types.void)
def order(rows: RowsByAddress, point: Any, address: Any) -> None:
    """Write the entries of a point in the order of the terms, and the common functions."""
    entries, out, common = integers(rows.entries), reals(address), rows.common
    for i in range(rows.n_entries):
        out[i] = point[entries[i]]
    if common.n_functions > 0:
        found, combinations = np.empty(common.n_rows), reals(common.combinations)
        known = common.anchor, rows.starts, common.numbers, common.n_rows, common.table
        call(rows.function, (address, *known, found.ctypes.data))
        for k in range(common.n_functions):
            value = 0.0
            for j in range(common.n_rows):
                value += found[j] * combinations[j * common.n_functions + k]
            out[rows.n_entries + k] = value


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
    call(rows.function, (proposed, current, rows.starts, which, n, rows.table, out))


@compiled_once
def evaluate_rows(
    rows: RowsByAddress,
    proposed: NDArray[np.float64],
    current: NDArray[np.float64],
    which: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Values of some rows between two points, shape (n,), nats."""
    for row in which[:MOST_APART]:
        announce(rows, row, 1)
    n = rows.n_entries + rows.common.n_functions
    then, now, found = np.empty(n), np.empty(n), np.empty(which.size)
    points = then.ctypes.data, now.ctypes.data
    order(rows, proposed, points[0])
    order(rows, current, points[1])
    fill_differences(rows, *points, which.ctypes.data, which.size, found.ctypes.data)
    return found


def _evaluate(
    proposed: int, current: int, starts: int, rows: int, n_rows: int, table: int, out: int
) -> None:
    known, done = integers(table), 0
    function, arrays, numbers, most = known[0], known[1], known[2], known[3]
    while done < n_rows:
        n, values = min(most, n_rows - done), out + 8 * done
        call(known[4], (known[5], known[6], known[7], known[8], rows + 8 * done, n, known[9]))
        call(function, (proposed, current, starts, numbers, n, arrays, values))
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
    signature = types.void(*[types.intp] * 7)
    return numba.cfunc(signature, cache=True, error_model="numpy")(_evaluate)
