"""The contracts between the sequential test, its input and its output."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

BoundOfDifferences: TypeAlias = float | Callable[[NDArray, NDArray], float]
"""Bound on the absolute difference of a row, nats, or a function of two points returning it. Tests
never call the function: it is called when a survey begins, and the survey holds the result."""


class DifferenceStream(Protocol):
    """Log-likelihood differences of rows that have not yet been read for this decision."""

    def read(self, n_rows: int) -> Iterable[NDArray]:
        """Differences of the next ``n_rows`` rows, in blocks of float64 arrays, nats."""


class Estimate(NamedTuple):
    """An estimate of the sum of the differences of all rows, from a sample.

    Attributes
    ----------
    total : float
        Estimated sum over all rows, nats; not finite as soon as one difference is not.
    variance : float
        Estimated variance of `total` under sampling without replacement, nats squared. 0 where
        all rows were read, or where the sample has no spread, so that its error is unknown.
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
        Number of all rows.
    """

    n_rows: int

    @property
    def largest_difference(self) -> float:
        """Bound on the absolute differences, nats; infinite if it is not known."""

    @property
    def total(self) -> float:
        """Estimated sum over all rows at the last look, nats."""

    @property
    def deviations(self) -> NDArray[np.float64]:
        """Standard deviation of the differences seen, in each stratum, nats; shape (H,)."""

    def look(self) -> Estimate:
        """Read more rows, at least one."""

    def finish(self) -> Estimate:
        """Read all remaining rows."""


class Evidence(NamedTuple):
    """Evidence, after a look, on which side of the threshold the sum lies.

    Attributes
    ----------
    distance : float
        Estimated sum of the differences minus the threshold, nats.
    standard_error : float
        Its estimated standard error, nats. Always positive: a sample without spread provides no
        evidence.
    degrees_of_freedom : float
        Degrees of freedom of the estimated standard error.
    n_seen, n_rows : int
        Rows read so far, and number of all rows. ``n_seen < n_rows``.
    n_looks : int
        Looks taken so far, this one included.
    largest_difference : float
        Bound on the absolute differences of rows, nats; infinite if it is not known.
    """

    distance: float
    standard_error: float
    degrees_of_freedom: float
    n_seen: int
    n_rows: int
    n_looks: int
    largest_difference: float = math.inf


class StoppingRule(Protocol):
    """When to stop reading rows, and the error of the resulting decision."""

    def stops(self, evidence: Evidence) -> bool:
        """Whether the evidence suffices to decide now."""

    def error(self, evidence: Evidence) -> float:
        """Bound or estimate of the probability that a decision on this evidence is wrong."""


class Decision(NamedTuple):
    """An accept or reject decision and what it cost.

    Attributes
    ----------
    accept : bool
        Whether the sum of the differences was judged to exceed the threshold.
    n_rows_used : int
        Rows whose difference was evaluated for the decision.
    n_looks : int
        Looks taken at the data.
    decision_error : float
        The stopping rule's error of this decision, a probability; 0 when all rows were read.
    standardized_mean : float
        Estimate of ``mu_std``: distance from the threshold in units of `Estimate.spread`. NaN if
        the spread is 0.
    exact : bool
        Whether the decision is the one that all rows would give.
    exact_accept : bool or None
        The decision of all rows if it was audited, else None.
    log_threshold : float
        Value that the sum of the differences had to exceed, nats; NaN if there was no threshold.
    """

    accept: bool
    n_rows_used: int
    n_looks: int
    decision_error: float
    standardized_mean: float
    exact: bool
    exact_accept: bool | None = None
    log_threshold: float = math.nan


@dataclass(frozen=True)
class TestDescription:
    """Properties of a test that the rest of the package uses.

    Attributes
    ----------
    name : str
        Identifier, for the constants of a run.
    summary : str
        Name and settings in words.
    acceptance : {"metropolis", "barker", "poisson", "none"}
        The acceptance rule. Metropolis-Hastings decisions are right or wrong, given the uniform
        random number. Barker decisions are random, and so are exact decisions from a Poisson
        sample of the rows. With "none", every proposal is accepted.
    assumption : {"normal means", "bounded differences", "none"}
        Assumption behind the error of the test. A bound holds for uniform samples only.
    epsilon : float
        Tail probability at which the test stops, or its error; NaN if it has none.
    alpha : float
        Shape of the boundary of a t-test, by Wang and Tsiatis: 1/2 for a constant one.
    growth : float
        Factor by which each look multiplies a uniform sample; 1 for looks of the same size.
    largest_difference : float, callable or None
        Bound on the differences, if the test needs one.
    """

    __test__ = False  # no test case of pytest

    name: str
    summary: str
    acceptance: Literal["metropolis", "barker", "poisson", "none"] = "metropolis"
    assumption: Literal["normal means", "bounded differences", "none"] = "none"
    epsilon: float = math.nan
    alpha: float = 0.5
    growth: float = 1.0
    largest_difference: BoundOfDifferences | None = None

    @property
    def has_verdicts(self) -> bool:
        """Whether decisions are right or wrong."""
        return self.acceptance == "metropolis"

    @property
    def needs_bound(self) -> bool:
        """Whether the test needs a bound on the differences, and uniform samples."""
        return self.largest_difference is not None


class SequentialTest(Protocol):
    """Accepts or rejects a proposal by reading as few rows as suffice."""

    @property
    def description(self) -> TestDescription:
        """Properties that the rest of the package uses."""

    def decide(self, survey: Survey, log_ratio: float, rng: np.random.Generator) -> Decision:
        """Accept or reject.

        `log_ratio` is the log of the Metropolis-Hastings ratio without the sum of all differences,
        nats. All randomness of the decision is drawn from `rng`.
        """
