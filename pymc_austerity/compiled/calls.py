"""Compiled functions and arrays that compiled code knows by their addresses.

An address is an argument like any other, so that what calls a function is compiled once for all
models; and what is compiled is a fraction of what numba makes of arrays with their shapes.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import scipy.special.cython_special
from llvmlite import ir
from numba import types
from numba.extending import get_cython_function_address, intrinsic
from numpy.typing import NDArray


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


def _call(n_integers: int, result: Any) -> Callable[..., Any]:
    """Code that calls a C function of integers, among them addresses."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, *given = arguments
        kinds = [ir.IntType(64)] * n_integers
        returned = context.get_value_type(result) if result is not types.void else ir.VoidType()
        pointer = builder.inttoptr(address, ir.FunctionType(returned, kinds).as_pointer())
        value = builder.call(pointer, given)
        return context.get_dummy_value() if result is types.void else value

    return codegen


@intrinsic
def call_on_rows(  # type: ignore[no-untyped-def]
    typing_context, address, proposed, current, starts, rows, n_rows, table, out
):
    """Call ``f(proposed, current, starts, rows, n_rows, table, out)``; see `Kernel.address`."""
    return types.void(*[types.intp] * 8), _call(7, types.void)


@intrinsic
def call_of_reader(  # type: ignore[no-untyped-def]
    typing_context, address, counts, files, facts, scratch, rows, n_rows, out
):
    """Call ``f(counts, files, facts, scratch, rows, n_rows, out)``; see `rows.reader`."""
    return types.void(*[types.intp] * 8), _call(7, types.void)


@intrinsic
def call_of_one(typing_context, address, vector):  # type: ignore[no-untyped-def]
    """Call a function of the address of a vector that returns a real number."""
    return types.float64(types.intp, types.intp), _call(1, types.float64)


@intrinsic
def call_of_prior(typing_context, address, point, out, table):  # type: ignore[no-untyped-def]
    """Call ``f(point, out, table)``; see `pymc_austerity.model.LevelsAsRows.address`."""
    return types.void(*[types.intp] * 4), _call(3, types.void)


@intrinsic
def call_with_gradient(typing_context, address, vector, gradient):  # type: ignore[no-untyped-def]
    """Call a function that returns a real number and writes a gradient to an address."""
    return types.float64(*[types.intp] * 3), _call(2, types.float64)


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
