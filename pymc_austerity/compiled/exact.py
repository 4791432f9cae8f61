"""Exact decisions by Poisson-thinned rows in compiled code.

The counterpart of `pymc_austerity.exact.decide`, with the same random numbers.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from pymc_austerity.compiled.rows import RowsByAddress, announce, fill_differences, order
from pymc_austerity.exact import Candidates, GroupArrays, bound_groups, select, weigh
from pymc_austerity.parts import integers, part, reals

REJECTED, ACCEPTED, VIOLATED = 0, 1, -1


class ExactDecisions(NamedTuple):
    """What exact decisions need.

    Attributes
    ----------
    rows : RowsByAddress
    groups : GroupArrays
    inverse_root, center : float arrays, shape (d, d) and (d,)
        Whiten a point; the matrix is lower triangular.
    inflation : float
        Factor of the bounds.
    rounding : float
        Nats by which rounding may take a row beyond its bound.
    size : int
        d.
    bounds, totals : float array, shape (G,)
        Working space.
    u, v, proposed, current : float arrays
        Working space: the two points whitened, and in the order of the terms.
    """

    rows: RowsByAddress
    groups: GroupArrays
    inverse_root: NDArray[np.float64]
    center: NDArray[np.float64]
    inflation: float
    rounding: float
    size: int
    bounds: NDArray[np.float64]
    totals: NDArray[np.float64]
    u: NDArray[np.float64]
    v: NDArray[np.float64]
    proposed: NDArray[np.float64]
    current: NDArray[np.float64]


def new_decisions(
    rows: RowsByAddress,
    groups: GroupArrays,
    inverse_root: NDArray[np.float64],
    center: NDArray[np.float64],
    inflation: float,
    rounding: float,
) -> ExactDecisions:
    """Exact decisions on rows, with the space that they work in."""
    bounds, totals = np.zeros(groups.n_groups), np.zeros(groups.n_groups)
    points = [np.zeros(n) for n in (center.size, center.size, rows.n_entries, rows.n_entries)]
    whitening = np.ascontiguousarray(inverse_root), np.ascontiguousarray(center, dtype=np.float64)
    given = *whitening, float(inflation), float(rounding), center.size
    return ExactDecisions(rows, groups, *given, bounds, totals, *points)


@part(types.void)
def _whiten(its: ExactDecisions, point: Any, out: Any) -> None:
    inverse_root, center, d = reals(its.inverse_root), reals(its.center), its.size
    for i in range(d):
        total = 0.0
        for j in range(i + 1):
            total += inverse_root[i * d + j] * (point[j] - center[j])
        out[i] = total


@part(types.int64)
def _bounded(its: ExactDecisions, proposed: Any, current: Any) -> int:
    """Bound the changes of rows, group by group; returns how many rows are read as they are."""
    u, v, d, groups = reals(its.u), reals(its.v), its.size, its.groups
    _whiten(its, current, u)
    _whiten(its, proposed, v)
    arrays = GroupArrays(
        integers(groups.starts), reals(groups.radii), reals(groups.largest),
        reals(groups.directions), integers(groups.direction), reals(groups.cosines),
        reals(groups.sines), groups.n_groups, groups.n_radii, groups.is_single,
    )  # fmt: skip
    return bound_groups(u, v, d, its.inflation, arrays, reals(its.bounds), reals(its.totals))


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
    n_read, n_groups = _bounded(its, proposed, current), its.groups.n_groups
    totals, starts = reals(its.totals), integers(its.groups.starts)
    drawn = Candidates(reals(its.bounds), totals, starts, n_groups, n_read)
    n_candidates = rng.poisson(totals[n_groups - 1])
    n = n_read + n_candidates
    work = np.empty(3 * n + 2 * n_candidates + 1)  # lives until the call returns
    return _decide_on(
        its, drawn, work, n_candidates, (proposed, current), log_ratio, rng, statistics
    )


@part(types.int64)
def _decide_on(
    its: ExactDecisions,
    drawn: Candidates,
    work: NDArray[np.float64],
    n_candidates: int,
    points: Any,
    log_ratio: float,
    rng: np.random.Generator,
    statistics: Any,
) -> int:
    """Draw the candidates, evaluate them and the rows of loose groups, and decide."""
    n, start = drawn.n_read + n_candidates, work.ctypes.data
    rows, groups, values = start, start + 8 * n, start + 16 * n
    weight, uniform = reals(start + 24 * n), reals(start + 24 * n + 8)
    for k in range(n_candidates):
        uniform[k] = rng.random()
    select(drawn, uniform, n_candidates, integers(rows), integers(groups))
    for k in range(drawn.n_read, n):
        announce(its.rows, integers(rows)[k], 1)
    order(its.rows, points[0], reals(its.proposed))
    order(its.rows, points[1], reals(its.current))
    fill_differences(its.rows, its.proposed, its.current, rows, n, values)
    for k in range(n_candidates):
        uniform[n_candidates + k] = rng.random()
    statistics[1], statistics[2], weight[0] = n, 1.0, log_ratio
    found, of_all = (integers(groups), reals(values)), True
    beyond = weigh(drawn, *found, uniform, n_candidates, its.rounding, weight, of_all)
    if beyond >= 0:
        return VIOLATED
    return ACCEPTED if math.log1p(-rng.random()) < weight[0] else REJECTED
