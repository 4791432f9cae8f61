"""A block of transitions of a chain in one compiled function, the same for all models."""

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled.calls import call_of_one
from pymc_austerity.compiled.decision import CompiledTest, decide, exceeds_on_all
from pymc_austerity.compiled.options import INNER
from pymc_austerity.compiled.proposals import CompiledProposals, propose
from pymc_austerity.compiled.survey import CompiledRows, Survey, begin

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


@numba.njit(cache=True, error_model="numpy", no_cfunc_wrapper=True)
def transitions(
    proposals: CompiledProposals,
    posterior: CompiledPosterior,
    rows: CompiledRows,
    test: CompiledTest,
    survey: Survey,
    work: NDArray[np.float64],
    rng: np.random.Generator,
    audits: np.random.Generator,
    points: NDArray[np.float64],
    statistics: NDArray[np.float64],
) -> None:
    """Make transitions, as many as there are rows of statistics.

    Parameters
    ----------
    proposals, posterior, rows, test
        What to sample, and how; nothing in them changes.
    survey : Survey
        Working space.
    work : float array, shape (3, d)
        Where the chain is, first; the rest is working space. It ends where the chain is then.
    rng, audits : numpy.random.Generator
        Of the chain, and of what is checked.
    points : float array, shape (n, d)
        Where the chain is after each transition.
    statistics : float array, shape (n, 8)
        What each took: see `pymc_austerity.compiled.decision.STATISTICS`.
    """
    current, proposed, noise = work[0], work[1], work[2]
    exact_now = call_of_one(posterior.exact, current.ctypes.data)
    for t in range(statistics.shape[0]):
        out, accept = statistics[t], False
        out[1] = out[2] = out[3] = out[5] = out[6] = 0.0
        out[4] = math.nan
        chosen, log_known = propose(proposals, current, rng, noise, proposed)
        exact_then = call_of_one(posterior.exact, proposed.ctypes.data)
        log_known += exact_then - exact_now
        if math.isfinite(log_known):
            log_known += _expansion(posterior, proposed, current)
            is_audited = test.audit > 0.0 and audits.random() < test.audit
            uniform = rng.random()
            log_threshold = (math.log(uniform) if uniform > 0.0 else -math.inf) - log_known
            begin(rows, survey, proposed, current, rng)
            accept = decide(rows, survey, test, log_threshold, out)
            if is_audited:
                out[5] = 1.0
                out[6] = exceeds_on_all(rows, survey, log_threshold) != accept
        if accept:
            exact_now = exact_then
            for i in range(current.size):
                current[i] = proposed[i]
        out[0], out[7] = accept, chosen
        for i in range(current.size):
            points[t, i] = current[i]
