r"""The logarithm of the probability that a standard normal variable falls into an interval.

With the center m and the width w of the interval

.. math::
    \log(\Phi(m + w/2) - \Phi(m - w/2))
    = \log w - \tfrac12 m^2 - \tfrac12 \log 2 \pi + K(m w, \tfrac12 w^2), \quad
    K(p, q) = \log \int_{-1/2}^{1/2} e^{-p s - q s^2} ds, \quad q \geq 0

Up to their signs the derivatives of K are joint cumulants of S and its square, where S is normal
with variance :math:`1 / (2 q)` and truncated to the interval of length one. They are bounded.
"""

from functools import reduce
from math import comb, pi

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import BinaryScalarOp, Elemwise, upgrade_to_float
from pymc_austerity.model.operations import jets
from pymc_austerity.model.operations.enclosures import applied, log, power
from pymc_austerity.model.operations.jets import (
    Interval,
    Jet,
    MultiIndex,
    indices,
    point,
    values_of,
)

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_NEGLIGIBLE = 40.0
"""Nats below its maximum at which the integrand is left out."""
_BEYOND = 2
"""Orders beyond the highest that are evaluated in the middle of a box."""


def taylor_coefficients(p: Interval, q: Interval, order: int) -> Jet:
    r"""Enclosures of the Taylor coefficients of K up to an order, by those of p and q.

    Parameters
    ----------
    p, q : Interval
        NaN for negative q.
    order : int

    Notes
    -----
    Over a box they come from Taylor's formula about its middle. What is left is bounded for all p
    and q: a sum of positive numbers times :math:`e^{i t_k}` is not zero if all
    :math:`|t_k| < \pi/2`, so that

    .. math:: F(x, y) = \log E e^{x S + y (S^2 - 1/8)}

    has no singularity in :math:`|x|/2 + |y|/8 < \pi/2`, where its real part is below
    :math:`\pi/2`. Its coefficients are then at most :math:`\pi / (|x|^i |y|^j)`, by the inequality
    of Borel and Carathéodory, which is least at :math:`|x| = \pi i / (i + j)` and
    :math:`|y| = 4 \pi j / (i + j)`.

    Examples
    --------
    >>> found = taylor_coefficients(point(np.zeros(1)), point(np.zeros(1)), 2)
    >>> round(float(found[2, 0].lower[0]), 6)  # half the variance of a uniform variable
    0.041667
    """
    if p.is_point and q.is_point:
        return {m: point(x) for m, x in _at(p.lower, q.lower, order).items()}
    half = [0.5 * (x.upper - x.lower) for x in (p, q)]
    highest = order + _BEYOND
    here = _at(p.lower + half[0], q.lower + half[1], highest)
    found = {m: _about(m, here, half, highest) for m in indices(2, order) if m != (0, 0)}
    found[0, 0] = _value(p, q)
    return found


def _about(
    m: MultiIndex, here: dict[MultiIndex, NDArray], half: list[NDArray], highest: int
) -> Interval:
    """Coefficient m over a box, by Taylor's formula and by its global bound."""
    radius = np.zeros_like(here[m])
    for n in indices(2, highest + 1 - sum(m)):
        if n != (0, 0):
            both = (m[0] + n[0], m[1] + n[1])
            size = abs(here[both]) if both in here else _largest(*both)
            times = comb(both[0], n[0]) * comb(both[1], n[1])
            radius = radius + times * size * half[0] ** n[0] * half[1] ** n[1]
    everywhere = _everywhere(m)
    unknown = 0.0 * radius
    return Interval(
        np.fmax(here[m] - radius, everywhere.lower) + unknown,
        np.fmin(here[m] + radius, everywhere.upper) + unknown,
    )


def _everywhere(m: MultiIndex) -> Interval:
    if m == (0, 1):
        ends = (-0.25, 0.0)
    else:
        sharper: dict[MultiIndex, float] = {(1, 0): 0.5, (2, 0): 0.125}
        largest = sharper.get(m, _largest(*m))
        ends = (0.0 if m == (2, 0) else -largest, largest)
    return Interval(np.asarray(ends[0]), np.asarray(ends[1]))


def _largest(i: int, j: int) -> float:
    """Bound of a coefficient anywhere, but for the first derivative in q."""
    n = i + j
    return float(pi * (n / pi) ** n / (float(i) ** i * (4.0 * j) ** j))


def _value(p: Interval, q: Interval) -> Interval:
    """K increases with the size of p and decreases in q."""
    least = np.where(p.lower * p.upper <= 0.0, 0.0, np.minimum(abs(p.lower), abs(p.upper)))
    most = np.maximum(abs(p.lower), abs(p.upper))
    unknown = 0.0 * (p.lower + p.upper)
    return Interval(_at(least, q.upper, 0)[0, 0] + unknown, _at(most, q.lower, 0)[0, 0] + unknown)


# ------------------------------------------------------------------------------- at points


@np.errstate(all="ignore")
def _at(p: NDArray, q: NDArray, order: int) -> dict[MultiIndex, NDArray]:
    """Taylor coefficients at points."""
    p, q = np.broadcast_arrays(p, np.where(q >= 0.0, q, np.nan))
    mode = np.where(q > 0.0, -p / (2.0 * q), -np.sign(p))
    mode = np.clip(mode, -0.5, 0.5)
    slope = p + 2.0 * q * mode
    slope = np.where(abs(mode) < 0.5, 0.0, slope)
    reach = 2.0 * _NEGLIGIBLE / (abs(slope) + np.sqrt(slope**2 + 4.0 * q * _NEGLIGIBLE))
    low, high = np.maximum(-0.5 - mode, -reach), np.minimum(0.5 - mode, reach)
    half = 0.5 * (high - low)
    t = (0.5 * (high + low))[..., None] + half[..., None] * _NODES
    terms = _WEIGHTS * np.exp(-slope[..., None] * t - q[..., None] * t**2)
    total = terms.sum(axis=-1)
    value = np.log(half * total) - p * mode - q * mode**2
    if order == 0:
        return {(0, 0): value}
    weights = terms / total[..., None]
    mean = (weights * t).sum(axis=-1)
    s = t - mean[..., None]
    # the square of S, less that of its mean
    square = s * (s + 2.0 * (mode + mean)[..., None])
    excess = (weights * square).sum(axis=-1)
    found = _cumulants(_moments(weights, s, square - excess[..., None], order), order)
    found[0, 0] = value
    found[1, 0], found[0, 1] = mode + mean, (mode + mean) ** 2 + excess
    return {m: (-1.0) ** sum(m) * x for m, x in found.items()}


def _moments(
    weights: NDArray, s: NDArray, square: NDArray, order: int
) -> dict[MultiIndex, NDArray]:
    """Central moments of S and its square over i! j!, from these less their means."""
    found: dict[MultiIndex, NDArray] = {}
    column = weights
    for j in range(order + 1):
        power = column
        for i in range(order + 1 - j):
            found[i, j] = power.sum(axis=-1)
            power = power * s / (i + 1.0)
        column = column * square / (j + 1.0)
    return found


def _cumulants(moments: dict[MultiIndex, NDArray], order: int) -> dict[MultiIndex, NDArray]:
    """Joint cumulants over i! j!, from the derivative of the series of the logarithm."""
    found: dict[MultiIndex, NDArray] = {}
    for m in indices(2, order):
        along = 0 if m[0] else 1
        if sum(m) < 2:
            found[m] = np.zeros_like(moments[m])
            continue
        total = m[along] * moments[m]
        for k, cumulant in found.items():
            rest = (m[0] - k[0], m[1] - k[1])
            if k[along] and min(rest) >= 0 and sum(rest) > 1:
                total = total - k[along] * cumulant * moments[rest]
        found[m] = total / m[along]
    return found


class LogNormalProbability(BinaryScalarOp):
    """Of the center and the width of an interval; NaN for widths below zero."""

    def impl(self, center: float, width: float) -> float:
        """Value for two numbers."""
        m, w = (jets.constant_jet(np.asarray(x, dtype=np.float64), 1) for x in (center, width))
        return float(log_normal_probability_jet(m, w, 0)[0,].lower)


log_normal_probability = Elemwise(LogNormalProbability(upgrade_to_float))
"""From centers and widths to nats."""


@np.errstate(all="ignore")
def log_normal_probability_jet(center: Jet, width: Jet, order: int) -> Jet:
    """Taylor coefficients from those of the center and the width of the interval.

    Examples
    --------
    >>> from pymc_austerity.model.operations.jets import point
    >>> center = {(0,): point(np.zeros(1)), (1,): point(np.ones(1))}
    >>> jet = log_normal_probability_jet(center, {(0,): point(np.ones(1))}, 2)
    >>> round(float(jet[0,].lower[0]), 4), round(float(jet[2,].lower[0]), 4)
    (-0.9599, -0.4597)
    """
    p = jets.cauchy_product(center, width, order)
    q = jets.jet_times(applied(power(2), width, order), 0.5)
    coefficients = taylor_coefficients(values_of(p), values_of(q), order)
    parts = [
        applied(log, width, order),
        jets.compose_two(p, q, coefficients, order),
        jets.jet_times(applied(power(2), center, order), -0.5),
        jets.constant_jet(np.asarray(-0.5 * np.log(2.0 * pi)), len(jets.zero_of(p))),
    ]
    return reduce(jets.jet_sum, parts)
