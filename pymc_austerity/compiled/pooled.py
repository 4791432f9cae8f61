"""Exact decisions from a pool of rows in compiled code.

The counterpart of `pymc_austerity.deciding.pool.PooledSampling`, with the same random numbers.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from pymc_austerity.compiled.calls import call_on_rows, integers, reals
from pymc_austerity.compiled.exact import (
    ACCEPTED,
    REJECTED,
    VIOLATED,
    ExactDecisions,
    added_by,
    bound_groups,
    group_at,
    last_group,
    order_points,
)
from pymc_austerity.parts import part

__all__ = ["PooledDecisions", "decide_from_pool"]


class PooledDecisions(NamedTuple):
    """What decisions from a pool need.

    Attributes
    ----------
    exact : ExactDecisions
        What is known of the groups; its tables are those of rows that are there as a whole.
    table : int array
        Where the draws of the chain lie: see `pymc_austerity.compiled.CompiledRows`.
    whole : int array, shape (G,)
        Where the rows of a group begin that is there as a whole; -1 for others.
    begin, lengths : int arrays, shape (G,)
        Where the draws of a group begin, and how many there are.
    used : int array, shape (G,)
        How many were used; this changes.
    """

    exact: ExactDecisions
    table: NDArray[np.int64]
    whole: NDArray[np.int64]
    begin: NDArray[np.int64]
    lengths: NDArray[np.int64]
    used: NDArray[np.int64]


@part(types.int64)
def _rows_at_hand(its: PooledDecisions) -> int:
    """Rows to be read as they are; -1 where some of them are not at hand."""
    bounds, whole, starts = reals(its.exact.bounds), integers(its.whole), integers(its.exact.starts)
    n_read = 0
    for g in range(its.exact.n_groups):
        if bounds[g] == math.inf:
            if whole[g] < 0:
                return -1
            n_read += starts[g + 1] - starts[g]
    return n_read


@part(types.void)
def _read_whole(its: PooledDecisions, rows: Any) -> None:
    bounds, whole, starts = reals(its.exact.bounds), integers(its.whole), integers(its.exact.starts)
    k = 0
    for g in range(its.exact.n_groups):
        if bounds[g] == math.inf:
            for i in range(starts[g + 1] - starts[g]):
                rows[k] = whole[g] + i
                k += 1


@part(types.void)
def _draw_groups(
    its: PooledDecisions, n_candidates: int, rng: np.random.Generator, groups: Any
) -> None:
    totals, n_groups = reals(its.exact.totals), its.exact.n_groups
    last, total = last_group(totals, n_groups), totals[n_groups - 1]
    for k in range(n_candidates):
        groups[k] = group_at(rng.random() * total, totals, n_groups, last)


@part(types.int64)
def _place(
    its: PooledDecisions,
    n_read: int,
    n_candidates: int,
    rng: np.random.Generator,
    groups: Any,
    rows: Any,
    slots: Any,
) -> int:
    """Where each candidate lies: those of whole groups first, draws from the end; -1 for too few.

    The number of rows in front is returned.
    """
    whole, begin, lengths = integers(its.whole), integers(its.begin), integers(its.lengths)
    used, starts = integers(its.used), integers(its.exact.starts)
    front, back = n_read, n_read + n_candidates
    for k in range(n_candidates):
        g, place = groups[k], rng.random()
        if whole[g] >= 0:
            slots[k] = front
            rows[front] = whole[g] + np.int64(place * (starts[g + 1] - starts[g]))
            front += 1
            continue
        if used[g] >= lengths[g]:
            return -1
        back -= 1
        slots[k] = back
        rows[back] = begin[g] + used[g]
        used[g] += 1
    return front


@part(types.int64)
def _decide_on(
    its: PooledDecisions,
    work: NDArray[np.float64],
    n_read: int,
    n_candidates: int,
    proposed: Any,
    current: Any,
    log_ratio: float,
    rng: np.random.Generator,
    statistics: Any,
) -> int:
    n = n_read + n_candidates
    rows = work.ctypes.data
    values, groups, slots = rows + 8 * n, rows + 16 * n, rows + 16 * n + 8 * n_candidates
    _draw_groups(its, n_candidates, rng, integers(groups))
    front = _place(
        its, n_read, n_candidates, rng, integers(groups), integers(rows), integers(slots)
    )
    if front < 0:
        return VIOLATED
    if n_read > 0:
        _read_whole(its, integers(rows))
    known = its.exact
    order_points(known, proposed, current)
    call_on_rows(
        known.function, known.proposed, known.current, known.row_starts, rows, front, known.table,
        values,
    )  # fmt: skip
    call_on_rows(
        known.function, known.proposed, known.current, known.row_starts, rows + 8 * front,
        n - front, its.table, values + 8 * front,
    )  # fmt: skip
    statistics[1], statistics[2] = n, 1.0
    differences, owners, places = reals(values), integers(groups), integers(slots)
    bounds = reals(known.bounds)
    for i in range(n_read):
        log_ratio += differences[i]
    for k in range(n_candidates):
        added = added_by(differences[places[k]], bounds[owners[k]], known.rounding, rng)
        if math.isnan(added):
            return VIOLATED
        log_ratio += added
    return ACCEPTED if math.log1p(-rng.random()) < log_ratio else REJECTED


def decide_from_pool(
    its: PooledDecisions,
    proposed: Any,
    current: Any,
    log_ratio: float,
    rng: np.random.Generator,
    audits: np.random.Generator,
    statistics: Any,
) -> int:
    """Accept or reject a proposal.

    Parameters are those of `decide_exactly`.

    Returns
    -------
    int
        `ACCEPTED`, `REJECTED`, or `VIOLATED` where it takes Python: a row changed by more than its
        bound, or rows have to be read that are not at hand.
    """
    known = its.exact
    bound_groups(known, proposed, current)
    n_read = _rows_at_hand(its)
    if n_read < 0:
        return VIOLATED
    n_candidates = rng.poisson(reals(known.totals)[known.n_groups - 1])
    work = np.empty(2 * n_read + 4 * n_candidates + 1)  # lives until the call returns
    return _decide_on(
        its, work, n_read, n_candidates, proposed, current, log_ratio, rng, statistics
    )
