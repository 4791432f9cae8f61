"""The sequential t-test on strata in compiled code."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types

from pymc_austerity.compiled.calls import call_of_two, integers
from pymc_austerity.compiled.parts import part
from pymc_austerity.compiled.survey import (
    CompiledRows,
    Survey,
    begin,
    estimate,
    plan_further,
    see,
)
from pymc_austerity.sequential import relative_excess

__all__ = ["STATISTICS", "CompiledTest", "SequentialDecisions", "decide_sequentially"]

STATISTICS = (
    "accepted",
    "n_rows_used",
    "n_looks",
    "decision_error",
    "standardized_mean",
    "audited",
    "wrong",
    "component",
)
"""What is recorded of a transition, in this order."""


class CompiledTest(NamedTuple):
    """The sequential t-test, and how often its decisions are checked.

    Attributes
    ----------
    tail : int
        Address of the distribution function of Student's t, as ``scipy.special.stdtr``.
    epsilon : float
        Tail probability below which the test stops.
    relative : bool
        Whether it keeps the relative error of acceptance probabilities small.
    audit : float
        Share of decisions that are checked on all rows.
    """

    tail: int
    epsilon: float
    relative: bool
    audit: float


class SequentialDecisions(NamedTuple):
    """Sequential tests on rows in strata.

    Attributes
    ----------
    rows : CompiledRows
    survey : Survey
        Working space.
    test : CompiledTest
    """

    rows: CompiledRows
    survey: Survey
    test: CompiledTest


def decide_sequentially(
    its: SequentialDecisions,
    proposed: Any,
    current: Any,
    log_ratio: float,
    rng: np.random.Generator,
    audits: np.random.Generator,
    statistics: Any,
) -> int:
    """Accept (1) or reject (0) a proposal, and check some of the decisions on all rows.

    Parameters
    ----------
    its : SequentialDecisions
    proposed, current : pointers to d floats
    log_ratio : float
        All of the log acceptance ratio but the sum of the residuals, nats.
    rng, audits : numpy.random.Generator
        Of the chain, and of what is checked.
    statistics : pointer to floats
        Where what it took is recorded; see `STATISTICS`.
    """
    rows, survey, test = its.rows, its.survey, its.test
    is_audited = test.audit > 0.0 and audits.random() < test.audit
    uniform = rng.random()
    log_threshold = (math.log(uniform) if uniform > 0.0 else -math.inf) - log_ratio
    begin(rows, survey, proposed, current, rng)
    accept = _exceeds(rows, survey, test, log_threshold, statistics)
    if is_audited:
        statistics[5] = 1.0
        statistics[6] = _exceeds_on_all(rows, survey, log_threshold) != accept
    return 1 if accept else 0


@part(types.boolean)
def _exceeds(
    rows: CompiledRows,
    survey: Survey,
    test: CompiledTest,
    log_threshold: float,
    statistics: Any,
) -> bool:
    """Whether the sum of all differences exceeds a threshold, as far as a sample tells.

    Parameters
    ----------
    rows : CompiledRows
    survey : Survey
        Just begun.
    test : CompiledTest
    log_threshold : float
        Nats.
    statistics : pointer to floats
        Where what it took is recorded; see `STATISTICS`.
    """
    n_looks, n_rows, spread = 0, 0, 0.0
    sizes = integers(rows.sizes)
    for h in range(rows.n_strata):
        n_rows += sizes[h]
    while True:
        see(rows, survey)
        n_looks += 1
        total, variance, free, n_seen = estimate(rows, survey)
        statistics[1], statistics[2] = n_seen, n_looks
        if not math.isfinite(total):
            return False
        distance = total - log_threshold
        if variance > 0.0 and n_seen < n_rows:
            spread = math.sqrt(variance * n_seen / (n_rows - n_seen))
        statistics[4] = distance / spread if spread > 0.0 else math.nan
        if n_seen >= n_rows:
            return distance > 0.0
        if variance > 0.0:
            error = call_of_two(test.tail, free, -abs(distance) / math.sqrt(variance))
            is_clear = error < test.epsilon
            if is_clear and test.relative and distance > 0.0:
                is_clear = _excess(distance, math.sqrt(variance)) <= test.epsilon
            if is_clear:
                statistics[3] = error
                return distance > 0.0
        plan_further(rows, survey)


_excess = part(types.float64)(relative_excess)


@part(types.boolean)
def _exceeds_on_all(rows: CompiledRows, survey: Survey, log_threshold: float) -> bool:
    """Whether the sum of all differences exceeds a threshold; reads what is left."""
    sizes, counts, new = integers(rows.sizes), integers(survey.counts), integers(survey.new)
    for h in range(rows.n_strata):
        new[h] = sizes[h] - counts[h]
    see(rows, survey)
    total = estimate(rows, survey)[0]
    return math.isfinite(total) and total > log_threshold
