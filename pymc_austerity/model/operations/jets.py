"""Intervals, and Taylor coefficients of functions of several predictors as intervals."""

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from math import factorial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray


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

    @property
    def ends(self) -> tuple[NDArray, ...]:
        """Both, or the one that they are."""
        return self[:1] if self.is_point else tuple(self)

    def each(self, function: Callable[[NDArray], NDArray]) -> "Interval":
        """The ends changed by a function that does not decrease."""
        lower = function(self.lower)
        return Interval(lower, lower if self.is_point else function(self.upper))


def point(values: NDArray) -> Interval:
    """Intervals that hold a single point each."""
    return Interval(values, values)


def hull(*candidates: NDArray) -> Interval:
    """Smallest intervals that hold all candidates, NaN where one of them is NaN."""
    if len(candidates) == 1:
        return point(*candidates)
    return Interval(reduce(np.minimum, candidates), reduce(np.maximum, candidates))


def add(a: Interval, b: Interval) -> Interval:
    """Sum of two intervals.

    Examples
    --------
    >>> import numpy as np
    >>> lower, upper = add(Interval(np.zeros(1), np.ones(1)), point(np.full(1, 2.0)))
    >>> float(lower[0]), float(upper[0])
    (2.0, 3.0)
    """
    lower = a.lower + b.lower
    return Interval(lower, lower if a.is_point and b.is_point else a.upper + b.upper)


def scale(a: Interval, factor: float) -> Interval:
    """Intervals times a number."""
    lower = a.lower * factor
    upper = lower if a.is_point else a.upper * factor
    return Interval(lower, upper) if factor >= 0.0 else Interval(upper, lower)


def negate(a: Interval) -> Interval:
    """Intervals with the sign changed."""
    return scale(a, -1.0)


def multiply(a: Interval, b: Interval) -> Interval:
    """Product of two intervals."""
    if a.is_point and b.is_point:
        return point(a.lower * b.lower)
    return hull(*[x * y for x in a.ends for y in b.ends])


MultiIndex: TypeAlias = tuple[int, ...]
Jet: TypeAlias = dict[MultiIndex, Interval]
"""From the multi-index m to an enclosure of D^m f / m! over a box; 0 where there is no entry."""


def indices(n_predictors: int, order: int) -> list[MultiIndex]:
    """All multi-indices up to an order, low orders first."""
    every = product(range(order + 1), repeat=n_predictors)
    return sorted((m for m in every if sum(m) <= order), key=sum)


def zero_of(u: Jet) -> MultiIndex:
    """The multi-index of the function itself."""
    return (0,) * len(next(iter(u)))


def values_of(u: Jet) -> Interval:
    """Enclosure of the function itself."""
    return u[zero_of(u)]


def constant_jet(value: NDArray, n_predictors: int) -> Jet:
    """Jet of a variable that does not depend on the predictors."""
    return {(0,) * n_predictors: point(value)}


def predictor(box: Interval, which: int, n_predictors: int) -> Jet:
    """Jet of one predictor over a box."""
    unit = tuple(int(j == which) for j in range(n_predictors))
    return {(0,) * n_predictors: box, unit: point(np.ones_like(box.lower))}


def jet_sum(u: Jet, v: Jet) -> Jet:
    """Jet of a sum."""
    total = dict(u)
    for m, x in v.items():
        total[m] = add(total[m], x) if m in total else x
    return total


def jet_times(u: Jet, factor: float) -> Jet:
    """Jet of a function times a number."""
    return {m: scale(x, factor) for m, x in u.items()}


def cauchy_product(u: Jet, v: Jet, order: int) -> Jet:
    """Jet of a product, up to an order."""
    product: Jet = {}
    for k, x in u.items():
        for n, y in v.items():
            if sum(k) + sum(n) <= order:
                m = tuple(i + j for i, j in zip(k, n, strict=True))
                xy = multiply(x, y)
                product[m] = add(product[m], xy) if m in product else xy
    return product


def compose(u: Jet, derivatives: Sequence[Interval]) -> Jet:
    r"""Jet of :math:`g(u)`, by Horner's rule in the part of `u` that is not constant.

    Parameters
    ----------
    u : Jet
        Inner function.
    derivatives : sequence of Interval
        Enclosures of :math:`g, g', g'', \dots` over the values of `u`; their number less one is
        the order of the result.
    """
    coefficients = [scale(d, 1.0 / factorial(n)) for n, d in enumerate(derivatives)]
    return _polynomial(u, [{zero_of(u): c} for c in coefficients])


def compose_two(u: Jet, v: Jet, coefficients: Jet, order: int) -> Jet:
    """Jet of g(u, v), from enclosures of the Taylor coefficients of g over the values of u and v.

    Parameters
    ----------
    u, v : Jet
        Inner functions.
    coefficients : dict
        From (i, j) to the derivative, i times in u and j times in v, over i! j!.
    order : int
        Of the result.
    """
    zero = zero_of(u)
    columns = [
        _polynomial(u, [{zero: coefficients[i, j]} for i in range(order + 1 - j)])
        for j in range(order + 1)
    ]
    return _polynomial(v, columns)


def _polynomial(u: Jet, coefficients: Sequence[Jet]) -> Jet:
    """Sum of powers of the part of u that is not constant, up to the order of the last one."""
    varying = {m: x for m, x in u.items() if m != zero_of(u)}
    if not varying:
        return coefficients[0]
    result, order = coefficients[-1], len(coefficients) - 1
    for n in range(order - 1, -1, -1):
        result = cauchy_product(result, varying, order - n)
        result = jet_sum(result, coefficients[n])
    return result
