"""One step of Metropolis-Hastings, whatever the target, the proposal and the test."""

import copy
import logging
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import StepMethodState, dataclass_state
from pymc_austerity.control_variates import Anchor
from pymc_austerity.deciding.decider import Decider, DecisionState
from pymc_austerity.deciding.exact import AnyDecider, ExactState
from pymc_austerity.deciding.sampling import AT_ONCE
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.design import NormalityCheck
from pymc_austerity.proposals import Proposal, ProposalMixture
from pymc_austerity.setup.after_tuning import N_QUESTIONS, look_again
from pymc_austerity.setup.earlier_run import Learnt
from pymc_austerity.setup.embedding import Embedding, SomeVariables
from pymc_austerity.setup.target import Target
from pymc_austerity.step_methods.base import Phase, SubsamplingStep
from pymc_austerity.step_methods.draws_ahead import (
    DrawBuffer,
    draws_ahead,
    is_independent,
    why_python,
)
from pymc_austerity.step_methods.interrupts import stop_if_interrupted
from pymc_austerity.step_methods.statistics import of_decision
from pymc_austerity.step_methods.summary import Words, constants_of, words_of

_log = logging.getLogger("pymc.austerity")

_TRIES_TO_LEAVE = 8
"""Proposals from a start, one of which has to be accepted. A random walk that accepts a third fails
once in 25 starts, and moves that leave a point once in 150 tries succeed as rarely."""

_IN_BLOCKS = "in compiled code, some ahead of the draw that is recorded"


@dataclass_state
class MetropolisState(StepMethodState):
    """Everything that changes while a chain runs, and fields that must match on resume."""

    phase: Phase
    proposal_state: Any
    decision_state: DecisionState | ExactState
    test: str = field(metadata={"frozen": True})
    n_rows: int = field(metadata={"frozen": True})
    data_fingerprint: str = field(metadata={"frozen": True})


class MetropolisStep(SubsamplingStep):
    """Propose, decide, record.

    Attributes
    ----------
    settings : Settings
        Settings of the user.
    target : Target
        The posterior, in the form that decisions use.
    embedding : Embedding
        Relation between the points of this step method and the points of decisions.
    decider : Decider or ExactDecider
        Accepts or rejects proposals.
    proposal : Proposal
        Generates new points.
    normality : NormalityCheck or None
        Result of the check of the test's assumption before the run.
    adapts : bool
        Whether the proposal learns in the tuning phase.
    learnt : Learnt or None
        Initial state of the chains, from an earlier run.
    is_to_look_again : bool
        Whether tuning has ended and there has been no draw since.
    python_needed : str
        Why transitions after tuning are not made in compiled code; empty if they are.
    """

    _state_class = MetropolisState
    settings: Settings
    target: Target
    embedding: Embedding
    decider: AnyDecider
    proposal: Proposal[Any]
    normality: NormalityCheck | None
    adapts: bool
    learnt: Learnt | None
    is_to_look_again: bool
    proposal_state: Any
    python_needed: str
    _ahead: DrawBuffer | None = None

    # ------------------------------------------------------------------ one step

    def step(self, point: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Take a step, after tuning in compiled code if possible."""
        if self.python_needed or self.is_to_look_again or not self._is_settled:
            self.embedding.look(point)
            return super().step(point)
        stop_if_interrupted()
        if self._ahead is None:
            what = self.target, self.decider, self.proposal, self.proposal_state
            self._ahead = draws_ahead(*what, self.steps_per_draw)
        made = self._ahead.step(point, self.rng, self.decider.audits.rng)
        if made is None:  # a row changed by more than its bound
            self._give_back()
            return super().step(point)
        return made

    @property
    def _is_settled(self) -> bool:
        """Whether transitions depend on nothing that may still change."""
        if is_independent(self.target, self.proposal):
            return not self.phase.is_start
        return not (self.phase.is_start or self.phase.is_tuning)

    def _give_back(self) -> None:
        """Return to the last draw that PyMC has, with all state of the chain."""
        if self._ahead is None:
            return
        given, self._ahead = self._ahead.give_back(), None
        state = self.decider.state
        if isinstance(state, DecisionState):
            state.n_draws += given.n_draws
            if state.test.description.has_verdicts:
                state.n_decisions += given.n_decisions
        if given.n_draws and isinstance(self.proposal, ProposalMixture):
            self.proposal_state = self.proposal_state._replace(chosen=given.component)

    def _start(self) -> NDArray:
        if self.learnt is None:
            is_left = partial(self._is_left, rng=self._separate_rng())
            return self.embedding.start_of_chain(self.rng, self.proposal, is_left)
        return self.learnt.start(self.rng).astype(self.embedding.start.dtype)

    def _row_free_part(self, point: NDArray) -> float:
        around = self.embedding
        start, own, _ = around.question(point, around.start, 0.0)
        return self.target.row_free_part(start, own)

    def _begin_draw(self, current: NDArray) -> None:
        if self.is_to_look_again:
            self._look_again(current)
        self.decider.begin_draw(tuning=self.tune)

    def _is_left(self, start: NDArray, rng: np.random.Generator) -> bool:
        """Whether one of a few proposals from a start is accepted, other than a single step."""
        how = self.decider, self.proposal, self.proposal_state, start, rng
        tries = (
            self.embedding.transition(*how, tuning=False, adapts=False)
            for _ in range(_TRIES_TO_LEAVE)
        )
        return any(
            each.decision.accept and not getattr(each.state, "is_single", False) for each in tries
        )

    def _separate_rng(self) -> np.random.Generator:
        """Random numbers that those of the chain do not depend on."""
        return np.random.default_rng(copy.deepcopy(self.rng).integers(2**63))

    def _transition(self, current: NDArray) -> tuple[NDArray, dict[str, Any]]:
        how = self.decider, self.proposal, self.proposal_state, current, self.rng
        made = self.embedding.transition(*how, tuning=self.tune, adapts=self.adapts)
        self.proposal_state = made.state
        return made.point, of_decision(
            made.decision,
            self.n_rows,
            scaling=made.scaling,
            epsilon=self.decider.epsilon,
            n_kept=self.target.n_kept,
        )

    # ------------------------------------------------------------------ a chain

    def set_rng(self, rng: Any) -> None:
        """Begin a chain."""
        self._ahead = None
        super().set_rng(rng)
        self.decider.begin_chain(self.rng)

    def reset_tuning(self) -> None:
        """Forget what was learned, except from an earlier run."""
        self._give_back()
        self.tune, self.is_to_look_again = True, False
        self.decider.reset()
        around = self.embedding
        if self.learnt is None:
            self.proposal_state = self.proposal.init(around.layout, around.approximation)
        else:
            self.proposal_state = self.learnt.proposal_state
            assert self.learnt.decision_state is not None
            self.decision_state = replace(self.learnt.decision_state)

    def stop_tuning(self) -> None:
        """Freeze the proposal and the test."""
        if not self.tune:
            return
        self.tune = False
        if self.adapts:
            self.proposal_state = self.proposal.freeze(self.proposal_state)
        designed = self.decider.stop_tuning()
        is_open = isinstance(self.decider, Decider) and not self.decider.sampling.is_exact
        self.is_to_look_again = is_open
        if designed:
            _log.info(designed)

    def _look_again(self, current: NDArray) -> None:
        """Try the test at the current point, with separate random numbers."""
        self.is_to_look_again = False
        rng = self._separate_rng()
        around, state = self.embedding, self.proposal_state
        seen, questions = around.centered(current), []
        for _ in range(N_QUESTIONS):
            moved, log_ratio, _ = self.proposal.propose(state, seen, rng)
            questions.append(around.question(around.back(moved), current, log_ratio))
        assert isinstance(self.decider, Decider)
        changed = look_again(self.target, self.decider, questions, rng)
        if changed:
            _log.info(changed)

    @property
    def sampling_state(self) -> Any:
        """Everything that changes while a chain runs."""
        self._give_back()
        return super().sampling_state

    @sampling_state.setter
    def sampling_state(self, state: Any) -> None:
        self._ahead = None
        SubsamplingStep.sampling_state.fset(self, state)

    def __getstate__(self) -> dict[str, Any]:
        self._give_back()
        return super().__getstate__()

    @property
    def decision_state(self) -> DecisionState | ExactState:
        """State of the decider."""
        return self.decider.state

    @decision_state.setter
    def decision_state(self, state: DecisionState | ExactState) -> None:
        self.decider.state = state  # type: ignore[assignment]

    # ------------------------------------------------------------------ words

    @property
    def test(self) -> str:
        """Which test decides: identifier, for comparing states."""
        return f"{self.decider.test!r}, {self.settings.max_error=}"

    @property
    def anchor(self) -> Anchor | None:
        """Point about which the row differences are expanded; None if they are not."""
        return self.target.anchor

    def _why_python(self) -> str:
        if self.shared or isinstance(self.embedding, SomeVariables):
            return "other step methods move other variables"
        if self.coordinates.names:
            return "products are moved instead of their factors"
        return why_python(self.target, self.decider, self.proposal)

    @property
    def constants(self) -> dict[str, Any]:
        """Constants of the run, as they are written to the attributes of ``sample_stats``."""
        return {
            **self._common_constants,
            **constants_of(self.target, self.decider, self.proposal, self.normality),
            "transitions": "Python" if self.python_needed else "compiled",
        }

    @property
    def _words(self) -> Words:
        return words_of(self.target, self.decider, self.proposal, self.normality)

    def explain(self) -> str:
        """What is subsampled, what is evaluated in full, and why, in plain language."""
        when, how = "after tuning ", _IN_BLOCKS
        if self.python_needed:
            how = f"by Python, because {self.python_needed}"
            if self.decider.compiled is not None:
                how += "; decisions are made in compiled code"
        elif is_independent(self.target, self.proposal):
            when, how = "", f"{AT_ONCE} at a time, some ahead of the draw that is recorded"
        return f"{super().explain()}\nTransitions {when}are made {how}."
