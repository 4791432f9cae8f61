"""What an exact decision costs, before one is made."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.exact.groups import Groups
from pymc_austerity.exact.select import rates_of


def expected_rows(
    groups: Groups, pairs: Iterable[tuple[NDArray[np.float64], NDArray[np.float64]]]
) -> float:
    """Mean number of rows that decisions between pairs of points read; see `rows_of_pairs`."""
    return float(rows_of_pairs(groups, pairs).mean())


def rows_of_pairs(
    groups: Groups,
    pairs: Iterable[tuple[NDArray[np.float64], NDArray[np.float64]]],
    *,
    inflation: float = 1.0,
) -> NDArray[np.float64]:
    """Expected number of rows that a decision between two points reads, for each pair of points.

    Parameters
    ----------
    groups : Groups
    pairs : iterable of pairs of float arrays, shape (d,)
        Current and proposed points in whitened coordinates.
    inflation : float
        Factor of all bounds.
    """
    counts = []
    for u, v in pairs:
        its = rates_of(u, v, inflation, groups)
        counts.append(its.n_read + its.totals[-1])
    return np.array(counts, dtype=np.float64)
