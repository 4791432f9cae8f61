"""What an exact decision costs, before one is made."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.exact.groups import Groups
from pymc_austerity.exact.select import group_bounds

__all__ = ["expected_rows"]


def expected_rows(
    groups: Groups,
    pairs: Iterable[tuple[NDArray[np.float64], NDArray[np.float64]]],
    *,
    inflation: float = 1.0,
) -> float:
    """Mean number of rows that decisions between pairs of points read.

    Parameters
    ----------
    groups : Groups
    pairs : iterable of pairs of float arrays, shape (d,)
        Current and proposed points in whitened coordinates.
    inflation : float
        Factor of all bounds.
    """
    sizes = np.diff(groups.starts)
    counts = []
    for u, v in pairs:
        which, changes = group_bounds(
            u, v, groups.radii, groups.largest, groups.directions, groups.direction, groups.angles
        )
        read, every = 0.0, which == groups.radii.size
        for r in range(groups.radii.size):
            held = which == r
            factor = np.where(held, changes * inflation, 0.0)
            every |= held & (groups.largest[r] * factor > 1.0)
            sums = np.add.reduceat(groups.constants[r], groups.starts[:-1])
            read += float((sums * factor)[held & ~every].sum())
        counts.append(read + float(sizes[every].sum()))
    return float(np.mean(counts))
