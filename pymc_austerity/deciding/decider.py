"""Who takes the decisions of a chain: which test, how strict at which draw, what is checked."""

import math
import time
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.audits import Audits, BudgetedAudits, RandomAudits
from pymc_austerity.deciding.sampling import Sampling
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.deciding.trial import TrialDecision, TrialPlan
from pymc_austerity.design import TestDesign
from pymc_austerity.sequential import (
    BarkerTest,
    Concentration,
    Decision,
    StoppingRule,
    StudentTTest,
    Survey,
    WangTsiatisTest,
    decide,
)

__all__ = ["DecisionState", "Decisions", "rule_of"]

Test: TypeAlias = StoppingRule | BarkerTest

_ACCEPTED = Decision(True, 0, 0, 0.0, math.nan, False)
"""Of a chain that is not corrected."""

_BUDGET = 0.05
"""Share of the sampling time that is spent on checking decisions, where the user names none."""


@dataclass
class DecisionState:
    """What changes while a chain runs.

    Attributes
    ----------
    rule : StoppingRule, BarkerTest or None
        The test of the present draw.
    n_draws, n_decisions : int
        Draws begun and decisions taken so far.
    tuning : bool
        Whether the tuning phase lasts.
    batch_size : int or None
        Rows of the first look, where a design chose them.
    trial : list of TrialDecision
        Decisions of the tuning phase, for the design.
    """

    rule: Test | None
    n_draws: int = 0
    n_decisions: int = 0
    tuning: bool = True
    batch_size: int | None = None
    trial: list[TrialDecision] = field(default_factory=list)


def rule_of(design: TestDesign) -> StudentTTest | WangTsiatisTest:
    """The stopping rule of a design."""
    if design.alpha == 0.5:
        return StudentTTest(design.epsilon)
    return WangTsiatisTest(design.epsilon, design.alpha)


class Decisions:
    """Takes the decisions of one chain after the other.

    Parameters
    ----------
    settings : Settings
        Test, schedule and audits.
    plan : TrialPlan, optional
        Designs the test, where the user wants an error and names no test.
    """

    def __init__(self, settings: Settings, plan: TrialPlan | None = None) -> None:
        self.rule = settings.rule
        self.schedule = settings.schedule
        self.tightens = settings.tightens
        self.plan = plan
        self.worst_case = None if plan is None else plan.worst_case()
        self.audits: Audits = (
            BudgetedAudits(_BUDGET) if settings.audit == "auto" else RandomAudits(settings.audit)
        )
        self.reset()

    # ------------------------------------------------------------------ a chain

    def begin(self, rng: np.random.Generator) -> None:
        """Begin a chain; what is checked must not change its random numbers."""
        self.audits.begin(rng.spawn(1)[0])

    def reset(self) -> None:
        """Forget what was learnt."""
        self.state = DecisionState(self.rule)
        if self.worst_case is not None:
            self._take(self.worst_case)

    def next_draw(self) -> None:
        """Make the test as strict as it is to be at the next draw."""
        state, schedule = self.state, self.schedule
        if schedule is not None and (state.tuning or not self.tightens):
            epsilon = schedule(state.n_draws)
            if epsilon != self.epsilon:
                state.rule = StudentTTest(epsilon)
        state.n_draws += 1

    def stop_tuning(self) -> str:
        """End the tuning phase; what was chosen then, as a sentence."""
        if not self.state.tuning:
            return ""
        self.state.tuning = False
        self.audits.restart()
        if self.tightens:
            self.state.rule = self.rule
        if self.plan is None:
            return ""
        design = self.plan.design(self.state.trial)
        self.state.trial = []
        if design is None:
            return "The decisions of the tuning phase are too few to design a test on."
        self._take(design)
        return f"Designed on decisions of the tuning phase: {design}."

    def _take(self, design: TestDesign) -> None:
        self.state.rule, self.state.batch_size = rule_of(design), design.batch_size

    @property
    def epsilon(self) -> float:
        """Tail probability at which the present test stops; NaN if it has none."""
        return getattr(self.state.rule, "epsilon", math.nan)

    # ------------------------------------------------------------------ a decision

    def metropolis(
        self,
        sampling: Sampling,
        proposed: NDArray,
        current: NDArray,
        log_known_ratio: float,
        rng: np.random.Generator,
    ) -> Decision:
        r"""Accept or reject a proposal.

        Parameters
        ----------
        sampling : Sampling
            Gives samples of the row differences.
        proposed, current : arrays, shape (d,)
            The two points.
        log_known_ratio : float
            Log of the Metropolis-Hastings ratio but for what is sampled, nats.
        rng : numpy.random.Generator
            Of the chain.
        """
        rule = self.state.rule
        if rule is None:
            return _ACCEPTED
        if isinstance(rule, BarkerTest):
            survey = sampling.begin(proposed, current, rng, self.state.batch_size)
            return rule.decide(survey, -log_known_ratio, rng=rng)
        uniform = rng.random()
        log_uniform = math.log(uniform) if uniform > 0.0 else -math.inf
        survey = sampling.begin(proposed, current, rng, self.state.batch_size)
        if isinstance(rule, Concentration):
            rule = rule.between(proposed, current)
        return self.exceeds(survey, log_uniform - log_known_ratio, rule)

    def exceeds(
        self, survey: Survey, log_threshold: float, rule: StoppingRule | None = None
    ) -> Decision:
        """Decide whether a sum exceeds a threshold, and check some of the decisions."""
        state = self.state
        rule = rule or cast(StoppingRule, state.rule)
        state.n_decisions += 1
        if state.tuning and self.plan is not None and self.plan.wants(state.n_decisions):
            decision = decide(survey, log_threshold, rule=rule, audit=True)
            distance = survey.total - log_threshold
            state.trial.append(TrialDecision(distance, survey.deviations))
            return decision
        if not self.audits.wants(state.tuning):
            return decide(survey, log_threshold, rule=rule)
        started = time.perf_counter()
        decision = decide(survey, log_threshold, rule=rule, audit=True)
        self.audits.took(time.perf_counter() - started)
        return decision
