"""Input and output of a sweep over binary variables."""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Outcomes", "Plan", "Sweep", "statistics_of_sweep"]


class Plan(NamedTuple):
    """All random numbers of a sweep; arrays of shape (updates,).

    Attributes
    ----------
    entries : int array
        Entry of each update.
    log_odds : float array
        ``log(u / (1 - u))`` of its uniform number, nats.
    windows : int array
        Position in the random order of the entry's factors at which reading starts.
    audited : bool array
        Whether the update is checked on all factors.
    """

    entries: NDArray[np.int64]
    log_odds: NDArray[np.float64]
    windows: NDArray[np.int64]
    audited: NDArray[np.bool_]


class Outcomes(NamedTuple):
    """Results and costs of the updates of a sweep; arrays of shape (updates,).

    Attributes
    ----------
    flipped : bool array
        Whether the entry changed.
    n_rows_used : int array
        Factors evaluated to decide.
    n_looks : int array
        Looks of the sequential test.
    decision_error : float array
        The stopping rule's error, a probability; 0 for exact decisions.
    standardized_mean : float array
        Estimate of ``mu_std``; NaN if it is not defined.
    exact_flip : int array
        The decision on all factors, 0 or 1; -1 if the update was not audited.
    """

    flipped: NDArray[np.bool_]
    n_rows_used: NDArray[np.int64]
    n_looks: NDArray[np.int64]
    decision_error: NDArray[np.float64]
    standardized_mean: NDArray[np.float64]
    exact_flip: NDArray[np.int64]

    @classmethod
    def none_yet(cls, n_updates: int) -> "Outcomes":
        """Outcomes of updates that need no factor and change nothing."""
        return cls(
            np.zeros(n_updates, dtype=np.bool_),
            np.zeros(n_updates, dtype=np.int64),
            np.zeros(n_updates, dtype=np.int64),
            np.zeros(n_updates),
            np.full(n_updates, np.nan),
            np.full(n_updates, -1),
        )


class Sweep(Protocol):
    """Carries out a plan."""

    def __call__(self, state: NDArray, plan: Plan) -> Outcomes:
        """Update the entries one by one, in place."""
        ...


def statistics_of_sweep(outcomes: Outcomes, sizes: NDArray[np.int64]) -> dict[str, Any]:
    """Statistics of a sweep: counts summed, rates averaged.

    Parameters
    ----------
    outcomes : Outcomes
        Outcomes of the updates.
    sizes : int array, shape (updates,)
        Number of factors that an exact update evaluates.
    """
    used, standardized = outcomes.n_rows_used, outcomes.standardized_mean
    known = standardized[~np.isnan(standardized)]
    audited = outcomes.exact_flip >= 0
    n_wrong = int((audited & (outcomes.exact_flip != outcomes.flipped)).sum())
    n_factors = int(sizes.sum())
    return {
        "accepted": float(outcomes.flipped.mean()),
        "n_rows_used": int(used.sum()),
        "data_fraction": int(used.sum()) / n_factors if n_factors else 0.0,
        "n_looks": int(outcomes.n_looks.sum()),
        "decision_error": float(outcomes.decision_error.mean()),
        "standardized_mean": float(known.mean()) if known.size else math.nan,
        "used_all_rows": bool((used == sizes).all()),
        "audited": bool(audited.any()),
        "audit_agrees": n_wrong == 0,
        "n_audited": int(audited.sum()),
        "n_wrong": n_wrong,
    }
