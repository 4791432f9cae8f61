"""The rows that a decision reads, and the bound on the change of each."""

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.exact.change import change_along, largest_change, largest_change_of_cubic
from pymc_austerity.exact.groups import Groups

__all__ = ["SelectedRows", "group_rates", "rates_of", "rows_of", "select_rows"]


class SelectedRows(NamedTuple):
    """The rows of one decision.

    Attributes
    ----------
    rows : int array, shape (n,)
        Positions in storage: first the rows that are always read, then the candidates, which
        may appear more than once.
    bounds : float array, shape (m,)
        Bounds of the m candidates, nats.
    """

    rows: NDArray[np.int64]
    bounds: NDArray[np.float64]


@numba.njit(cache=True)
def group_rates(
    u: NDArray[np.float64],
    v: NDArray[np.float64],
    d: int,
    inflation: float,
    n_groups: int,
    n_radii: int,
    is_single: bool,
    starts: NDArray[np.int64],
    radii: NDArray[np.float64],
    largest: NDArray[np.float64],
    directions: NDArray[np.float64],
    direction: NDArray[np.int64],
    cosines: NDArray[np.float64],
    sines: NDArray[np.float64],
    bounds: NDArray[np.float64],
    totals: NDArray[np.float64],
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
    n_groups, n_radii : int
        G, and the number of radii.
    is_single : bool
        Whether groups have directions.
    starts, radii, largest, directions, direction, cosines, sines : arrays
        As in `Groups`, those with two axes flattened.
    bounds : float array, shape (G,)
        Filled with the bound of a row in each group, nats; infinite where all rows are read.
    totals : float array, shape (G,)
        Filled with running sums of the numbers of candidates to expect.

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
    most = largest_change_of_cubic(uu, uv, vv) if is_single else largest_change(uu, uv, vv)
    farthest = math.sqrt(max(uu, vv))
    last, a, b = -1, 0.0, 0.0
    n_read, total = 0, 0.0
    for g in range(n_groups):
        change, reach = most, farthest
        if is_single:
            if direction[g] != last:
                last, a, b = direction[g], 0.0, 0.0
                for j in range(d):
                    a += directions[last * d + j] * u[j]
                    b += directions[last * d + j] * v[j]
            if cosines[g] > 0.0:
                along, reach = change_along(a, b, uu, uv, vv, cosines[g], sines[g])
                change = min(most, along)
        r = 0
        while r < n_radii and radii[r] < reach:
            r += 1
        bound = math.inf
        if r < n_radii:
            constant = largest[r * n_groups + g]
            bound = constant * change * inflation if constant > 0.0 else 0.0
        if bound <= 1.0:
            total += (starts[g + 1] - starts[g]) * bound
        else:
            bound = math.inf
            n_read += starts[g + 1] - starts[g]
        bounds[g] = bound
        totals[g] = total
    return n_read


def rates_of(
    u: NDArray[np.float64], v: NDArray[np.float64], inflation: float, groups: Groups
) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
    """Result of `group_rates`, and the two arrays that it fills."""
    its = groups
    bounds, totals = np.empty(its.n_groups), np.empty(its.n_groups)
    n_read = group_rates(
        u, v, u.size, inflation, its.n_groups, its.radii.size, its.is_single, its.starts,
        its.radii, its.largest.ravel(), its.directions.ravel(), its.direction, its.cosines,
        its.sines, bounds, totals,
    )  # fmt: skip
    return n_read, bounds, totals


def select_rows(
    u: NDArray[np.float64],
    v: NDArray[np.float64],
    inflation: float,
    groups: Groups,
    rng: np.random.Generator,
) -> SelectedRows:
    r"""Rows of one decision: candidates of a Poisson process, and all rows of loose groups.

    A row with bound B appears :math:`\text{Poisson}(B)` times.

    Parameters
    ----------
    u, v : float array, shape (d,)
        The two points in whitened coordinates.
    inflation : float
        Factor of all bounds, at least 1.
    groups : Groups
    rng : numpy.random.Generator
        Gives the number of candidates, then two uniform numbers for each: its group, and its
        place in the group.
    """
    n_read, bounds, totals = rates_of(u, v, inflation, groups)
    starts, total = groups.starts, totals[-1]
    uniform = rng.random((rng.poisson(total), 2))
    # rounding must not lead beyond the last group that has candidates
    last = totals.searchsorted(total)
    which = np.minimum(totals.searchsorted(uniform[:, 0] * total, side="right"), last)
    first = starts[which]
    rows = first + (uniform[:, 1] * (starts[which + 1] - first)).astype(np.int64)
    if n_read:
        rows = np.concatenate([rows_of(groups, np.isinf(bounds), n_read), rows])
    return SelectedRows(rows, bounds[which])


def rows_of(groups: Groups, chosen: NDArray[np.bool_], n_rows: int) -> NDArray[np.int64]:
    """Positions of all rows of some groups, from their number."""
    if n_rows == groups.n_rows:
        return np.arange(n_rows)
    ends = groups.starts[1:][chosen]
    sizes = ends - groups.starts[:-1][chosen]
    return np.arange(n_rows) + np.repeat(ends - np.cumsum(sizes), sizes)
