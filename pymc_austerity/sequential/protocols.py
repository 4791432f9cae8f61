"""The contracts between the sequential test, what feeds it and what it returns."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from numpy.typing import NDArray

__all__ = ["Decision", "DifferenceStream", "Evidence", "StoppingRule"]


class Evidence(NamedTuple):
    """What is known after a look, about the side of the threshold on which the mean lies.

    Attributes
    ----------
    mean_difference : float
        Mean of the differences seen so far, minus the threshold of the mean, nats per row.
    standard_error : float
        Estimated standard error of that mean under sampling without replacement, nats per row.
        Always positive: a sample without spread is not evidence.
    degrees_of_freedom : float
        Degrees of freedom of the estimated standard error.
    n_seen, n_rows : int
        Rows seen so far, and rows there are. ``n_seen < n_rows``.
    n_looks : int
        Looks taken so far, this one included.
    """

    mean_difference: float
    standard_error: float
    degrees_of_freedom: float
    n_seen: int
    n_rows: int
    n_looks: int


class StoppingRule(Protocol):
    """When to stop looking, and how wrong the decision taken then may be."""

    def stops(self, evidence: Evidence) -> bool:
        """Whether the evidence suffices to decide now."""
        ...

    def error(self, evidence: Evidence) -> float:
        """Bound or estimate of the probability that a decision on this evidence is wrong."""
        ...


class DifferenceStream(Protocol):
    """Log-likelihood differences of rows that were not seen before in this decision."""

    def read(self, n_rows: int) -> Iterable[NDArray]:
        """Differences of the next ``n_rows`` rows, in blocks of float64 arrays, nats."""
        ...


class Decision(NamedTuple):
    """An accept or reject decision and what it cost.

    Attributes
    ----------
    accept : bool
        Whether the mean difference was judged to exceed the threshold.
    n_rows_used : int
        Rows whose difference was evaluated to decide.
    n_looks : int
        Looks taken at the data.
    decision_error : float
        The stopping rule's error of this decision, a probability; 0 when all rows were seen.
    standardized_mean : float
        Estimate of ``mu_std``: distance of the mean from the threshold, in standard errors of
        a sample of one row, times the root of the number of rows. NaN when it is not defined.
    exact : bool
        Whether the decision is the one that all rows give.
    exact_accept : bool or None
        What all rows say, where the decision was audited; else None.
    """

    accept: bool
    n_rows_used: int
    n_looks: int
    decision_error: float
    standardized_mean: float
    exact: bool
    exact_accept: bool | None = None
