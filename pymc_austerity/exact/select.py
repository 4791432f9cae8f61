"""Which rows a decision reads, and the bound on the change of each."""

import math

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.exact.change import largest_change, largest_change_of_cubic

__all__ = ["group_bounds", "select_rows"]


@numba.njit(cache=True)
def _range_of_cosine(dot: float, length: float, angle: float) -> tuple[float, float]:
    """Range of n . w over the unit vectors n within an angle of a direction."""
    if length == 0.0:
        return 0.0, 0.0
    between = math.acos(min(1.0, max(-1.0, dot / length)))
    return (
        length * math.cos(min(math.pi, between + angle)),
        length * math.cos(max(0.0, between - angle)),
    )


@numba.njit(cache=True)
def group_bounds(
    u: NDArray[np.float64],
    v: NDArray[np.float64],
    radii: NDArray[np.float64],
    largest: NDArray[np.float64],
    directions: NDArray[np.float64],
    direction: NDArray[np.int64],
    angles: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Radius and change that bound the rows of each group between two points.

    Parameters
    ----------
    u, v : float array, shape (d,)
        The two points in whitened coordinates.
    radii, largest, directions, direction, angles : arrays
        As in `Groups`.

    Returns
    -------
    which : int array, shape (G,)
        Smallest radius that holds both points as the group sees them; R for none.
    changes : float array, shape (G,)
        Factor of the rows' constants. The same when the points are exchanged.
    """
    n_groups = direction.size
    which, changes = np.empty(n_groups, dtype=np.int64), np.empty(n_groups)
    length_u, length_v = math.sqrt(np.dot(u, u)), math.sqrt(np.dot(v, v))
    length_d = math.sqrt(np.dot(v - u, v - u))
    n_directions = directions.shape[0]
    if n_directions == 0:
        reach, change = max(length_u, length_v), largest_change(u, v)
        which[:] = np.searchsorted(radii, reach)
        changes[:] = change
        return which, changes
    most = largest_change_of_cubic(u, v)
    dots_u, dots_v = directions @ u, directions @ v
    for g in range(n_groups):
        a, b = dots_u[direction[g]], dots_v[direction[g]]
        low_u, high_u = _range_of_cosine(a, length_u, angles[g])
        low_v, high_v = _range_of_cosine(b, length_v, angles[g])
        low_d, high_d = _range_of_cosine(b - a, length_d, angles[g])
        x, y, d = max(-low_u, high_u), max(-low_v, high_v), max(-low_d, high_d)
        change = max(high_v**3 - low_u**3, high_u**3 - low_v**3)
        changes[g] = min(most, min(change, d * (x * x + x * y + y * y)) / 6.0)
        which[g] = np.searchsorted(radii, max(x, y))
    return which, changes


@numba.njit(cache=True)
def select_rows(
    u: NDArray[np.float64],
    v: NDArray[np.float64],
    inflation: float,
    rng: np.random.Generator,
    starts: NDArray[np.int64],
    radii: NDArray[np.float64],
    constants: NDArray[np.float64],
    largest: NDArray[np.float64],
    directions: NDArray[np.float64],
    direction: NDArray[np.int64],
    angles: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    r"""Rows of one decision: candidates of a Poisson process, and all rows of loose groups.

    Row i appears :math:`\text{Poisson}(B_i)` times, :math:`B_i` its bound between the two points.
    Groups whose largest bound is above 1 are cheaper read as they are; this rule does
    not change when the points are exchanged.

    Parameters
    ----------
    u, v : float array, shape (d,)
        The two points in whitened coordinates.
    inflation : float
        Factor of all bounds, at least 1.
    rng : numpy.random.Generator
    starts, radii, constants, largest, directions, direction, angles : arrays
        As in `Groups`.

    Returns
    -------
    rows : int array, shape (n,)
        Positions in storage; a candidate may appear more than once.
    bounds : float array, shape (n,)
        Their bounds, nats; infinite for rows that are read as they are.
    """
    which, changes = group_bounds(u, v, radii, largest, directions, direction, angles)
    n_groups = starts.size - 1
    ends, total, n_read = np.empty(n_groups), 0.0, 0
    for g in range(n_groups):
        size = starts[g + 1] - starts[g]
        bound = math.inf
        if which[g] < radii.size:
            c = largest[which[g], g]
            bound = c * changes[g] * inflation if c > 0.0 else 0.0
        if bound <= 1.0:
            total += size * bound
        else:
            which[g] = radii.size
            n_read += size
        ends[g] = total
    n_candidates = rng.poisson(total)
    rows, bounds = np.empty(n_read + n_candidates, np.int64), np.empty(n_read + n_candidates)
    n = 0
    for g in range(n_groups if n_read else 0):
        if which[g] == radii.size:
            for i in range(starts[g], starts[g + 1]):
                rows[n], bounds[n] = i, math.inf
                n += 1
    for _ in range(n_candidates):
        g = int(np.searchsorted(ends, rng.random() * total, side="right"))
        if g == n_groups:  # rounding of the last end
            continue
        i = starts[g] + int(rng.random() * (starts[g + 1] - starts[g]))
        c = constants[which[g], i]
        if rng.random() * largest[which[g], g] < c:
            rows[n], bounds[n] = i, c * changes[g] * inflation
            n += 1
    return rows[:n], bounds[:n]
