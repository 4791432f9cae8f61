"""How much the remainder of a row can change between two points, per unit of its constant."""

import math

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["largest_change", "largest_change_of_cubic"]

_ANGLES = 48
_COARSENESS = 1.0 - 9.0 / 8.0 * (math.pi / _ANGLES) ** 2


@numba.njit(cache=True)
def largest_change(u: NDArray[np.float64], v: NDArray[np.float64]) -> float:
    r"""Largest change of a remainder of third order between two points.

    A row's log-likelihood less its second-order expansion at the anchor, R, has third derivatives
    of at most c. Its gradient at w is at most :math:`c |w|^2 / 2`, and R itself at most
    :math:`c |w|^3 / 6`. Along the line from u to v,

    .. math:: |R(v) - R(u)| \leq \frac{c}{6} \min\{ |v - u| (|u|^2 + u \cdot v + |v|^2),
              \; |u|^3 + |v|^3 \}

    Parameters
    ----------
    u, v : float array, shape (d,)
        The two points in whitened coordinates about the anchor.

    Returns
    -------
    float
        The factor of c; it is the same when the points are exchanged.

    Examples
    --------
    >>> round(largest_change(np.array([0.0, 0.0]), np.array([1.0, 0.0])), 4)
    0.1667
    """
    uu = uv = vv = dd = 0.0
    for j in range(u.size):
        uu += u[j] * u[j]
        uv += u[j] * v[j]
        vv += v[j] * v[j]
        dd += (v[j] - u[j]) ** 2
    return min(math.sqrt(dd) * (uu + uv + vv), uu**1.5 + vv**1.5) / 6.0


@numba.njit(cache=True)
def largest_change_of_cubic(u: NDArray[np.float64], v: NDArray[np.float64]) -> float:
    r"""The same for rows with one predictor, whatever the direction of their whitened data.

    .. math:: |R(v) - R(u)| \leq \frac{c}{6} \max_{|n| = 1} |(n \cdot v)^3 - (n \cdot u)^3|

    The maximum lies in the plane of u and v, where the cubic is a trigonometric polynomial of
    degree 3 in the angle. By Bernstein's inequality its second derivative is at most 9 times its
    maximum, so that the largest value on a grid, divided by 0.995, is a bound.

    Examples
    --------
    >>> u, v = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    >>> round(6 * largest_change_of_cubic(u, v), 2)
    1.0
    """
    uu = uv = vv = 0.0
    for j in range(u.size):
        uu += u[j] * u[j]
        uv += u[j] * v[j]
        vv += v[j] * v[j]
    length = math.sqrt(uu)
    along = uv / length if length > 0.0 else 0.0
    across = math.sqrt(max(0.0, vv - along * along))
    largest = 0.0
    for j in range(_ANGLES):
        x, y = math.cos(j * math.pi / _ANGLES), math.sin(j * math.pi / _ANGLES)
        largest = max(largest, abs((x * along + y * across) ** 3 - (x * length) ** 3))
    return largest / (6.0 * _COARSENESS)
