"""Statistics that `GroupedMH` records for every sweep, and what is said of it in the log."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from pymc_austerity.compiled import FEWEST_ROWS
from pymc_austerity.deciding.poisson import rows_named
from pymc_austerity.design.wording import typically
from pymc_austerity.levels import BlockUse, SweepState, rows_of_sweeps
from pymc_austerity.setup.levels import GroupedTarget
from pymc_austerity.step_methods.statistics import STATISTICS


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


def in_words(target: GroupedTarget, *, is_audit_given: bool) -> str:
    """What is sampled, whether decisions can be wrong, and whether that can be audited."""
    factors = target.sweep.posterior.factors
    levels = " and ".join(f"{len(f.entries):,} levels of {f.names}" for f in factors)
    epsilon = target.sequential.epsilon
    if not epsilon:
        unneeded = ", and there is nothing to audit" if is_audit_given else ""
        return (
            "exact Metropolis-Hastings in which every level has a decision of its own "
            f"({levels}); no decision can be wrong{unneeded}."
        )
    n_tested = sum(int((np.diff(f.rows.starts) >= FEWEST_ROWS).sum()) for f in factors)
    return (
        "Metropolis-Hastings in which every level has a decision of its own "
        f"({levels}), for {n_tested:,} of them by sequential tests with "
        f"epsilon={epsilon:g} because {target.reads_all}; decisions can be wrong."
    )


def cost_in_words(target: GroupedTarget, n_rows: int) -> str:
    """How many rows a sweep is expected to read, estimated from some trial sweeps.

    Parameters
    ----------
    target : GroupedTarget
    n_rows : int
        Number of rows of the data.
    """
    if target.reads_all and not target.sequential.epsilon:
        return f"all {n_rows:,} rows per sweep, because {target.reads_all}"
    with rows_named(target.numbers):
        median, expected = rows_of_sweeps(target.sweep)
    if expected > n_rows:
        return f"all {n_rows:,} rows, about {expected / n_rows:.1f} times per sweep"
    return typically(median, expected, n_rows, "sweep")
