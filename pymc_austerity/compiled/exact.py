"""Exact decisions by Poisson-thinned rows in compiled code.

The counterpart of `pymc_austerity.exact.decide`, with the same random numbers.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from pymc_austerity.compiled.calls import call_on_rows, prefetch
from pymc_austerity.compiled.parts import part
from pymc_austerity.exact.select import group_rates
from pymc_austerity.exact.thin import ABSOLUTE, RELATIVE

__all__ = ["ACCEPTED", "REJECTED", "VIOLATED", "ExactDecisions", "decide_exactly"]

REJECTED, ACCEPTED, VIOLATED = 0, 1, -1
_LINE = 64


class ExactDecisions(NamedTuple):
    """What exact decisions need, in arrays; see `pymc_austerity.exact.Groups` for most.

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


@part(types.void)
def _whiten(its: ExactDecisions, point: Any, whitened: NDArray[np.float64]) -> None:
    for i in range(its.center.size):
        total = 0.0
        for j in range(i + 1):
            total += its.inverse_root[i, j] * (point[j] - its.center[j])
        whitened[i] = total


@part(types.void)
def _select(
    its: ExactDecisions, n_candidates: int, total: float, rng: np.random.Generator,
    rows: NDArray[np.uint64], bounds: NDArray[np.float64], first: int,
) -> None:  # fmt: skip
    """Draw a group and a place in it for each candidate, and ask for the rows."""
    n_groups = its.totals.size
    last = 0
    while last < n_groups - 1 and its.totals[last] < total:
        last += 1
    for k in range(n_candidates):
        share, place = rng.random() * total, rng.random()
        low, high = 0, n_groups  # the first group whose running sum is above the share
        while low < high:
            middle = (low + high) // 2
            if its.totals[middle] <= share:
                low = middle + 1
            else:
                high = middle
        g = min(low, last)
        row = its.starts[g] + np.int64(place * (its.starts[g + 1] - its.starts[g]))
        rows[first + k], bounds[k] = row, its.bounds[g]
        for a in range(its.places.shape[0]):
            n_bytes = its.places[a, 1]
            start = its.places[a, 0] + row * n_bytes
            for line in range(start, start + n_bytes, _LINE):
                prefetch(line)


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
    _whiten(its, current, its.u)
    _whiten(its, proposed, its.v)
    n_read = group_rates(
        its.u, its.v, its.inflation, its.starts, its.radii, its.largest, its.directions,
        its.direction, its.cosines, its.sines, its.bounds, its.totals,
    )  # fmt: skip
    n_groups = its.totals.size
    total = its.totals[n_groups - 1]
    n_candidates = rng.poisson(total)
    n = n_read + n_candidates
    rows, values, bounds = np.empty(n, np.uint64), np.empty(n), np.empty(n_candidates)
    _select(its, n_candidates, total, rng, rows, bounds, n_read)
    k = 0
    for g in range(n_groups if n_read > 0 else 0):
        if its.bounds[g] == math.inf:
            for i in range(its.starts[g], its.starts[g + 1]):
                rows[k] = i
                k += 1
    for i in range(its.terms.size):
        its.proposed[i], its.current[i] = proposed[its.terms[i]], current[its.terms[i]]
    call_on_rows(
        its.function,
        its.proposed.ctypes.data,
        its.current.ctypes.data,
        its.row_starts.ctypes.data,
        rows.ctypes.data,
        n,
        its.table.ctypes.data,
        values.ctypes.data,
    )
    statistics[1], statistics[2] = n, 1.0
    for i in range(n_read):
        log_ratio += values[i]
    for k in range(n_candidates):
        residual, bound = values[n_read + k], bounds[k]
        if not abs(residual) <= bound * (1.0 + RELATIVE) + ABSOLUTE:
            return VIOLATED
        residual = min(bound, max(-bound, residual))
        phi = bound - max(0.0, residual)
        if rng.random() * bound < phi:
            log_ratio += math.log1p(residual / phi)
    return ACCEPTED if math.log1p(-rng.random()) < log_ratio else REJECTED
