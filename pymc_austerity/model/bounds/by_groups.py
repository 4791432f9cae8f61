"""Bounds of groups of similar rows, which take far less time than those of single rows."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.model.bounds.cells import about_groups, at_points
from pymc_austerity.model.bounds.chunk import (
    CELLS_AT_ONCE,
    Chunk,
    is_bound,
    norm,
    smallest_taylor_form,
)
from pymc_austerity.model.bounds.enclosure import enclose
from pymc_austerity.model.operations.jets import Jet

__all__ = ["constants_by_groups"]

_TRIED, _SMALLER = 128, 8
"""Rows without a bound that are tried alone, and how much smaller groups become if one has one."""


def constants_by_groups(
    chunk: Chunk, radii: Sequence[float], order: int, size: int
) -> NDArray[np.float64]:
    r"""Bounds on the third derivatives of rows, from boxes that hold the boxes of many rows.

    Norms of the q-th derivative are sums of products of q lengths. So a bound with the largest
    lengths of a group, :math:`L_j`, times :math:`\max_j (|z_{ij}| / L_j)^3` is one for row i,
    because q is at least 3.

    Parameters
    ----------
    chunk : Chunk
    radii : sequence of float
    order : int
        Highest order of derivatives.
    size : int
        Rows of a group, at most.

    Returns
    -------
    float array, shape (number of radii, m)
        NaN or infinite for the rows of a group without a bound.
    """
    constants = _in_groups(chunk, radii, order, size)
    for found, radius in zip(constants, radii, strict=True):
        _mend(found, chunk, radius, order, size)
    return constants


def _mend(found: NDArray[np.float64], chunk: Chunk, radius: float, order: int, size: int) -> None:
    """Bound rows in smaller groups where their group has no bound, while some have one alone."""
    while size > 1:
        lost = np.flatnonzero(~np.isfinite(found))
        some = chunk.some(lost[:: max(lost.size // _TRIED, 1)])
        if not lost.size or not np.isfinite(_in_groups(some, [radius], order, 1)).any():
            return
        size = max(size // _SMALLER, 1)
        found[lost] = _in_groups(chunk.some(lost), [radius], order, size)[0]


def _in_groups(chunk: Chunk, radii: Sequence[float], order: int, size: int) -> NDArray[np.float64]:
    """Constants of rows, from groups of so many rows."""
    groups = chunk.like_rows(size)
    constants = np.empty((len(radii), len(chunk.center)))
    for start in range(0, len(groups), CELLS_AT_ONCE):
        some = groups[start : start + CELLS_AT_ONCE]
        rows = np.concatenate(some)
        constants[:, rows] = _of_groups(chunk, some, radii, order)
    return constants


def _of_groups(
    chunk: Chunk, groups: list[NDArray[np.intp]], radii: Sequence[float], order: int
) -> NDArray[np.float64]:
    """Constants of the rows of some groups, in the order of the groups."""
    rows, sizes = np.concatenate(groups), np.array([len(group) for group in groups])
    starts = np.cumsum(sizes) - sizes
    local = np.split(np.arange(rows.size), starts[1:])
    own = chunk.lengths[rows]
    lengths = np.maximum.reduceat(own, starts)
    spread = np.maximum.reduceat(chunk.spread[rows], starts)
    center, data = chunk.center[rows], chunk.part(rows)

    def norms(jet: Jet, orders: range) -> list[NDArray[np.float64]]:
        return [norm(jet, q, lengths, spread) for q in orders]

    def enclosed(radius: float) -> Jet:
        cells = about_groups(local, center, radius * own, data)
        return enclose(chunk.function, cells, order if radius else order - 1).box

    here = norms(enclosed(0.0), range(3, order))
    found = np.array(
        [
            smallest_taylor_form(here, norms(enclosed(radius), range(3, order + 1)), radius)
            for radius in radii
        ]
    )
    first = chunk.center[rows[starts]], chunk.part(rows[starts])
    (known,) = norms(enclose(chunk.function, at_points(*first), 3).center, range(3, 4))
    found = np.where(is_bound(found, known), found, np.inf)
    share = (own / np.maximum(np.repeat(lengths, sizes, axis=0), np.finfo(float).tiny)).max(axis=1)
    return np.repeat(found, sizes, axis=1) * share**3
