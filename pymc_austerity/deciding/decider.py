"""Decisions on proposals, for one chain at a time, and tests designed on those while tuning."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.sampling import Sampling, StratifiedSampling
from pymc_austerity.deciding.settings import Settings, bound_between
from pymc_austerity.design import (
    TestDesign,
    average_design,
    stratified_looks,
    stratified_spread,
    worst_case_design,
)
from pymc_austerity.exact import ExactDecision
from pymc_austerity.sequential import Decision, SequentialTest, StudentTTest, audited
from pymc_austerity.strata import Strata

_EVERY = 2
"""One in this many decisions of the tuning phase is also computed on all rows."""

_LAST = 1.0 / 3.0
"""Last part of the tuning phase, whose decisions are most like those to come."""

_ROOM = 0.75
"""Share of the error that a design may use: the decisions that it is made on are only a sample."""

_LOOSEST = 0.05
"""Largest tail probability, unless the user asks for larger errors: a rare decision unlike those of
the tuning phase must not be made on next to no evidence."""

_FEWEST = 30
_POCOCK = (0.5,)


class TrialDecision(NamedTuple):
    """A decision on all rows.

    Attributes
    ----------
    distance : float
        Sum of the differences minus the threshold, nats.
    deviations : float array, shape (H,)
        Standard deviation of the differences within each stratum, nats.
    """

    distance: float
    deviations: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TrialPlan:
    """Choice of a test: before the run for the worst case, then for decisions like the actual ones.

    Parameters
    ----------
    max_error : float
        Largest share of wrong decisions.
    n_rows : int
        Number of all rows.
    strata : Strata, optional
        Strata and their first look, which are fixed; without them, the batch size is chosen too.
    deviations : float array, shape (H,), optional
        Usual standard deviation of the differences within each stratum, nats.
    batch_size : int, optional
        The user's batch size, which is fixed.
    """

    max_error: float
    n_rows: int
    strata: Strata | None = None
    deviations: NDArray[np.float64] = field(default_factory=lambda: np.ones(1))
    batch_size: int | None = None

    def worst_case(self) -> TestDesign:
        """The cheapest test whose error is small enough for every decision."""
        if self.strata is None:
            return worst_case_design(self.n_rows, self.max_error, batch_sizes=self._sizes)
        looks = stratified_looks(self.strata, self.deviations)
        return worst_case_design(
            self.n_rows,
            self.max_error,
            looks=lambda batch_size, n_rows: looks,
            batch_sizes=self._sizes,
            alphas=_POCOCK,
        )

    def wants(self, n_decisions: int) -> bool:
        """Whether to compute a decision of the tuning phase on all rows as well."""
        return n_decisions % _EVERY == 0

    def design(self, trial: Sequence[TrialDecision]) -> TestDesign | None:
        """The cheapest test for decisions like the last of these; None if there are too few."""
        last = [decision for decision in trial if self._is_known(decision)]
        last = last[-max(_FEWEST, round(_LAST * len(last))) :]
        if len(last) < _FEWEST:
            return None
        distances = np.array([decision.distance for decision in last])
        deviations = np.array([decision.deviations for decision in last])
        spreads = self._spreads(deviations)
        cheapest = partial(
            average_design,
            distances / spreads,
            self.n_rows,
            _ROOM * self.max_error,
            batch_sizes=self._sizes,
            loosest=max(_LOOSEST, self.max_error),
        )
        if self.strata is None:
            return cheapest()
        relative = deviations / spreads[:, None]
        looks = stratified_looks(self.strata, np.sqrt(np.mean(relative**2, axis=0)))
        return cheapest(looks=lambda batch_size, n_rows: looks, alphas=_POCOCK)

    @property
    def chooses_batch_size(self) -> bool:
        """Whether the design determines the size of the first look."""
        return self._sizes is None

    def _is_known(self, decision: TrialDecision) -> bool:
        """Whether the decision needed rows, and none of them was impossible."""
        spread = float(self._spreads(decision.deviations))
        return math.isfinite(decision.distance) and 0.0 < spread < math.inf

    def _spreads(self, deviations: NDArray[np.float64]) -> NDArray[np.float64]:
        """Unit of the distances of decisions, nats."""
        if self.strata is not None:
            return stratified_spread(self.strata, deviations)
        return self.n_rows / math.sqrt(self.n_rows - 1) * deviations[..., 0]

    @property
    def _sizes(self) -> list[int] | None:
        if self.strata is not None:
            return [self.strata.n_first]
        return None if self.batch_size is None else [self.batch_size]


def trial_plan(sampling: Sampling, settings: Settings) -> TrialPlan | None:
    """Plan for choosing the test, if the user gives an error and decisions can be wrong."""
    if settings.max_error is None or sampling.is_exact:
        return None
    strata = sampling.strata
    if isinstance(sampling, StratifiedSampling):
        deviations = sampling.deviations
        return TrialPlan(settings.max_error, strata.n_rows, strata=strata, deviations=deviations)
    return TrialPlan(settings.max_error, strata.n_rows, batch_size=settings.batch_size)


IMPOSSIBLE = Decision(False, 0, 0, 0.0, math.nan, True)
"""The row-free part alone excludes the proposal."""


class LogRatio(Protocol):
    """Log-ratio of the posterior at two points, in parts: two known ones, and rows to sample."""

    @property
    def sampling(self) -> Any:
        """Samples of the row differences, or of their residuals about an expansion."""

    @property
    def n_kept(self) -> int:
        """Rows that are known as they are: those of the row-free part."""

    def row_free_part(self, proposed: NDArray, current: NDArray) -> float:
        """Difference of the row-free part, nats."""

    def expansion(self, proposed: NDArray, current: NDArray) -> float:
        """Sum of the control variates of all rows, nats; 0 without any."""


class CompiledDecisions(Protocol):
    """Makes the decisions of a decider in compiled code, with the random numbers of Python.

    The parameters are a decider and those of its method `decide`; the log-ratio is all that is
    known, and finite.
    """

    def decide(
        self,
        decider: "Decider",
        proposed: NDArray,
        current: NDArray,
        log_known: float,
        rng: np.random.Generator,
    ) -> Decision:
        """A decision, audited if the decider wants it."""

    def decide_exactly(
        self,
        decider: Any,
        proposed: NDArray,
        current: NDArray,
        log_known: float,
        rng: np.random.Generator,
    ) -> ExactDecision:
        """An exact decision."""


@dataclass
class DecisionState:
    """State that changes while a chain runs.

    Attributes
    ----------
    test : SequentialTest
        The test of the current draw.
    n_draws, n_decisions : int
        Numbers of draws begun and of decisions made so far.
    batch_size : int or None
        Number of rows of the first look, if a design or a check determined it.
    trial : list of TrialDecision
        Decisions of the tuning phase, for the design.
    """

    test: SequentialTest
    n_draws: int = 0
    n_decisions: int = 0
    batch_size: int | None = None
    trial: list[TrialDecision] = field(default_factory=list)


def test_of(design: TestDesign, *, relative: bool) -> SequentialTest:
    """The test of a design; see `StudentTTest` for `relative`."""
    return StudentTTest(design.epsilon, relative, design.alpha)


class Decider:
    """Accepts or rejects proposals.

    Parameters
    ----------
    settings : Settings
        Test, schedule and audits.
    target : LogRatio
        The log-ratio to decide on.

    Attributes
    ----------
    test : SequentialTest
        The test after tuning, or before a better one is designed.
    plan : TrialPlan or None
        Designs the test, if the user gives an error and no test.
    worst_case : TestDesign or None
        The test of the tuning phase, if there is such a plan.
    audits : RandomAudits
        Selects the decisions that are checked.
    state : DecisionState
        State that changes while a chain runs.
    compiled : CompiledDecisions or None
        Makes decisions in compiled code; None where they need Python.
    """

    compiled: CompiledDecisions | None = None

    def __init__(self, settings: Settings, target: LogRatio) -> None:
        self.settings = settings
        self.target = target
        self.test = settings.final_test
        self.schedule = settings.schedule
        self.plan = trial_plan(target.sampling, settings)
        self.worst_case = None if self.plan is None else self.plan.worst_case()
        share = settings.audit
        self.audits = RandomAudits(affordable_share(target.sampling) if share == "auto" else share)
        self.reset()

    # ------------------------------------------------------------------ a chain

    def begin_chain(self, rng: np.random.Generator) -> None:
        """Begin a chain; audits must not change its random numbers."""
        self.audits.begin(rng.spawn(1)[0])

    def reset(self) -> None:
        """Forget what was learned."""
        self.state = DecisionState(self.test)
        if self.worst_case is not None:
            self._take(self.worst_case)

    def begin_draw(self, *, tuning: bool) -> None:
        """Set the strictness of the test for the next draw."""
        state, schedule = self.state, self.schedule
        if schedule is not None and (tuning or not self.settings.tightens):
            epsilon = schedule(state.n_draws)
            if epsilon != self.epsilon:
                state.test = StudentTTest(epsilon, self.settings.is_relative)
        state.n_draws += 1

    def stop_tuning(self) -> str:
        """End the tuning phase; return what was chosen, as a sentence."""
        if self.settings.tightens:
            self.state.test = self.test
        if self.plan is None:
            return ""
        design = self.plan.design(self.state.trial)
        self.state.trial = []
        if design is None:
            return "The decisions of the tuning phase are too few to design a test on."
        self._take(design)
        return f"Designed on decisions of the tuning phase: {design}."

    def _take(self, design: TestDesign) -> None:
        self.state.test = test_of(design, relative=self.settings.is_relative)
        self.state.batch_size = design.batch_size

    @property
    def sampling(self) -> Sampling:
        """Sampling of the target, with the first look that was chosen."""
        sampling, n_rows = self.target.sampling, self.state.batch_size
        return sampling if n_rows is None else sampling.with_first_look(n_rows)

    @property
    def epsilon(self) -> float:
        """Tail probability at which the current test stops; NaN if it has none."""
        return self.state.test.description.epsilon

    # ------------------------------------------------------------------ a decision

    def decide(
        self,
        proposed: NDArray,
        current: NDArray,
        log_ratio: float,
        rng: np.random.Generator,
        *,
        tuning: bool = False,
    ) -> Decision:
        r"""Accept or reject a proposal, and check some of the decisions.

        Parameters
        ----------
        proposed, current : arrays, shape (d,)
            The two points.
        log_ratio : float
            :math:`\log q(\theta | \theta') - \log q(\theta' | \theta)` of the proposal, nats.
        rng : numpy.random.Generator
            Generator of the chain.
        tuning : bool
            Whether the chain is tuning; decisions of that phase may be used to design a test.
        """
        target, state, test = self.target, self.state, self.state.test
        log_known = log_ratio + target.row_free_part(proposed, current)
        if not math.isfinite(log_known):
            return IMPOSSIBLE
        log_known += target.expansion(proposed, current)
        description = test.description
        has_verdicts = description.has_verdicts
        state.n_decisions += has_verdicts
        on_trial = tuning and self.plan is not None and self.plan.wants(state.n_decisions)
        if self.compiled is not None and not on_trial and math.isfinite(log_known):
            return self.compiled.decide(self, proposed, current, log_known, rng)
        bound = bound_between(description.largest_difference, proposed, current)
        survey = target.sampling.begin(proposed, current, rng, state.batch_size, bound)
        if not (has_verdicts and (on_trial or self.audits.wants())):
            return test.decide(survey, log_known, rng)
        decision = audited(test.decide(survey, log_known, rng), survey)
        if on_trial:
            distance = survey.total - decision.log_threshold
            state.trial.append(TrialDecision(distance, survey.deviations))
        return decision


_BUDGET = 0.05
"""Rows read by audits, as a share of the cost of decisions."""

_ROWS_OF_A_STEP = 1_000
"""Rows that can be evaluated in about the time that a step takes apart from reading rows."""


def affordable_share(sampling: Sampling) -> float:
    r"""Share of decisions whose audits cost about 5 % of the run.

    .. math:: \min\left(1,\ 0.05\,\frac{m + 1000}{N}\right)

    with :math:`m` rows at the first look, the fewest that a decision reads, and :math:`N`
    rows altogether, which an audit reads; the rest of a step takes about as long as 1,000
    rows. Thus the cost of a draw does not grow with the data, and few decisions are checked if
    there are many rows.

    Parameters
    ----------
    sampling : Sampling
        Source of the rows of decisions.

    Examples
    --------
    >>> from pymc_austerity.deciding.sampling import UniformSampling
    >>> affordable_share(UniformSampling(None, None, n_rows=50_000, batch_size=500))
    0.0015
    """
    strata = sampling.strata
    return min(1.0, _BUDGET * (strata.n_first + _ROWS_OF_A_STEP) / strata.n_rows)


class RandomAudits:
    """Audits of every decision with the same probability, using separate random numbers.

    Parameters
    ----------
    share : float
        The probability.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self.rng = np.random.default_rng(0)

    def begin(self, rng: np.random.Generator) -> None:
        """Begin a chain; `rng` is not the generator of the draws."""
        self.rng = rng

    def wants(self) -> bool:
        """Whether to check the next decision."""
        return self.share > 0.0 and self.rng.random() < self.share
