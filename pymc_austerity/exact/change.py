"""How much the remainder of a row can change between two points, per unit of its constant."""

import math

import numba
import numpy as np

_ANGLES = 48
_COSINES = np.cos(np.arange(_ANGLES) * math.pi / _ANGLES)
_SINES = np.sin(np.arange(_ANGLES) * math.pi / _ANGLES)
_COARSENESS = 1.0 - 9.0 / 8.0 * (math.pi / _ANGLES) ** 2


@numba.njit(cache=True)
def largest_change(uu: float, uv: float, vv: float) -> float:
    r"""Largest change of a remainder of third order between two points.

    Let R be a row's log-likelihood minus its second-order expansion at the anchor, with third
    derivatives of at most c. Its gradient at w is at most :math:`c |w|^2 / 2`, and R itself at most
    :math:`c |w|^3 / 6`. Along the line from u to v,

    .. math:: |R(v) - R(u)| \leq \frac{c}{6} \min\{ |v - u| (|u|^2 + u \cdot v + |v|^2),
              \; |u|^3 + |v|^3 \}

    Parameters
    ----------
    uu, uv, vv : float
        Inner products of the two points, in whitened coordinates about the anchor.

    Returns
    -------
    float
        The factor of c; it is the same when the points are exchanged.

    Examples
    --------
    >>> round(largest_change(0.0, 0.0, 1.0), 4)
    0.1667
    """
    moved = math.sqrt(max(0.0, uu + vv - 2.0 * uv))
    return min(moved * (uu + vv + uv), uu**1.5 + vv**1.5) / 6.0


@numba.njit(cache=True)
def largest_change_of_cubic(uu: float, uv: float, vv: float) -> float:
    r"""The same for rows with one predictor, whatever the direction of their whitened data.

    .. math:: |R(v) - R(u)| \leq \frac{c}{6} \max_{|n| = 1} |(n \cdot v)^3 - (n \cdot u)^3|

    The maximum lies in the plane of u and v, where the cubic is a trigonometric polynomial of
    degree 3 in the angle. By Bernstein's inequality its second derivative is at most 9 times its
    maximum, so the largest value on a grid, divided by 0.995, is a bound. The grid begins at
    the longer of the two points, whichever is given first.

    Examples
    --------
    >>> round(6 * largest_change_of_cubic(1.0, 0.0, 1.0), 2)
    1.0
    """
    length = math.sqrt(max(uu, vv))
    along = uv / length if length > 0.0 else 0.0
    across = math.sqrt(max(0.0, min(uu, vv) - along * along))
    largest = 0.0
    for j in range(_ANGLES):
        one = _COSINES[j] * along + _SINES[j] * across
        other = _COSINES[j] * length
        largest = max(largest, abs(one * one * one - other * other * other))
    return largest / (6.0 * _COARSENESS)


@numba.njit(cache=True)
def _range_of_product(
    along: float, square: float, cosine: float, sine: float
) -> tuple[float, float]:
    """Range of n . w over the unit vectors n within an angle of a direction, along which w is."""
    length = math.sqrt(square)
    across = math.sqrt(max(0.0, square - along * along))
    low = -length if along <= -length * cosine else along * cosine - across * sine
    high = length if along >= length * cosine else along * cosine + across * sine
    return low, high


@numba.njit(cache=True)
def change_along(
    a: float, b: float, uu: float, uv: float, vv: float, cosine: float, sine: float
) -> tuple[float, float]:
    r"""The same for rows with one predictor whose data lie near a direction.

    .. math:: \max_n |(n \cdot v)^3 - (n \cdot u)^3| / 6

    over the unit vectors n within an angle of the direction or of its negative.

    Parameters
    ----------
    a, b : float
        Inner products of u and v with the direction, a unit vector.
    uu, uv, vv : float
        Those of the two points.
    cosine, sine : float
        Of the angle, which is at most a right one.

    Returns
    -------
    change, reach : float
        The factor of c, and the largest of :math:`|n \cdot u|` and :math:`|n \cdot v|`. Both are
        the same when the points are exchanged.

    Examples
    --------
    >>> change, reach = change_along(1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0)
    >>> round(change, 4), reach
    (0.1667, 1.0)
    """
    low_u, high_u = _range_of_product(a, uu, cosine, sine)
    low_v, high_v = _range_of_product(b, vv, cosine, sine)
    moved = max(0.0, uu + vv - 2.0 * uv)
    low_d, high_d = _range_of_product(b - a, moved, cosine, sine)
    x, y, d = max(-low_u, high_u), max(-low_v, high_v), max(-low_d, high_d)
    change = max(high_v * high_v * high_v - low_u * low_u * low_u,
                 high_u * high_u * high_u - low_v * low_v * low_v)  # fmt: skip
    return min(change, d * (x * x + y * y + x * y)) / 6.0, max(x, y)
