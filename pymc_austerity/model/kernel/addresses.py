"""Arrays and functions that compiled code uses by their addresses."""

from collections.abc import Callable
from typing import Any

import numba
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pymc_austerity.time_limit import end_if_late

__all__ = ["compiled_function", "pointer"]


@intrinsic
def pointer(typing_context, address):  # type: ignore[no-untyped-def]
    """Pointer to an address, for ``numba.carray``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.intp), codegen


def compiled_function(function: Callable[..., Any], n_arguments: int, result: Any) -> Any:
    """Compile a function of integers, most of them addresses, with C's calling convention.

    Parameters
    ----------
    function : callable
        From a module of `pymc_austerity.model.kernel.store`.
    n_arguments : int
    result : numba type

    Returns
    -------
    numba.core.ccallback.CFunc
        Its ``address`` is valid as long as it lives.
    """
    end_if_late()
    keep = not function.__code__.co_filename.startswith("<")
    return numba.cfunc(result(*[types.intp] * n_arguments), cache=keep)(function)
