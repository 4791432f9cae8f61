"""Log messages about a `GroupedMH`."""

import numpy as np

from pymc_austerity.compiled import FEWEST_ROWS
from pymc_austerity.deciding.poisson import rows_named
from pymc_austerity.design.wording import typically
from pymc_austerity.levels import rows_of_sweeps
from pymc_austerity.setup.levels import GroupedTarget

__all__ = ["cost_in_words", "in_words"]


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
