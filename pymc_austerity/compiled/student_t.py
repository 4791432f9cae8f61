"""SciPy's distribution function of Student's t, for compiled code."""

from functools import cache

import scipy.special.cython_special
from numba.extending import get_cython_function_address

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
