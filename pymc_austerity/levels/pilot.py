"""Rows that a sweep reads, from a short run before the chains."""

import numpy as np

from pymc_austerity.levels.sweep import Sweep

__all__ = ["expected_rows"]

_SWEEPS, _ENTRIES_MOVED, _ROWS_READ = 100, 1_000_000, 5_000_000
"""Limits of the run, which the last sweep may exceed; the run takes about a second at most."""


def expected_rows(sweep: Sweep) -> tuple[float, float]:
    """Median and mean number of rows that a sweep reads.

    They are over the second half of at most 100 sweeps that begin at a draw of the normal
    approximation. They tune like a chain, but for a shorter time.

    Parameters
    ----------
    sweep : Sweep
        Its moves.
    """
    rng, state = np.random.default_rng(7), sweep.init()
    point, n_rows = sweep.begin(rng), [0]
    most = max(min(_SWEEPS, _ENTRIES_MOVED // point.size), 1)
    while len(n_rows) <= most and sum(n_rows) < _ROWS_READ:
        point, state, uses = sweep.step(point, state, rng, tuning=True)
        n_rows.append(sum(use.n_rows for use in uses.values()))
    later = n_rows[(len(n_rows) + 1) // 2 :]
    return float(np.median(later)), float(np.mean(later))
