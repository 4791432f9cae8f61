"""The loop around a stopping rule: look, and look again, until the rule stops it."""

import math

import numpy as np

from pymc_austerity.sequential.moments import Moments
from pymc_austerity.sequential.protocols import (
    Decision,
    DifferenceStream,
    Evidence,
    StoppingRule,
)

__all__ = ["decide"]


def decide(
    stream: DifferenceStream,
    log_threshold: float,
    *,
    n_rows: int,
    batch_size: int,
    rule: StoppingRule,
    audit: bool = False,
) -> Decision:
    r"""Decide whether the sum of all differences exceeds a threshold, from as few as suffice.

    Metropolis-Hastings accepts iff :math:`\sum_{i=1}^N l_i > \psi`, that is iff the mean
    difference exceeds :math:`\mu_0 = \psi / N` (Korattikara, Chen and Welling 2014, section 4).

    Parameters
    ----------
    stream : DifferenceStream
        Gives the differences of rows drawn without replacement.
    log_threshold : float
        :math:`\psi`, nats.
    n_rows : int
        Number of rows there are, :math:`N`.
    batch_size : int
        Rows added at every look, :math:`m`.
    rule : StoppingRule
        When to stop.
    audit : bool
        Read the remaining rows after the decision, to record what all rows say. The decision
        itself is not touched.

    Returns
    -------
    Decision
        A rejection as soon as a difference is not finite; exact when all rows were seen.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.sequential import StudentT, decide
    >>> class Stream:
    ...     def __init__(self, values):
    ...         self.values, self.n_seen = values, 0
    ...     def read(self, n_rows):
    ...         self.n_seen += n_rows
    ...         yield self.values[self.n_seen - n_rows : self.n_seen]
    >>> differences = np.random.default_rng(1).normal(0.5, 1.0, size=10_000)
    >>> decision = decide(
    ...     Stream(differences), 0.0, n_rows=10_000, batch_size=500, rule=StudentT(0.05)
    ... )
    >>> decision.accept, decision.n_rows_used, decision.exact
    (True, 500, False)
    """
    with np.errstate(invalid="ignore", over="ignore"):  # differences that are not finite reject
        return _decide(stream, log_threshold / n_rows, n_rows, batch_size, rule, audit)


def _decide(
    stream: DifferenceStream,
    threshold: float,
    n_rows: int,
    batch_size: int,
    rule: StoppingRule,
    audit: bool,
) -> Decision:
    moments = Moments()
    n_looks = 0
    while True:
        _look(stream, moments, min(batch_size, n_rows - moments.count))
        n_looks += 1
        n_seen, variance = moments.count, moments.variance
        if not math.isfinite(moments.mean):
            return Decision(False, n_seen, n_looks, 0.0, math.nan, True, False if audit else None)
        distance = moments.mean - threshold
        if n_seen >= n_rows:
            accept = distance > 0.0
            standardized = _standardized_mean(distance, variance, n_rows)
            return Decision(
                accept, n_seen, n_looks, 0.0, standardized, True, accept if audit else None
            )
        if variance == 0.0:  # a sample without spread says nothing about the error of its mean
            continue
        share_left = 1.0 - (n_seen - 1) / (n_rows - 1)
        standard_error = math.sqrt(variance / n_seen * share_left)
        evidence = Evidence(distance, standard_error, n_seen - 1, n_seen, n_rows, n_looks)
        if rule.stops(evidence):
            return Decision(
                distance > 0.0,
                n_seen,
                n_looks,
                rule.error(evidence),
                _standardized_mean(distance, variance, n_rows),
                False,
                _on_all_rows(stream, moments, threshold, n_rows) if audit else None,
            )


def _look(stream: DifferenceStream, moments: Moments, n_rows: int) -> None:
    for differences in stream.read(n_rows):
        moments.add(differences)
        if not math.isfinite(moments.mean):  # one impossible row decides
            return


def _standardized_mean(distance: float, variance: float, n_rows: int) -> float:
    if variance == 0.0:
        return math.nan
    return distance * math.sqrt((n_rows - 1) / variance)


def _on_all_rows(
    stream: DifferenceStream, moments: Moments, threshold: float, n_rows: int
) -> bool:
    _look(stream, moments, n_rows - moments.count)
    return math.isfinite(moments.mean) and moments.mean > threshold
