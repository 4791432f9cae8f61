"""Arithmetic on arrays of intervals."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Interval", "add", "hull", "multiply", "negate", "point", "scale"]


class Interval(NamedTuple):
    """Closed intervals, one for each entry of two arrays of the same shape.

    Both are the same object where every interval is a single point, which halves the work. NaN in
    either means that nothing is known; NaN propagates through all operations.

    Attributes
    ----------
    lower, upper : float array
    """

    lower: NDArray
    upper: NDArray

    @property
    def is_point(self) -> bool:
        """Whether every interval is known to be a single point."""
        return self.lower is self.upper


def point(values: NDArray) -> Interval:
    """Intervals that hold a single point each."""
    return Interval(values, values)


def hull(*candidates: NDArray) -> Interval:
    """Smallest intervals that hold all candidates, NaN where one of them is NaN."""
    if len(candidates) == 1:
        return point(candidates[0])
    return Interval(np.minimum.reduce(candidates), np.maximum.reduce(candidates))


def add(a: Interval, b: Interval) -> Interval:
    """Sum of two intervals.

    Examples
    --------
    >>> import numpy as np
    >>> lower, upper = add(Interval(np.zeros(1), np.ones(1)), point(np.full(1, 2.0)))
    >>> float(lower[0]), float(upper[0])
    (2.0, 3.0)
    """
    if a.is_point and b.is_point:
        return point(a.lower + b.lower)
    return Interval(a.lower + b.lower, a.upper + b.upper)


def negate(a: Interval) -> Interval:
    """Intervals with the sign changed."""
    return point(-a.lower) if a.is_point else Interval(-a.upper, -a.lower)


def scale(a: Interval, factor: float) -> Interval:
    """Intervals times a number."""
    if a.is_point:
        return point(a.lower * factor)
    ends = (a.lower * factor, a.upper * factor)
    return Interval(*(ends if factor >= 0.0 else ends[::-1]))


def multiply(a: Interval, b: Interval) -> Interval:
    """Product of two intervals."""
    if a.is_point and b.is_point:
        return point(a.lower * b.lower)
    if a.is_point or b.is_point:
        fixed, other = (a, b) if a.is_point else (b, a)
        return hull(fixed.lower * other.lower, fixed.lower * other.upper)
    return hull(a.lower * b.lower, a.lower * b.upper, a.upper * b.lower, a.upper * b.upper)
