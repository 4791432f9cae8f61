"""Exact decisions by Poisson-thinned rows in compiled code.

The counterpart of `pymc_austerity.exact.decide`, with the same random numbers.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from pymc_austerity.compiled.calls import call_on_rows
from pymc_austerity.compiled.survey import announce
from pymc_austerity.exact.select import group_rates
from pymc_austerity.exact.thin import RELATIVE
from pymc_austerity.parts import part
from pymc_austerity.pointers import integers, reals

__all__ = [
    "ACCEPTED",
    "REJECTED",
    "VIOLATED",
    "ExactDecisions",
    "added_by",
    "bound_groups",
    "decide_exactly",
    "group_at",
    "last_group",
    "order_points",
]

REJECTED, ACCEPTED, VIOLATED = 0, 1, -1


class ExactDecisions(NamedTuple):
    """What exact decisions need; see `pymc_austerity.exact.Groups` for most.

    Attributes
    ----------
    function : int
        Address of the function of rows; see `pymc_austerity.model.Kernel.address`.
    terms, row_starts, table, places : arrays
        Entries of a point in the order of the terms, where terms begin, and where rows lie: as
        `entries`, `starts`, `table` and `places` of `pymc_austerity.compiled.CompiledRows`.
    inverse_root, center : float arrays, shape (d, d) and (d,)
        Whiten a point; the matrix is lower triangular.
    inflation : float
        Factor of the bounds.
    starts, radii, largest, directions, direction, cosines, sines : arrays
        Of the groups.
    bounds, totals : float array, shape (G,)
        Working space.
    u, v, proposed, current : float arrays
        Working space: the two points whitened, and in the order of the terms.
    size, n_terms, n_arrays, n_groups, n_radii : int
        d, and lengths of `terms`, `places`, `bounds` and `radii`.
    is_single : bool
        Whether groups have directions.
    rounding : float
        Nats by which rounding may take a row beyond its bound.
    """

    function: int
    terms: NDArray[np.int64]
    row_starts: NDArray[np.uint64]
    table: NDArray[np.int64]
    places: NDArray[np.int64]
    inverse_root: NDArray[np.float64]
    center: NDArray[np.float64]
    inflation: float
    starts: NDArray[np.int64]
    radii: NDArray[np.float64]
    largest: NDArray[np.float64]
    directions: NDArray[np.float64]
    direction: NDArray[np.int64]
    cosines: NDArray[np.float64]
    sines: NDArray[np.float64]
    bounds: NDArray[np.float64]
    totals: NDArray[np.float64]
    u: NDArray[np.float64]
    v: NDArray[np.float64]
    proposed: NDArray[np.float64]
    current: NDArray[np.float64]
    size: int
    n_terms: int
    n_arrays: int
    n_groups: int
    n_radii: int
    is_single: bool
    rounding: float


_rates_of_groups = part(types.int64)(group_rates.py_func)


@part(types.int64)
def bound_groups(its: ExactDecisions, proposed: Any, current: Any) -> int:
    """Bound the changes of rows, group by group; returns how many rows are read as they are."""
    inverse_root, center, d = reals(its.inverse_root), reals(its.center), its.size
    u, v = reals(its.u), reals(its.v)
    for i in range(d):
        now, then = 0.0, 0.0
        for j in range(i + 1):
            now += inverse_root[i * d + j] * (current[j] - center[j])
            then += inverse_root[i * d + j] * (proposed[j] - center[j])
        u[i], v[i] = now, then
    return _rates_of_groups(
        u, v, d, its.inflation, its.n_groups, its.n_radii, its.is_single,
        integers(its.starts), reals(its.radii), reals(its.largest), reals(its.directions),
        integers(its.direction), reals(its.cosines), reals(its.sines), reals(its.bounds),
        reals(its.totals),
    )  # fmt: skip


@part(types.int64)
def last_group(totals: Any, n_groups: int) -> int:
    """The last group that has candidates: rounding must not lead beyond it."""
    last = 0
    while last < n_groups - 1 and totals[last] < totals[n_groups - 1]:
        last += 1
    return last


@part(types.int64)
def group_at(share: float, totals: Any, n_groups: int, last: int) -> int:
    """The first group whose running sum is above the share."""
    low, high = 0, n_groups
    while low < high:
        middle = (low + high) // 2
        if totals[middle] <= share:
            low = middle + 1
        else:
            high = middle
    return min(low, last)


@part(types.void)
def order_points(its: ExactDecisions, proposed: Any, current: Any) -> None:
    """Write the two points in the order of the terms."""
    terms, then, now = integers(its.terms), reals(its.proposed), reals(its.current)
    for i in range(its.n_terms):
        then[i], now[i] = proposed[terms[i]], current[terms[i]]


@part(types.float64)
def added_by(residual: float, bound: float, rounding: float, rng: np.random.Generator) -> float:
    """What a candidate adds to the log acceptance ratio; NaN where its bound is violated.

    See `pymc_austerity.exact.log_weight`.
    """
    if not abs(residual) <= bound * (1.0 + RELATIVE) + rounding:
        return math.nan
    residual = min(bound, max(-bound, residual))
    phi = bound - max(0.0, residual)
    if rng.random() * bound < phi:
        return math.log1p(residual / phi)
    return 0.0


@part(types.void)
def _select(
    its: ExactDecisions, n_candidates: int, rng: np.random.Generator, rows: Any, bounds: Any
) -> None:
    """Draw a group and a place in it for each candidate, and ask for the rows."""
    totals, bounds_of_groups, starts = reals(its.totals), reals(its.bounds), integers(its.starts)
    places, n_groups = integers(its.places), its.n_groups
    last, total = last_group(totals, n_groups), totals[n_groups - 1]
    for k in range(n_candidates):
        share, place = rng.random() * total, rng.random()
        g = group_at(share, totals, n_groups, last)
        row = starts[g] + np.int64(place * (starts[g + 1] - starts[g]))
        rows[k], bounds[k] = row, bounds_of_groups[g]
        announce(places, its.n_arrays, row, 1)


@part(types.void)
def _select_all(its: ExactDecisions, rows: Any) -> None:
    """All rows of the groups without a bound."""
    bounds, starts, k = reals(its.bounds), integers(its.starts), 0
    for g in range(its.n_groups):
        if bounds[g] == math.inf:
            for i in range(starts[g], starts[g + 1]):
                rows[k] = i
                k += 1


@part(types.int64)
def _decide_on(
    its: ExactDecisions,
    work: NDArray[np.float64],
    n_read: int,
    n_candidates: int,
    proposed: Any,
    current: Any,
    log_ratio: float,
    rng: np.random.Generator,
    statistics: Any,
) -> int:
    """Draw the candidates, evaluate them and the rows of loose groups, and decide."""
    n = n_read + n_candidates
    rows, values = work.ctypes.data, work.ctypes.data + 8 * n
    differences, bounds = reals(values), reals(values + 8 * n)
    _select(its, n_candidates, rng, integers(rows + 8 * n_read), bounds)
    if n_read > 0:
        _select_all(its, integers(rows))
    order_points(its, proposed, current)
    call_on_rows(
        its.function, its.proposed, its.current, its.row_starts, rows, n, its.table, values
    )
    statistics[1], statistics[2] = n, 1.0
    for i in range(n_read):
        log_ratio += differences[i]
    for k in range(n_candidates):
        added = added_by(differences[n_read + k], bounds[k], its.rounding, rng)
        if math.isnan(added):
            return VIOLATED
        log_ratio += added
    return ACCEPTED if math.log1p(-rng.random()) < log_ratio else REJECTED


def decide_exactly(
    its: ExactDecisions,
    proposed: Any,
    current: Any,
    log_ratio: float,
    rng: np.random.Generator,
    audits: np.random.Generator,
    statistics: Any,
) -> int:
    """Accept or reject a proposal.

    Parameters
    ----------
    its : ExactDecisions
    proposed, current : pointers to d floats
    log_ratio : float
        All of the log acceptance ratio but the residuals, nats.
    rng, audits : numpy.random.Generator
        Of the chain, and one that is not used: nothing needs to be checked.
    statistics : pointer to floats
        Where what it took is recorded; see `pymc_austerity.compiled.STATISTICS`.

    Returns
    -------
    int
        `ACCEPTED`, `REJECTED`, or `VIOLATED` where a row changed by more than its bound.
    """
    n_read, totals = bound_groups(its, proposed, current), reals(its.totals)
    n_candidates = rng.poisson(totals[its.n_groups - 1])
    n = n_read + n_candidates
    work = np.empty(2 * n + n_candidates)  # lives until the call returns
    return _decide_on(
        its, work, n_read, n_candidates, proposed, current, log_ratio, rng, statistics
    )
