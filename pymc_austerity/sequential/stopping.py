"""Tests of Metropolis-Hastings that read rows, look by look, until the evidence suffices."""

import math
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from pymc_austerity.sequential.protocols import (
    Decision,
    Evidence,
    StoppingRule,
    Survey,
    TestDescription,
)

__all__ = ["StoppingTest", "exceeds", "log_uniform"]


class StoppingTest(ABC):
    r"""Metropolis-Hastings by a stopping rule.

    Accepts iff :math:`\sum_{i=1}^N l_i > \log u - r` with :math:`u` uniform and :math:`r` the rest
    of the log-ratio, as judged from a sample of the rows. Subclasses define when to stop reading
    rows, and the error of the resulting decision.
    """

    @abstractmethod
    def stops(self, evidence: Evidence) -> bool:
        """Whether the evidence suffices to decide now."""

    @abstractmethod
    def error(self, evidence: Evidence) -> float:
        """Bound or estimate of the probability that a decision on this evidence is wrong."""

    @cached_property
    def description(self) -> TestDescription:
        """Properties that the rest of the package uses."""
        name = type(self).__name__
        return TestDescription(name=name, summary=name)

    def decide(self, survey: Survey, log_ratio: float, rng: np.random.Generator) -> Decision:
        """Accept or reject a proposal.

        Parameters
        ----------
        survey : Survey
            A sample of which no rows have been read.
        log_ratio : float
            Log of the Metropolis-Hastings ratio without the sum of all differences, nats.
        rng : numpy.random.Generator
            Draws the uniform number, before the survey looks at rows.
        """
        return exceeds(survey, log_uniform(rng) - log_ratio, rule=self)


def log_uniform(rng: np.random.Generator) -> float:
    """Log of a uniform random number, which a log-ratio must exceed."""
    uniform = rng.random()
    return math.log(uniform) if uniform > 0.0 else -math.inf


def exceeds(survey: Survey, log_threshold: float, *, rule: StoppingRule) -> Decision:
    r"""Decide whether the sum of all differences exceeds a threshold, reading no more than needed.

    Metropolis-Hastings accepts iff :math:`\sum_{i=1}^N l_i > \psi` (Korattikara, Chen and Welling
    2014, section 4, where both sides are divided by :math:`N`).

    Parameters
    ----------
    survey : Survey
        A sample of which no rows have been read.
    log_threshold : float
        :math:`\psi`, nats.
    rule : StoppingRule
        When to stop.

    Returns
    -------
    Decision
        A rejection as soon as a difference is not finite; exact when all rows were read.

    Notes
    -----
    ``standardized_mean`` is the distance of the estimated sum from :math:`\psi` in units of the
    estimate's spread. For uniform samples that is the paper's
    :math:`\mu_{std} = (\mu - \mu_0) \sqrt{N - 1} / \sigma_l`.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.sequential import StudentTTest, UniformSurvey, exceeds
    >>> class Stream:
    ...     def __init__(self, values):
    ...         self.values, self.n_seen = values, 0
    ...     def read(self, n_rows):
    ...         self.n_seen += n_rows
    ...         yield self.values[self.n_seen - n_rows : self.n_seen]
    >>> differences = np.random.default_rng(1).normal(0.5, 1.0, size=10_000)
    >>> survey = UniformSurvey(Stream(differences), n_rows=10_000, batch_size=500)
    >>> decision = exceeds(survey, 0.0, rule=StudentTTest(epsilon=0.05))
    >>> decision.accept, decision.n_rows_used, decision.exact
    (True, 500, False)
    """
    with np.errstate(invalid="ignore", over="ignore"):  # differences that are not finite reject
        return _exceeds(survey, log_threshold, rule)


def _exceeds(survey: Survey, log_threshold: float, rule: StoppingRule) -> Decision:
    n_rows, n_looks = survey.n_rows, 0
    while True:
        total, variance, degrees_of_freedom, n_seen, spread = survey.look()
        n_looks += 1
        if not math.isfinite(total):
            return Decision(False, n_seen, n_looks, 0.0, math.nan, True, None, log_threshold)
        distance = total - log_threshold
        accept = distance > 0.0
        standardized = distance / spread if spread > 0.0 else math.nan
        if n_seen >= n_rows:
            return Decision(accept, n_seen, n_looks, 0.0, standardized, True, None, log_threshold)
        if variance == 0.0:
            continue
        evidence = Evidence(
            distance,
            math.sqrt(variance),
            degrees_of_freedom,
            n_seen,
            n_rows,
            n_looks,
            survey.largest_difference,
        )
        if rule.stops(evidence):
            error = rule.error(evidence)
            return Decision(
                accept, n_seen, n_looks, error, standardized, False, None, log_threshold
            )
