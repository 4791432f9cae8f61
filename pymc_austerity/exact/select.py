"""The rows that a decision reads, and the bound on the change of each."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from pymc_austerity.exact.groups import GroupArrays, Groups
from pymc_austerity.parts import compiled_once, part, pointers

_ANGLES = 48
_COSINES = np.cos(np.arange(_ANGLES) * math.pi / _ANGLES)
_SINES = np.sin(np.arange(_ANGLES) * math.pi / _ANGLES)
_COARSENESS = 1.0 - 9.0 / 8.0 * (math.pi / _ANGLES) ** 2


@part(types.float64)
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


@part(types.float64)
def largest_change_of_cubic(uu: float, uv: float, vv: float) -> float:
    r"""The same for rows with one predictor, whatever the direction of their whitened data.

    .. math:: |R(v) - R(u)| \leq \frac{c}{6} \max_{|n| = 1} |(n \cdot v)^3 - (n \cdot u)^3|

    The maximum lies in the plane of u and v, where the cubic is a trigonometric polynomial of
    degree 3 in the angle. By Bernstein's inequality its second derivative is at most 9 times its
    maximum, so the largest value on a grid, divided by 0.995, is a bound. The grid begins at
    the longer of the two points, whichever is given first.

    Examples
    --------
    >>> round(float(6 * largest_change_of_cubic(1.0, 0.0, 1.0)), 2)
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


@part(types.UniTuple(types.float64, 2))
def _range_of_product(
    along: float, square: float, cosine: float, sine: float
) -> tuple[float, float]:
    """Range of n . w over the unit vectors n within an angle of a direction, along which w is."""
    length = math.sqrt(square)
    across = math.sqrt(max(0.0, square - along * along))
    low = -length if along <= -length * cosine else along * cosine - across * sine
    high = length if along >= length * cosine else along * cosine + across * sine
    return low, high


@part(types.UniTuple(types.float64, 2))
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


class Candidates(NamedTuple):
    """Groups of rows, of which some are drawn; pointers in compiled code.

    Attributes
    ----------
    bounds : float array, shape (G,)
        Of the change of a row of each group, nats; infinite where all rows are read.
    totals : float array, shape (G,)
        Running sums of the numbers of candidates to expect.
    starts : int array, shape (G + 1,)
        Where the rows of each group begin.
    n_groups, n_read : int
        G, and the number of rows of groups without a bound.
    """

    bounds: NDArray[np.float64]
    totals: NDArray[np.float64]
    starts: NDArray[np.int64]
    n_groups: int
    n_read: int


@part(types.int64)
def expect(n_groups: int, starts: Any, bounds: Any, totals: Any) -> int:
    """Fill in `Candidates.totals`, and return the number of rows of groups without a bound."""
    n_read, total = 0, 0.0
    for g in range(n_groups):
        if bounds[g] == math.inf:
            n_read += starts[g + 1] - starts[g]
        else:
            total += (starts[g + 1] - starts[g]) * bounds[g]
        totals[g] = total
    return n_read


@compiled_once
def _expect(
    starts: NDArray[np.int64], bounds: NDArray[np.float64], totals: NDArray[np.float64]
) -> int:
    return expect(bounds.size, pointers(starts), pointers(bounds), pointers(totals))


def candidates_of(starts: NDArray[np.int64], bounds: NDArray[np.float64]) -> Candidates:
    """Groups of rows with given bounds."""
    totals = np.empty(bounds.size)
    return Candidates(bounds, totals, starts, bounds.size, _expect(starts, bounds, totals))


@part(types.int64)
def bound_groups(
    u: Any, v: Any, d: int, inflation: float, its: GroupArrays, bounds: Any, totals: Any
) -> int:
    """Bound of the rows of each group between two points, and how many candidates to expect.

    Groups whose bound is above 1 are read completely, which is cheaper; these groups are the same
    when the points are exchanged.

    Parameters
    ----------
    u, v : float array, shape (d,)
        The two points in whitened coordinates.
    d : int
    inflation : float
        Factor of all bounds, at least 1.
    its : GroupArrays
    bounds, totals : float array, shape (G,)
        Filled in, as in `Candidates`.

    Returns
    -------
    int
        Rows in groups that are read completely.
    """
    uu = uv = vv = 0.0
    for j in range(d):
        uu += u[j] * u[j]
        uv += u[j] * v[j]
        vv += v[j] * v[j]
    most = largest_change_of_cubic(uu, uv, vv) if its.is_single else largest_change(uu, uv, vv)
    farthest = math.sqrt(max(uu, vv))
    last, a, b = -1, 0.0, 0.0
    for g in range(its.n_groups):
        change, reach = most, farthest
        if its.is_single:
            if its.direction[g] != last:
                last, a, b = its.direction[g], 0.0, 0.0
                for j in range(d):
                    a += its.directions[last * d + j] * u[j]
                    b += its.directions[last * d + j] * v[j]
            if its.cosines[g] > 0.0:
                along, reach = change_along(a, b, uu, uv, vv, its.cosines[g], its.sines[g])
                change = min(most, along)
        r = 0
        while r < its.n_radii and its.radii[r] < reach:
            r += 1
        bound = math.inf
        if r < its.n_radii:
            constant = its.largest[r * its.n_groups + g]
            bound = constant * change * inflation if constant > 0.0 else 0.0
        bounds[g] = bound if bound <= 1.0 else math.inf
    return expect(its.n_groups, its.starts, bounds, totals)


@compiled_once
def _bound_groups(
    u: NDArray[np.float64],
    v: NDArray[np.float64],
    inflation: float,
    its: GroupArrays,
    bounds: NDArray[np.float64],
    totals: NDArray[np.float64],
) -> int:
    here, there, groups, limits, sums = pointers((u, v, its, bounds, totals))
    return bound_groups(here, there, u.size, inflation, groups, limits, sums)


def rates_of(
    u: NDArray[np.float64], v: NDArray[np.float64], inflation: float, groups: Groups
) -> Candidates:
    """Candidates of a decision between two points; see `bound_groups`."""
    bounds, totals = np.empty(groups.n_groups), np.empty(groups.n_groups)
    n_read = _bound_groups(u, v, float(inflation), groups.arrays, bounds, totals)
    return Candidates(bounds, totals, groups.starts, groups.n_groups, n_read)


@part(types.int64)
def number_of_candidates(mean: float, rng: np.random.Generator) -> int:
    """A Poisson number: how many waiting times, each exponential, end before the mean.

    numba takes half a second to compile what the generator has for it.
    """
    number, time = 0, -math.log1p(-rng.random())
    while time < mean:
        number += 1
        time -= math.log1p(-rng.random())
    return number


@part(types.void)
def select(its: Candidates, uniform: Any, n_candidates: int, rows: Any, groups: Any) -> None:
    r"""Write the rows of groups without a bound, and after them the candidates of the others.

    A row with bound B appears :math:`\text{Poisson}(B)` times, if the number of candidates is a
    Poisson variable whose mean is the last of the `totals`.

    Parameters
    ----------
    its : Candidates
    uniform : sequence of float
        A uniform number for each candidate. If they ascend, so do the rows.
    n_candidates : int
    rows, groups : sequence of int
        Filled in: positions of rows, and their groups.
    """
    starts, totals, k = its.starts, its.totals, 0
    for g in range(its.n_groups if its.n_read > 0 else 0):
        if its.bounds[g] == math.inf:
            for row in range(starts[g], starts[g + 1]):
                rows[k], groups[k] = row, g
                k += 1
    last = its.n_groups - 1
    total = totals[last]
    while last > 0 and totals[last - 1] == total:  # rounding must not lead beyond it
        last -= 1
    for number in range(n_candidates):
        share, g, end = uniform[number] * total, 0, last
        while g < end:
            middle = (g + end) // 2
            if totals[middle] <= share:
                g = middle + 1
            else:
                end = middle
        before, n_rows = totals[g - 1] if g > 0 else 0.0, starts[g + 1] - starts[g]
        place = np.int64((share - before) / (totals[g] - before) * n_rows)
        rows[k], groups[k] = starts[g] + min(place, n_rows - 1), g
        k += 1


@compiled_once
def _select(
    its: Candidates,
    uniform: NDArray[np.float64],
    n_candidates: int,
    rows: NDArray[np.int64],
    groups: NDArray[np.int64],
) -> None:
    drawn, places, found, owners = pointers((its, uniform, rows, groups))
    select(drawn, places, n_candidates, found, owners)


def selected(
    its: Candidates, uniform: NDArray[np.float64], n_candidates: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows and groups that `select` fills in."""
    rows, groups = np.empty((2, its.n_read + n_candidates), dtype=np.int64)
    _select(its, uniform, n_candidates, rows, groups)
    return rows, groups
