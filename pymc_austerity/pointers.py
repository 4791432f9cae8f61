"""Addresses that compiled code uses as arrays."""

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import intrinsic


def pointer_to(number: Any) -> Callable[[Any], Any]:
    """A function that compiled code calls to make an array of numbers of an address.

    Parameters
    ----------
    number : numba type
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(types.CPointer(number)))

    def at(typing_context, address):  # type: ignore[no-untyped-def]
        return types.CPointer(number)(types.intp), codegen

    made: Callable[[Any], Any] = intrinsic(at)
    return made


reals, integers = pointer_to(types.float64), pointer_to(types.int64)
"""The float64 array, or the int64 array, at an address."""
