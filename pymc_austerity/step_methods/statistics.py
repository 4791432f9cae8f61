"""Statistics that every draw records.

================== ======= ====================================================================
name               type    meaning
================== ======= ====================================================================
accepted           float64 1 if the proposal was accepted, else 0
n_rows_used        int64   rows whose likelihood was evaluated for the decision
data_fraction      float64 the same as a share of all rows
n_looks            int64   looks of the sequential test; 0 if the prior alone decided
decision_error     float64 tail probability at the decision; 0 when it is exact
standardized_mean  float64 estimated distance of the mean from the threshold (mu_std); NaN where
                           it is not defined
used_all_rows      bool    whether the decision is exact because all rows were read
audited            bool    whether the decision was checked on all rows
audit_agrees       bool    whether the decision on all rows was the same (True where not audited)
n_audited          int64   decisions checked on all rows: 1 or 0 with one step per draw
n_wrong            int64   audited decisions that were wrong
scaling            float64 size of the proposal
test_epsilon       float64 tail probability at which the test stopped; NaN if it has none
================== ======= ====================================================================

`FireflyMH` also has ``n_bright``, the number of bright rows; `GroupedMH` has ``accepted_``
and ``n_rows_`` with the name of each block. With several steps per draw,
integers are sums, booleans hold for all the steps (``audited``: for any), the others are means.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import FEWEST_ROWS
from pymc_austerity.compiled import STATISTICS as MADE
from pymc_austerity.design.wording import typically
from pymc_austerity.levels import BlockUse, Pilot, SweepState
from pymc_austerity.sequential import Decision
from pymc_austerity.setup.levels.build import GroupedTarget

STATISTICS: dict[str, tuple[type, list]] = {
    "accepted": (np.float64, []),
    "n_rows_used": (np.int64, []),
    "data_fraction": (np.float64, []),
    "n_looks": (np.int64, []),
    "decision_error": (np.float64, []),
    "standardized_mean": (np.float64, []),
    "used_all_rows": (np.bool_, []),
    "audited": (np.bool_, []),
    "audit_agrees": (np.bool_, []),
    "n_audited": (np.int64, []),
    "n_wrong": (np.int64, []),
    "scaling": (np.float64, []),
    "test_epsilon": (np.float64, []),
}
"""Name, type and shape of the statistics; their meaning is above."""


def _means_of_known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    known = ~np.isnan(values)
    counts = known.sum(axis=1)
    sums = np.where(known, values, 0.0).sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), math.nan)


_OVER_STEPS: dict[str, Callable[[NDArray], Any]] = {
    "audited": lambda values: values.any(axis=1),
    "standardized_mean": _means_of_known,
    "test_epsilon": lambda values: values[:, -1],
}
"""Exceptions to the rule for a type."""


def of_decision(
    decision: Decision, n_rows: int, *, scaling: float, epsilon: float, n_kept: int = 0
) -> dict[str, Any]:
    """Statistics of one decision, for the size of the proposal and the strictness of the test.

    Rows that are kept, `n_kept` of all `n_rows`, count as used unless no row was needed.
    """
    used = decision.n_rows_used + (n_kept if decision.n_looks else 0)
    audited = decision.exact_accept is not None
    wrong = audited and decision.exact_accept != decision.accept
    return {
        "accepted": float(decision.accept),
        "n_rows_used": used,
        "data_fraction": used / n_rows,
        "n_looks": decision.n_looks,
        "decision_error": decision.decision_error,
        "standardized_mean": decision.standardized_mean,
        "used_all_rows": used == n_rows,
        "audited": audited,
        "audit_agrees": not wrong,
        "n_audited": int(audited),
        "n_wrong": int(wrong),
        "scaling": scaling,
        "test_epsilon": epsilon,
    }


def of_draw(decisions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Statistics of a draw of several decisions: counts summed, rates averaged.

    Examples
    --------
    >>> decisions = [
    ...     Decision(True, 100, 1, 0.0, 2.0, False), Decision(False, 300, 2, 0.0, 4.0, False)
    ... ]
    >>> draw = of_draw([of_decision(d, 1_000, scaling=1.0, epsilon=0.05) for d in decisions])
    >>> draw["accepted"], draw["n_rows_used"], draw["data_fraction"], draw["standardized_mean"]
    (0.5, 400, 0.2, 3.0)
    """
    if len(decisions) == 1:
        return decisions[0]
    steps = {name: np.array([[d[name] for d in decisions]]) for name in decisions[0]}
    return {name: _over_steps(name, values)[0].item() for name, values in steps.items()}


def _over_steps(name: str, values: NDArray) -> Any:
    """Summaries of the steps of each draw: sums of integers, whether all booleans hold, means."""
    if name in _OVER_STEPS:
        return _OVER_STEPS[name](values)
    if values.dtype.kind == "b":
        return values.all(axis=1)
    return values.sum(axis=1) if values.dtype.kind == "i" else values.mean(axis=1)


def of_transitions(
    made: NDArray[np.float64],
    n_rows: int,
    *,
    steps_per_draw: int,
    scalings: NDArray[np.float64],
    epsilon: float,
    n_kept: int = 0,
) -> list[dict[str, Any]]:
    """Statistics of draws whose transitions were made in compiled code.

    Parameters
    ----------
    made : float array, shape (n, 8)
        See `pymc_austerity.compiled.STATISTICS`.
    n_rows : int
        Number of all rows.
    steps_per_draw : int
        Transitions of a draw.
    scalings : float array, shape (C,)
        Size of each component of the proposal.
    epsilon : float
        Tail probability at which the test stops.
    n_kept : int
        As in `of_decision`.
    """
    column = dict(zip(MADE, made.T.reshape(len(MADE), -1, steps_per_draw), strict=True))
    used = column["n_rows_used"] + n_kept * (column["n_looks"] > 0.0)
    steps: dict[str, NDArray] = column | {
        "n_rows_used": used,
        "data_fraction": used / n_rows,
        "used_all_rows": used == n_rows,
        "audit_agrees": column["wrong"] == 0.0,
        "n_audited": column["audited"],
        "n_wrong": column["wrong"],
        "scaling": scalings[column["component"].astype(np.intp)],
        "test_epsilon": np.full(used.shape, epsilon),
    }
    typed: dict[str, NDArray] = {
        name: steps[name].astype(kind) for name, (kind, _) in STATISTICS.items()
    }
    columns = [_over_steps(name, values).tolist() for name, values in typed.items()]
    return [dict(zip(STATISTICS, values, strict=True)) for values in zip(*columns, strict=True)]


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


def cost_in_words(target: GroupedTarget, pilot: Pilot, n_rows: int) -> str:
    """How many rows a sweep is expected to read.

    Parameters
    ----------
    target : GroupedTarget
    pilot : Pilot
        Trial sweeps.
    n_rows : int
        Number of rows of the data.
    """
    if target.reads_all and not target.sequential.epsilon:
        return f"all {n_rows:,} rows per sweep, because {target.reads_all}"
    if pilot.mean_rows > n_rows:
        return f"all {n_rows:,} rows, about {pilot.mean_rows / n_rows:.1f} times per sweep"
    return typically(pilot.typical_rows, pilot.mean_rows, n_rows, "sweep")
