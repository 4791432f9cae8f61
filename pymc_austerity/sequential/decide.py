"""The loop around a stopping rule: look, and look again, until the rule stops it."""

import math

import numpy as np

from pymc_austerity.sequential.protocols import Decision, Evidence, StoppingRule, Survey

__all__ = ["decide"]


def decide(
    survey: Survey, log_threshold: float, *, rule: StoppingRule, audit: bool = False
) -> Decision:
    r"""Decide whether the sum of all differences exceeds a threshold, from as few as suffice.

    Metropolis-Hastings accepts iff :math:`\sum_{i=1}^N l_i > \psi` (Korattikara, Chen and Welling
    2014, section 4, where both sides are divided by :math:`N`).

    Parameters
    ----------
    survey : Survey
        A sample of rows that has not seen any yet.
    log_threshold : float
        :math:`\psi`, nats.
    rule : StoppingRule
        When to stop.
    audit : bool
        See the remaining rows after the decision, to record what all rows say. The decision
        itself is not touched.

    Returns
    -------
    Decision
        A rejection as soon as a difference is not finite; exact when all rows were seen.

    Notes
    -----
    ``standardized_mean`` is the distance of the estimated sum from :math:`\psi` in units of the
    estimate's spread. For uniform samples that is the paper's
    :math:`\mu_{std} = (\mu - \mu_0) \sqrt{N - 1} / \sigma_l`.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.sequential import StudentTTest, UniformSurvey, decide
    >>> class Stream:
    ...     def __init__(self, values):
    ...         self.values, self.n_seen = values, 0
    ...     def read(self, n_rows):
    ...         self.n_seen += n_rows
    ...         yield self.values[self.n_seen - n_rows : self.n_seen]
    >>> differences = np.random.default_rng(1).normal(0.5, 1.0, size=10_000)
    >>> survey = UniformSurvey(Stream(differences), n_rows=10_000, batch_size=500)
    >>> decision = decide(survey, 0.0, rule=StudentTTest(epsilon=0.05))
    >>> decision.accept, decision.n_rows_used, decision.exact
    (True, 500, False)
    """
    with np.errstate(invalid="ignore", over="ignore"):  # differences that are not finite reject
        return _decide(survey, log_threshold, rule, audit)


def _decide(survey: Survey, log_threshold: float, rule: StoppingRule, audit: bool) -> Decision:
    n_rows, n_looks = survey.n_rows, 0
    while True:
        total, variance, degrees_of_freedom, n_seen, spread = survey.look()
        n_looks += 1
        if not math.isfinite(total):
            return Decision(False, n_seen, n_looks, 0.0, math.nan, True, False if audit else None)
        distance = total - log_threshold
        accept = distance > 0.0
        standardized = distance / spread if spread > 0.0 else math.nan
        if n_seen >= n_rows:
            said = accept if audit else None
            return Decision(accept, n_seen, n_looks, 0.0, standardized, True, said)
        if variance == 0.0:
            continue
        standard_error = math.sqrt(variance)
        evidence = Evidence(distance, standard_error, degrees_of_freedom, n_seen, n_rows, n_looks)
        if rule.stops(evidence):
            error = rule.error(evidence)
            said = _exact(survey, log_threshold) if audit else None
            return Decision(accept, n_seen, n_looks, error, standardized, False, said)


def _exact(survey: Survey, log_threshold: float) -> bool:
    total = survey.finish().total
    return math.isfinite(total) and total > log_threshold
