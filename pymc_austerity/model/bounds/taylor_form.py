"""Enclosures by Taylor's formula about the center of a box, which cancel where terms do."""

from itertools import product
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.model.operations.enclosures import Enclosed
from pymc_austerity.model.operations.intervals import Interval, add, multiply, point, scale
from pymc_austerity.model.operations.jets import MultiIndex

__all__ = ["Steps"]


class Steps:
    r"""Powers of the differences between the points of boxes and their centers.

    .. math::
        \frac{D^m f(\eta)}{m!} = \sum_{|m + n| < P} \binom{m + n}{n} f_{m + n} (\eta - c)^n
        + \sum_{|m + n| = P} \binom{m + n}{n} F_{m + n} (\eta - c)^n

    with the coefficients :math:`f` at the center, which are exact, and :math:`F` in the box. The
    difference of two functions that are nearly the same is enclosed by it well, and by the
    difference of their enclosures badly.

    Parameters
    ----------
    center, lower, upper : float array, shape (n, k)
        A point of each box, and its ends.
    order : int
        P.
    """

    def __init__(self, center: NDArray, lower: NDArray, upper: NDArray, order: int) -> None:
        down, up = np.minimum(lower - center, 0.0), np.maximum(upper - center, 0.0)
        self.order, self.n_cells = order, len(center)
        indices = product(range(order + 1), repeat=center.shape[1])
        self.powers = {n: _monomial(down, up, n) for n in indices if sum(n) <= order}

    def tightened(self, x: Enclosed, highest: int) -> Enclosed:
        """The same with smaller enclosures of the coefficients up to an order."""
        if x.box is x.center:
            return x
        box = dict(x.box)
        for m, natural in x.box.items():
            if sum(m) <= min(highest, self.order - 1) and self._has_rows(natural):
                form = self._form(m, x)
                lower = np.where(form.lower > natural.lower, form.lower, natural.lower)
                upper = np.where(form.upper < natural.upper, form.upper, natural.upper)
                box[m] = Interval(lower, upper)
        return Enclosed(x.center, box)

    def _has_rows(self, x: Interval) -> bool:
        return x.lower.ndim > 0 and len(x.lower) == self.n_cells

    def _form(self, m: MultiIndex, x: Enclosed) -> Interval:
        ndim = x.box[m].lower.ndim
        total = point(np.zeros((1,) * ndim))
        for n, power in self.powers.items():
            both = tuple(i + j for i, j in zip(m, n, strict=True))
            if sum(both) > self.order:
                continue
            coefficient = (x.center if sum(both) < self.order else x.box).get(both)
            if coefficient is not None:
                along = _along_rows(power, ndim)
                times = prod(comb(i, j) for i, j in zip(both, n, strict=True))
                total = add(total, scale(multiply(coefficient, along), times))
        return total


def _along_rows(x: Interval, ndim: int) -> Interval:
    shape = (-1, *(1,) * (ndim - 1))
    return point(x.lower.reshape(shape)) if x.is_point else Interval(*(e.reshape(shape) for e in x))


def _power(x: Interval, exponent: int) -> Interval:
    """Power, above zero, of intervals that hold zero."""
    if exponent % 2:
        return Interval(x.lower**exponent, x.upper**exponent)
    return Interval(np.zeros_like(x.lower), np.maximum(-x.lower, x.upper) ** exponent)


def _monomial(down: NDArray, up: NDArray, exponents: MultiIndex) -> Interval:
    total = point(np.ones(len(down)))
    for j, exponent in enumerate(exponents):
        if exponent:
            total = multiply(total, _power(Interval(down[:, j], up[:, j]), exponent))
    return total
