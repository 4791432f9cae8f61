"""Decisions on all rows, which are read once for many proposals."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.sampling import UniformSampling
from pymc_austerity.rows import RowSource, blocks_of

AT_ONCE = 64
"""Proposals for which rows are read once: reading a row for more of them costs no less for each."""

_ROWS = 1_024
"""Rows of a block: their predictors at all points stay in the cache."""

RowSums: TypeAlias = Callable[..., NDArray[np.float64]]
"""``f(points, *block)``: log-likelihoods of the rows in a block, summed at each point, nats."""


@dataclass(frozen=True)
class TotalsOfAll:
    """Log-likelihoods of all rows, summed at each of many points.

    Parameters
    ----------
    sums : callable
        Those of a block.
    source : RowSource
        All rows.
    """

    sums: RowSums
    source: RowSource

    def __call__(self, points: NDArray) -> NDArray[np.float64]:
        """At points, shape (n, d): float array, shape (n,), nats; NaN where a row is not finite."""
        total = np.zeros(len(points))
        for block in blocks_of(self.source, _ROWS):
            total += self.sums(points, *block)
        return np.where(np.isfinite(total), total, np.nan)


@dataclass(frozen=True)
class AllRowsTogether(UniformSampling):
    """All rows, read once for many proposals: these do not depend on where the chain is.

    Parameters
    ----------
    totals : TotalsOfAll
        The rows at many points.
    """

    totals: TotalsOfAll = field(kw_only=True)
