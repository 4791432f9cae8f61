"""The contracts between the sequential test, what feeds it and what it returns."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Decision", "DifferenceStream", "Estimate", "Evidence", "StoppingRule", "Survey"]


class DifferenceStream(Protocol):
    """Log-likelihood differences of rows that were not seen before in this decision."""

    def read(self, n_rows: int) -> Iterable[NDArray]:
        """Differences of the next ``n_rows`` rows, in blocks of float64 arrays, nats."""
        ...


class Estimate(NamedTuple):
    """What a sample of rows says about the sum of the differences of all rows.

    Attributes
    ----------
    total : float
        Estimated sum over all rows, nats; not finite as soon as one difference is not.
    variance : float
        Estimated variance of `total` under sampling without replacement, nats squared. 0 where
        all rows were seen, or where the sample has no spread and says nothing about its error.
    degrees_of_freedom : float
        Degrees of freedom of `variance`.
    n_seen : int
        Rows seen so far.
    spread : float
        Estimated unit, in nats, of distances that do not depend on the rows seen: for uniform
        samples ``N sigma_l / sqrt(N - 1)``. 0 where the sample has no spread.
    """

    total: float
    variance: float
    degrees_of_freedom: float
    n_seen: int
    spread: float


class Survey(Protocol):
    """A sample of rows that grows from look to look.

    Attributes
    ----------
    n_rows : int
        Rows there are.
    """

    n_rows: int

    @property
    def total(self) -> float:
        """Estimated sum over all rows at the last look, nats."""
        ...

    @property
    def deviations(self) -> NDArray[np.float64]:
        """Standard deviation of the differences seen, in each stratum, nats; shape (H,)."""
        ...

    def look(self) -> Estimate:
        """See more rows, at least one."""
        ...

    def finish(self) -> Estimate:
        """See all that is left."""
        ...


class Evidence(NamedTuple):
    """What is known after a look, about the side of the threshold on which the sum lies.

    Attributes
    ----------
    distance : float
        Estimated sum of the differences minus the threshold, nats.
    standard_error : float
        Its estimated standard error, nats. Always positive: a sample without spread is no
        evidence.
    degrees_of_freedom : float
        Degrees of freedom of the estimated standard error.
    n_seen, n_rows : int
        Rows seen so far, and rows there are. ``n_seen < n_rows``.
    n_looks : int
        Looks taken so far, this one included.
    """

    distance: float
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


class Decision(NamedTuple):
    """An accept or reject decision and what it cost.

    Attributes
    ----------
    accept : bool
        Whether the sum of the differences was judged to exceed the threshold.
    n_rows_used : int
        Rows whose difference was evaluated to decide.
    n_looks : int
        Looks taken at the data.
    decision_error : float
        The stopping rule's error of this decision, a probability; 0 when all rows were seen.
    standardized_mean : float
        Estimate of ``mu_std``: distance from the threshold in units of the `Estimate.spread`. NaN
        where that is 0.
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
