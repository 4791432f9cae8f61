"""A block of transitions of a chain in one compiled function, the same for all models."""

import math
from typing import NamedTuple

import numba
import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from pymc_austerity.compiled.calls import call_of_one
from pymc_austerity.compiled.decision import SequentialDecisions, decide_sequentially
from pymc_austerity.compiled.exact import (
    ACCEPTED,
    REJECTED,
    VIOLATED,
    ExactDecisions,
    decide_exactly,
)
from pymc_austerity.compiled.options import INNER
from pymc_austerity.compiled.proposals import CompiledProposals, propose

__all__ = ["CompiledPosterior", "transitions"]


class CompiledPosterior(NamedTuple):
    """What is known of the log-posterior without reading rows.

    Attributes
    ----------
    exact : int
        Address of the exact part; see `pymc_austerity.model.DensityKernel.address`.
    anchor, gradient : float array, shape (d,)
        Of the expansion.
    hessian : float array, shape (d, d)
        Zeros for an expansion of first order.
    """

    exact: int
    anchor: NDArray[np.float64]
    gradient: NDArray[np.float64]
    hessian: NDArray[np.float64]


@numba.njit(**INNER)
def _expansion(
    posterior: CompiledPosterior, proposed: NDArray[np.float64], current: NDArray[np.float64]
) -> float:
    """What the control variates sum up to over all rows, nats."""
    first, second = 0.0, 0.0
    for i in range(proposed.size):
        product = 0.0
        for j in range(proposed.size):
            about = (proposed[j] - posterior.anchor[j]) + (current[j] - posterior.anchor[j])
            product += posterior.hessian[i, j] * about
        moved = proposed[i] - current[i]
        first += posterior.gradient[i] * moved
        second += moved * product
    return first + 0.5 * second


def _decide(
    decisions: SequentialDecisions | ExactDecisions,
    proposed: NDArray[np.float64],
    current: NDArray[np.float64],
    log_ratio: float,
    rng: np.random.Generator,
    audits: np.random.Generator,
    statistics: NDArray[np.float64],
) -> int:
    """Accept or reject, in the way that the type of the decisions says."""
    raise NotImplementedError  # compiled code has a version for each type


@overload(_decide, jit_options=INNER)
def _decide_by_type(  # type: ignore[no-untyped-def]
    decisions, proposed, current, log_ratio, rng, audits, statistics
):
    if decisions.instance_class is ExactDecisions:
        return lambda decisions, proposed, current, log_ratio, rng, audits, statistics: (
            decide_exactly(decisions, proposed, current, log_ratio, rng, statistics)
        )
    return lambda decisions, proposed, current, log_ratio, rng, audits, statistics: (
        decide_sequentially(decisions, proposed, current, log_ratio, rng, audits, statistics)
    )


@numba.njit(cache=True, error_model="numpy", no_cfunc_wrapper=True)
def transitions(
    proposals: CompiledProposals,
    posterior: CompiledPosterior,
    decisions: SequentialDecisions | ExactDecisions,
    work: NDArray[np.float64],
    rng: np.random.Generator,
    audits: np.random.Generator,
    points: NDArray[np.float64],
    statistics: NDArray[np.float64],
) -> int:
    """Make transitions, as many as there are rows of statistics.

    Parameters
    ----------
    proposals, posterior, decisions
        What to sample, and how; but for working space nothing in them changes.
    work : float array, shape (3, d)
        Where the chain is, first; the rest is working space. It ends where the chain is then.
    rng, audits : numpy.random.Generator
        Of the chain, and of what is checked.
    points : float array, shape (n, d)
        Where the chain is after each transition.
    statistics : float array, shape (n, 8)
        What each took: see `pymc_austerity.compiled.STATISTICS`.

    Returns
    -------
    int
        Transitions made: fewer where one of them violates a bound.
    """
    current, proposed, noise = work[0], work[1], work[2]
    exact_now = call_of_one(posterior.exact, current.ctypes.data)
    for t in range(statistics.shape[0]):
        out, verdict = statistics[t], REJECTED
        out[1] = out[2] = out[3] = out[5] = out[6] = 0.0
        out[4] = math.nan
        chosen, log_ratio = propose(proposals, current, rng, noise, proposed)
        exact_then = call_of_one(posterior.exact, proposed.ctypes.data)
        log_ratio += exact_then - exact_now
        if math.isfinite(log_ratio):
            log_ratio += _expansion(posterior, proposed, current)
            verdict = _decide(decisions, proposed, current, log_ratio, rng, audits, out)
        if verdict == VIOLATED:
            return t
        out[0], out[7] = verdict, chosen
        if verdict == ACCEPTED:
            exact_now = exact_then
            for i in range(current.size):
                current[i] = proposed[i]
        for i in range(current.size):
            points[t, i] = current[i]
    return statistics.shape[0]
