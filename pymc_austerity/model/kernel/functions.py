"""Functions of numbers in compiled code, where Python's `math` has none.

The special ones are stable over the whole range of double precision, and pass NaN on.
"""

import math

from numba import njit

__all__ = ["choose", "erfcx", "log1mexp"]

_LOG_2 = math.log(2.0)
_SQRT_PI = math.sqrt(math.pi)
_FAR = 10.0
_TERMS = 14


@njit(error_model="numpy")
def choose(condition: bool, yes: float, no: float) -> float:
    """One of two numbers.

    A conditional expression in its place gives its function two more blocks of code, and the time
    to compile that grows with their square.
    """
    return yes if condition else no


@njit(error_model="numpy")
def log1mexp(x: float) -> float:
    """Log of 1 - exp(x) for x <= 0, after Maechler (2012)."""
    if x > -_LOG_2:
        return math.log(-math.expm1(x))
    return math.log1p(-math.exp(x))


@njit(error_model="numpy")
def erfcx(x: float) -> float:
    """exp(x^2) erfc(x); by its asymptotic series (Abramowitz and Stegun, 7.1.23) beyond 10."""
    if x < _FAR:
        return math.exp(x * x) * math.erfc(x)
    half = 0.5 / (x * x)
    total = 1.0
    for k in range(_TERMS, 0, -1):
        total = 1.0 - (2 * k - 1) * half * total
    return total / (x * _SQRT_PI)
