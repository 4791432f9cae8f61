"""Statistics that `GroupedMH` records for every sweep."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from pymc_austerity.levels import BlockUse, SweepState
from pymc_austerity.step_methods.statistics import STATISTICS

__all__ = ["of_sweep", "statistics_of_blocks"]


def statistics_of_blocks(blocks: Iterable[str]) -> dict[str, tuple[type, list[int]]]:
    """Types and shapes of the statistics of a sweep over these blocks."""
    found = dict(STATISTICS)
    for block in blocks:
        found[f"accepted_{block}"] = (np.float64, [])
        found[f"n_rows_{block}"] = (np.int64, [])
    return found


def of_sweep(
    uses: dict[str, BlockUse], n_rows: int, state: SweepState, epsilon: float
) -> dict[str, Any]:
    """Statistics of a sweep.

    Parameters
    ----------
    uses : dict of str to BlockUse
        Results of each block, by its name.
    n_rows : int
        Number of rows of the data.
    state : SweepState
        State after the sweep.
    epsilon : float
        Epsilon of sequential tests; 0 without them.
    """
    used = sum(use.n_rows for use in uses.values())
    shares = [use.accepted for use in uses.values() if not math.isnan(use.accepted)]
    verdicts = [its for use in uses.values() for its in use.verdicts]
    errors = np.concatenate([its.errors for its in verdicts]) if verdicts else np.zeros(1)
    n_audited = sum(its.n_audited for its in verdicts)
    n_wrong = sum(its.n_wrong for its in verdicts)
    return {
        "accepted": sum(shares) / len(shares),
        "n_rows_used": used,
        "data_fraction": used / n_rows,
        "n_looks": 1,
        "decision_error": float(errors.mean()),
        "standardized_mean": math.nan,
        "used_all_rows": used == n_rows,
        "audited": n_audited > 0,
        "audit_agrees": n_wrong == 0,
        "n_audited": n_audited,
        "n_wrong": n_wrong,
        "scaling": state.along[0].search.scale if state.along else math.nan,
        "test_epsilon": epsilon or math.nan,
        **{f"accepted_{block}": use.accepted for block, use in uses.items()},
        **{f"n_rows_{block}": use.n_rows for block, use in uses.items()},
    }
