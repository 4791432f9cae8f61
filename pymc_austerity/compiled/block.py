"""A block of transitions of a chain in one compiled function, the same for all models."""

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
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
from pymc_austerity.compiled.proposals import CompiledProposals, propose
from pymc_austerity.parts import part, part_by_type, reals


class CompiledPosterior(NamedTuple):
    """What is known of the log-posterior without reading rows.

    Attributes
    ----------
    exact : int
        Address of the row-free part; see `pymc_austerity.model.DensityKernel.address`.
    anchor, gradient : float array, shape (d,)
        Of the expansion.
    hessian : float array, shape (d, d)
        Zeros for an expansion of first order.
    size : int
        d.
    """

    exact: int
    anchor: NDArray[np.float64]
    gradient: NDArray[np.float64]
    hessian: NDArray[np.float64]
    size: int


@part(types.float64)
def _expansion(posterior: CompiledPosterior, proposed: Any, current: Any) -> float:
    """What the control variates sum up to over all rows, nats."""
    anchor, d = reals(posterior.anchor), posterior.size
    gradient, hessian = reals(posterior.gradient), reals(posterior.hessian)
    first, second = 0.0, 0.0
    for i in range(d):
        product = 0.0
        for j in range(d):
            about = (proposed[j] - anchor[j]) + (current[j] - anchor[j])
            product += hessian[i * d + j] * about
        moved = proposed[i] - current[i]
        first += gradient[i] * moved
        second += moved * product
    return first + 0.5 * second


@part_by_type(
    types.int64,
    {
        SequentialDecisions: decide_sequentially,
        ExactDecisions: decide_exactly,
    },
)
def decide_by(its, proposed, current, log_ratio, rng, audits, statistics):  # type: ignore[no-untyped-def]
    """Accept or reject; see `decide_sequentially`."""
    raise NotImplementedError


@numba.njit(cache=True, error_model="numpy", no_cfunc_wrapper=True, nogil=True)
def transitions(
    proposals: CompiledProposals,
    posterior: CompiledPosterior,
    decisions: SequentialDecisions | ExactDecisions,
    work: int,
    rng: np.random.Generator,
    audits: np.random.Generator,
    n_transitions: int,
    points: int,
    statistics: int,
) -> int:
    """Make transitions.

    Parameters
    ----------
    proposals, posterior, decisions
        What to sample, and how, as `addressed` has them; but for working space nothing in them
        changes.
    work : int
        Address of 3 x d floats. Where the chain is, first; the rest is working space. It ends
        where the chain is then.
    rng, audits : numpy.random.Generator
        Of the chain, and of what is checked.
    n_transitions : int
        How many, n.
    points : int
        Address of n x d floats: where the chain is after each transition.
    statistics : int
        Address of n x 8 floats: what each took, see `pymc_austerity.compiled.STATISTICS`.

    Returns
    -------
    int
        Transitions made: fewer where one of them violates a bound.
    """
    d = posterior.size
    current, proposed, noise = reals(work), reals(work + 8 * d), reals(work + 16 * d)
    exact_now = call_of_one(posterior.exact, work)
    for t in range(n_transitions):
        out, point, verdict = reals(statistics + 64 * t), reals(points + 8 * d * t), REJECTED
        out[1] = out[2] = out[3] = out[5] = out[6] = 0.0
        out[4] = math.nan
        chosen, log_ratio = propose(proposals, current, rng, noise, proposed)
        exact_then = call_of_one(posterior.exact, work + 8 * d)
        log_ratio += exact_then - exact_now
        if math.isfinite(log_ratio):
            log_ratio += _expansion(posterior, proposed, current)
            verdict = decide_by(decisions, proposed, current, log_ratio, rng, audits, out)
        if verdict == VIOLATED:
            return t
        out[0], out[7] = verdict, chosen
        if verdict == ACCEPTED:
            exact_now = exact_then
            for i in range(d):
                current[i] = proposed[i]
        for i in range(d):
            point[i] = current[i]
    return n_transitions
