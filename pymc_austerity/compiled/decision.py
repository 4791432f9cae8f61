"""The sequential t-test on strata in compiled code."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from pymc_austerity.compiled.calls import address_of_tail, call_of_two
from pymc_austerity.compiled.survey import CompiledSurvey, begin
from pymc_austerity.sequential import Evidence, StudentTTest, log_uniform
from pymc_austerity.sequential.stopping import exceeds_on_all_rows, read_until_clear
from pymc_austerity.sequential.t_tests import (
    excess_of,
    is_clear,
    level_of_look,
    normal_boundary,
)

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
    """A sequential t-test; see `StudentTTest`.

    Attributes
    ----------
    tail : int
        Address of the distribution function of Student's t, as ``scipy.special.stdtr``.
    epsilon, alpha : float
        Level of late looks, and shape of the boundary.
    quantile : float
        Of the normal distribution at `epsilon`.
    relative : bool
        Whether it keeps the relative error of acceptance probabilities small.
    """

    tail: int
    epsilon: float
    alpha: float
    quantile: float
    relative: bool

    def error_if_clear(self, evidence: Evidence) -> float:
        """See `pymc_austerity.sequential.error_if_clear`."""
        distance, standard_error = evidence.distance, evidence.standard_error
        statistic, share = abs(distance) / standard_error, evidence.n_seen / evidence.n_rows
        if statistic < -normal_boundary(self.quantile, self.alpha, share):
            return math.nan  # Student's t has more in its tails than the normal distribution
        error = call_of_two(self.tail, evidence.degrees_of_freedom, -statistic)
        level = level_of_look(self.epsilon, self.quantile, self.alpha, share)
        excess = excess_of(distance, standard_error, self.relative)
        return error if is_clear(error, excess, level) else math.nan


def compiled_test(test: StudentTTest) -> CompiledTest:
    """A t-test for compiled code, where `address_of_tail` is known."""
    tail, alpha = address_of_tail(), test.alpha
    assert tail is not None
    return CompiledTest(tail, test.epsilon, alpha, float(ndtri(test.epsilon)), test.relative)


class SequentialDecisions(NamedTuple):
    """Sequential tests on rows in strata.

    Attributes
    ----------
    survey : CompiledSurvey
    test : CompiledTest
    audit : float
        Share of decisions that are checked on all rows.
    """

    survey: CompiledSurvey
    test: CompiledTest
    audit: float


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
    survey, test = its.survey, its.test
    is_audited = its.audit > 0.0 and audits.random() < its.audit
    log_threshold = log_uniform(rng) - log_ratio
    begin(survey, proposed, current, rng)
    decision = read_until_clear(survey, log_threshold, test)
    statistics[1], statistics[2] = decision.n_rows_used, decision.n_looks
    statistics[3], statistics[4] = decision.decision_error, decision.standardized_mean
    if is_audited:
        statistics[5] = 1.0
        statistics[6] = exceeds_on_all_rows(survey, log_threshold) != decision.accept
    return 1 if decision.accept else 0
