"""Exact decisions on proposals, for one chain at a time, and the immutable arrays that they use."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.decider import (
    IMPOSSIBLE,
    CompiledDecisions,
    Decider,
    LogRatio,
    RandomAudits,
)
from pymc_austerity.deciding.sampling import RowFunction
from pymc_austerity.deciding.settings import EXACT, FIREFLY, Settings
from pymc_austerity.exact import (
    BoundViolatedError,
    ExactDecision,
    FireflyDecision,
    Groups,
    Inflation,
    decide,
    decide_by_fireflies,
)
from pymc_austerity.exact.decide import bounds_at
from pymc_austerity.rows import LARGEST_BLOCK, RowSource
from pymc_austerity.sequential import Decision, TestDescription


class RowBoundError(ArithmeticError):
    """A row changed by more than its bound, so that decisions would not be exact."""


@dataclass(frozen=True)
class StoredResiduals:
    """Residuals of rows by their positions in storage.

    Attributes
    ----------
    function : callable
        Residuals of a block of rows between two points, nats.
    source : RowSource
    """

    function: RowFunction
    source: RowSource

    def __call__(
        self, proposed: NDArray, current: NDArray, rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Residuals between two points, shape (n,), nats."""
        if not rows.size:
            return np.empty(0)
        if rows.size <= LARGEST_BLOCK:
            return self.function(proposed, current, *self.source.take(rows))
        starts = range(0, rows.size, LARGEST_BLOCK)
        parts = (self.source.take(rows[k : k + LARGEST_BLOCK]) for k in starts)
        return np.concatenate([self.function(proposed, current, *part) for part in parts])


@contextmanager
def rows_named(numbers: RowSource) -> Iterator[None]:
    """Name rows by their numbers in the user's data where they violate a bound.

    Parameters
    ----------
    numbers : RowSource
        Of the rows in the order of storage: one array.

    Raises
    ------
    RowBoundError
        In place of a `BoundViolatedError`.
    """
    try:
        yield
    except BoundViolatedError as error:
        (number,) = numbers.take(np.array([error.row]))
        raise RowBoundError(
            f"row {number[0]} of the data changed by {error.residual:.3g} nats between two "
            f"points, more than its bound of {error.bound:.3g}, so that decisions are not "
            "exact: use AusterityMH(epsilon=0.05) for a sequential test."
        ) from None


@dataclass(frozen=True, eq=False)
class PoissonSampling:
    r"""Rows are drawn by Poisson variables whose rates bound what the rows can change.

    Parameters
    ----------
    function : callable
        Residuals of rows about the anchor, in double precision.
    source : RowSource
        Rows, stored group by group.
    numbers : RowSource
        Their numbers in the user's data, in the same order: one array.
    center : float array, shape (d,)
        The anchor, :math:`\theta^*`.
    inverse_root : float array, shape (d, d)
        Inverse of R, where R R' is the covariance of the posterior at the anchor.
    groups : Groups
        Bounds of the rows.
    inflation : float
        Initial factor of the bounds, at least 1.
    expected_rows, typical_rows : float
        Rows that a decision between independent draws of the posterior is expected to read: mean
        and median over pairs of draws.
    accepted : float
        Share of draws of a normal approximation that a short run accepted, each in place of the
        one before.
    """

    function: RowFunction
    source: RowSource
    numbers: RowSource
    center: NDArray[np.float64]
    inverse_root: NDArray[np.float64]
    groups: Groups
    inflation: float = 1.0
    expected_rows: float = float("nan")
    typical_rows: float = float("nan")
    accepted: float = float("nan")

    @cached_property
    def constants(self) -> dict[str, Any]:
        """Constants of the run, by name."""
        return {
            "sampling": type(self).__name__,
            "row_groups": self.groups.n_groups,
            "largest_radius": float(self.groups.radii[-1]),
        }

    def whitened(self, point: NDArray) -> NDArray[np.float64]:
        """A point in units of the posterior's standard deviations, decorrelated, about the anchor.

        The result is the same in every call with the same point, as exactness requires.
        """
        return self.inverse_root.dot(point - self.center)

    def is_bounded_at(self, point: NDArray) -> bool:
        """Whether the log-likelihood of every row is finite at a point, by its bounds."""
        return bool(np.isfinite(bounds_at(self.whitened(point), self.groups)).all())

    def decide(
        self,
        proposed: NDArray,
        current: NDArray,
        log_ratio: float,
        inflation: float,
        rng: np.random.Generator,
    ) -> ExactDecision:
        """Accept or reject a proposal.

        Parameters
        ----------
        proposed, current : arrays, shape (d,)
            The two points.
        log_ratio : float
            The log acceptance ratio without the residuals, nats.
        inflation : float
            Factor of the bounds.
        rng : numpy.random.Generator
            Generator of the chain.

        Raises
        ------
        RowBoundError
            The message names the row.
        """
        residuals = self._residuals(proposed, current)
        u, v = self.whitened(current), self.whitened(proposed)
        with rows_named(self.numbers):
            return decide(residuals, u, v, log_ratio, self.groups, rng, inflation=inflation)

    def decide_by_fireflies(
        self, proposed: NDArray, current: NDArray, log_ratio: float, rng: np.random.Generator
    ) -> FireflyDecision:
        """Accept or reject a proposal given which rows are bright.

        Parameters and errors are those of `decide`.
        """
        anchor = self.center.astype(current.dtype, copy=False)
        now, then = self._residuals(current, anchor), self._residuals(proposed, anchor)
        u, v = self.whitened(current), self.whitened(proposed)
        with rows_named(self.numbers):
            return decide_by_fireflies(now, then, u, v, log_ratio, self.groups, rng)

    def _residuals(
        self, proposed: NDArray, current: NDArray
    ) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
        return partial(StoredResiduals(self.function, self.source), proposed, current)


@dataclass(frozen=True)
class ExactTest:
    """Represents exact decisions in place of the name and settings of a sequential test."""

    description: TestDescription = EXACT


@dataclass
class ExactState:
    """State that changes while a chain runs.

    Attributes
    ----------
    inflation : Inflation
        Factor of the bounds, and the estimates from which it was chosen.
    """

    inflation: Inflation


class ExactDecider:
    """Accepts or rejects proposals so that the posterior is exactly invariant.

    It has the methods and attributes of a `Decider`, but nothing to design, tighten or audit.

    Parameters
    ----------
    settings : Settings
        The user's settings.
    target : LogRatio
        The log-ratio to decide on.
    sampling : PoissonSampling
        Sampling of the target.

    Attributes
    ----------
    state : ExactState
        State that changes while a chain runs.
    compiled : CompiledDecisions or None
        Makes decisions in compiled code; None where they need Python.
    """

    test = ExactTest()
    compiled: CompiledDecisions | None = None
    plan = None
    worst_case = None
    schedule = None
    epsilon = math.nan

    def __init__(self, settings: Settings, target: LogRatio, sampling: PoissonSampling) -> None:
        self.settings = settings
        self.target = target
        self.sampling = sampling
        self.audits = RandomAudits(0.0)
        self.reset()

    def begin_chain(self, rng: np.random.Generator) -> None:
        """Begin a chain."""

    def reset(self) -> None:
        """Forget what was learned."""
        self.state = ExactState(Inflation.begin(self.sampling.inflation))

    def begin_draw(self, *, tuning: bool) -> None:
        """Nothing to do: no setting changes from draw to draw."""

    def stop_tuning(self) -> str:
        """End the tuning phase; there is nothing to report."""
        self.state = ExactState(Inflation.begin(self.state.inflation.value))
        return ""

    def decide(
        self,
        proposed: NDArray,
        current: NDArray,
        log_ratio: float,
        rng: np.random.Generator,
        *,
        tuning: bool = False,
    ) -> Decision:
        r"""Accept or reject a proposal.

        Parameters
        ----------
        proposed, current : arrays, shape (d,)
            The two points.
        log_ratio : float
            :math:`\log q(\theta | \theta') - \log q(\theta' | \theta)` of the proposal, nats.
        rng : numpy.random.Generator
            Generator of the chain.
        tuning : bool
            Whether the chain is tuning; the inflation is chosen in this phase.
        """
        log_known = log_ratio + self.target.row_free_part(proposed, current)
        if not math.isfinite(log_known):
            return IMPOSSIBLE
        log_known += self.target.expansion(proposed, current)
        made = self._on_rows(proposed, current, log_known, rng, tuning=tuning)
        return Decision(made.accept, made.n_rows_used, 1, 0.0, math.nan, True)

    def _on_rows(
        self,
        proposed: NDArray,
        current: NDArray,
        log_known: float,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> ExactDecision | FireflyDecision:
        known = self.state.inflation
        if self.compiled is None:
            made = self.sampling.decide(proposed, current, log_known, known.value, rng)
        else:
            with rows_named(self.sampling.numbers):
                made = self.compiled.decide_exactly(self, proposed, current, log_known, rng)
        if tuning:
            learnt = made.ratios, made.n_rows_used, made.log_ratio, made.n_candidates
            self.state.inflation = known.after(*learnt)
        return made


class FireflyDecider(ExactDecider):
    """Accepts or rejects proposals given which rows are bright; the posterior is invariant.

    Parameters
    ----------
    settings, target, sampling
        As for `ExactDecider`.

    Attributes
    ----------
    n_bright : int
        Rows that were bright when rows were last read.
    """

    test = ExactTest(FIREFLY)
    n_bright = 0

    def stop_tuning(self) -> str:
        """Nothing was chosen."""
        return ""

    def _on_rows(
        self,
        proposed: NDArray,
        current: NDArray,
        log_known: float,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> FireflyDecision:
        made = self.sampling.decide_by_fireflies(proposed, current, log_known, rng)
        self.n_bright = made.n_bright
        return made


AnyDecider: TypeAlias = Decider | ExactDecider


def decider_of(settings: Settings, target: LogRatio) -> AnyDecider:
    """The decider for the way in which a target samples its rows.

    Parameters
    ----------
    settings : Settings
        What the user chose.
    target : LogRatio
        What decisions are about.
    """
    if not isinstance(target.sampling, PoissonSampling):
        return Decider(settings, target)
    kind = FireflyDecider if settings.test == "firefly" else ExactDecider
    return kind(settings, target, target.sampling)
