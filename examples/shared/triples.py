"""Decisions of Metropolis-Hastings: triples (theta, theta', u) along a chain on all rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from examples.shared.acceptance import TrialRun
from pymc_austerity import AusterityMH
from pymc_austerity.rows import blocks_of


@dataclass(frozen=True)
class Question:
    """What a decision of Metropolis-Hastings is about.

    Attributes
    ----------
    current, proposed : float arrays, shape (d,)
        The two points.
    log_threshold : float
        What the sum of all row differences must exceed, nats.
    log_u : float
        Logarithm of the uniform number in it.
    """

    current: NDArray[np.float64]
    proposed: NDArray[np.float64]
    log_threshold: float
    log_u: float


def posterior_points(
    sampler: AusterityMH, start: NDArray, n_points: int, *, thin: int, burn_in: int
) -> NDArray[np.float64]:
    """Points of a chain with this step method, shape (n_points, d)."""
    idata = pm.sample(
        step=sampler,
        tune=0,
        draws=burn_in + thin * n_points,
        chains=1,
        cores=1,
        initvals={"beta": start},
        random_seed=20140621,
        progressbar=False,
        compute_convergence_checks=False,
    )
    return idata.posterior["beta"].to_numpy()[0, burn_in::thin]


def ask(sampler: AusterityMH, current: NDArray, rng: np.random.Generator) -> Question:
    """Draw a proposal and a uniform number at a point."""
    proposed, log_ratio, _ = sampler.proposal.propose(sampler.proposal_state, current, rng)
    log_row_free_ratio = float(sampler.target.row_free_difference(proposed, current)) + log_ratio
    log_u = np.log1p(-rng.random())
    return Question(current, proposed, log_u - log_row_free_ratio, log_u)


def differences(sampler: AusterityMH, question: Question) -> NDArray[np.float64]:
    """Log-likelihood differences of all rows, shape (N,), nats."""
    f, (new, old) = sampler.target.row_function, (question.proposed, question.current)
    return np.concatenate([f(new, old, *block) for block in blocks_of(sampler.target.source)])


def trial_run(rows: Iterable[NDArray], questions: Sequence[Question]) -> TrialRun:
    """What a design needs to know of some decisions and the differences of their rows."""
    moments = np.array([(each.mean(), each.std(), each.size) for each in rows])
    return TrialRun(
        mean=moments[:, 0],
        standard_deviation=moments[:, 1],
        log_threshold=np.array([question.log_threshold for question in questions]),
        log_u=np.array([question.log_u for question in questions]),
        n_rows=int(moments[0, 2]),
    )
