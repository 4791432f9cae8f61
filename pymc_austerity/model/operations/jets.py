"""Taylor coefficients of functions of several predictors, as intervals, and their arithmetic."""

from collections.abc import Mapping, Sequence
from math import factorial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.model.operations import intervals
from pymc_austerity.model.operations.intervals import Interval

__all__ = [
    "Jet",
    "MultiIndex",
    "cauchy_product",
    "compose",
    "compose_two",
    "constant_jet",
    "jet_sum",
    "negative",
    "predictor",
]

MultiIndex: TypeAlias = tuple[int, ...]
Jet: TypeAlias = dict[MultiIndex, Interval]
"""From the multi-index m to an enclosure of D^m f / m! over a box; 0 where there is no entry."""


def constant_jet(value: NDArray, n_predictors: int) -> Jet:
    """Jet of a variable that does not depend on the predictors."""
    return {(0,) * n_predictors: intervals.point(value)}


def predictor(box: Interval, which: int, n_predictors: int) -> Jet:
    """Jet of one predictor over a box."""
    unit = tuple(int(j == which) for j in range(n_predictors))
    return {(0,) * n_predictors: box, unit: intervals.point(np.ones_like(box.lower))}


def jet_sum(u: Jet, v: Jet) -> Jet:
    """Jet of a sum."""
    total = dict(u)
    for m, x in v.items():
        total[m] = intervals.add(total[m], x) if m in total else x
    return total


def negative(u: Jet) -> Jet:
    """Jet of a function with the sign changed."""
    return {m: intervals.negate(x) for m, x in u.items()}


def cauchy_product(u: Jet, v: Jet, order: int) -> Jet:
    """Jet of a product, up to an order."""
    product: Jet = {}
    for k, x in u.items():
        for n, y in v.items():
            if sum(k) + sum(n) <= order:
                m = tuple(i + j for i, j in zip(k, n, strict=True))
                xy = intervals.multiply(x, y)
                product[m] = intervals.add(product[m], xy) if m in product else xy
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
    coefficients = [intervals.scale(d, 1.0 / factorial(n)) for n, d in enumerate(derivatives)]
    return _polynomial(u, [{_zero(u): c} for c in coefficients])


def compose_two(
    u: Jet, v: Jet, coefficients: Mapping[tuple[int, int], Interval], order: int
) -> Jet:
    """Jet of g(u, v), from enclosures of the Taylor coefficients of g over the values of u and v.

    Parameters
    ----------
    u, v : Jet
        Inner functions.
    coefficients : mapping
        From (i, j) to the derivative, i times in u and j times in v, over i! j!.
    order : int
        Of the result.
    """
    zero = _zero(u)
    columns = [
        _polynomial(u, [{zero: coefficients[i, j]} for i in range(order + 1 - j)])
        for j in range(order + 1)
    ]
    return _polynomial(v, columns)


def _polynomial(u: Jet, coefficients: Sequence[Jet]) -> Jet:
    """Sum of powers of the part of u that is not constant, up to the order of the last one."""
    varying = {m: x for m, x in u.items() if m != _zero(u)}
    if not varying:
        return coefficients[0]
    result, order = coefficients[-1], len(coefficients) - 1
    for n in range(order - 1, -1, -1):
        result = cauchy_product(result, varying, order - n)
        result = jet_sum(result, coefficients[n])
    return result


def _zero(u: Jet) -> MultiIndex:
    return (0,) * len(next(iter(u)))
