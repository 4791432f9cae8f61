"""Metropolis-Hastings whose decisions read only as many rows as they need."""

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    RaveledVars,
    StepMethodState,
    dataclass_state,
    make_shared_replacements,
)
from pymc_austerity.control_variates import Anchor
from pymc_austerity.deciding.checks import checked_choice, checked_proposal
from pymc_austerity.deciding.decider import Decisions, DecisionState
from pymc_austerity.deciding.promise import (
    name_of_test,
    promise_of,
    proposal_in_words,
    verdict_of,
)
from pymc_austerity.deciding.settings import USUAL_EPSILON, Settings, refuse_contradictions
from pymc_austerity.deciding.trial import trial_plan
from pymc_austerity.model import explain
from pymc_austerity.proposals import (
    Outcome,
    Proposal,
    ProposalFunction,
    ProposalMixture,
    RandomWalkProposal,
    try_proposal,
)
from pymc_austerity.sequential import BarkerTest, Schedule, StoppingRule
from pymc_austerity.setup.gradients import with_gradients
from pymc_austerity.setup.model_inputs import (
    checked_compile_kwargs,
    checked_model,
    checked_variables,
    raveled,
    refuse_positional,
)
from pymc_austerity.setup.normality import check_normality
from pymc_austerity.setup.posterior_mean import about_mean
from pymc_austerity.setup.setup_progress import stages
from pymc_austerity.setup.starts import anchor_point, layout_of, start_of_chain
from pymc_austerity.setup.support import is_unconstrained, refuse_unsuitable
from pymc_austerity.setup.target import PreparedModel, assemble, prepare
from pymc_austerity.step_methods.base import SubsamplingStep
from pymc_austerity.step_methods.interrupts import clean_interrupt
from pymc_austerity.step_methods.statistics import of_decision, of_draw

__all__ = ["AusterityMH"]

_log = logging.getLogger("pymc.austerity")


@dataclass_state
class AusterityState(StepMethodState):
    """All that changes while a chain runs, and what must not have changed when it goes on."""

    tune: bool
    at_start: bool
    proposal_state: Any
    decision_state: DecisionState
    test: str = field(metadata={"frozen": True})
    n_rows: int = field(metadata={"frozen": True})


class AusterityMH(SubsamplingStep):
    r"""Metropolis-Hastings with a sequential test on mini-batches for every decision.

    Takes the place of other step methods in ``pm.sample(step=AusterityMH())`` for models whose
    likelihood is a product over rows; the model stays as it is. A proposal :math:`\theta'` is
    accepted iff the mean of the log-likelihood differences
    :math:`l_i = \log p(x_i | \theta') - \log p(x_i | \theta)` exceeds a threshold; a t-test on a
    growing sample of rows finds out on which side it lies, and with all rows seen it is exact.

    Parameters
    ----------
    vars : sequence of variables or names, optional
        Free variables to sample; all by default. What is left over PyMC gives to NUTS or other
        step methods, on all the data.
    epsilon : float or callable
        Tail probability at which Student's t-test stops, in [0, 0.5]. It bounds the error of one
        look; the whole test errs more often. 0 is plain Metropolis-Hastings on all rows. While
        tuning the test begins looser and is tightened. A function from the number of a draw,
        counted from 0 with those of the tuning phase, says how strict each draw is.
    max_error : float, optional
        Largest share of wrong decisions, on average over all of them, above 0 and below 0.5,
        instead of `epsilon`; single close ones may err more often. The test for it is the one for
        the worst case while tuning, then the cheapest one for decisions like those of the tuning
        phase.
    test : {"auto"}, StoppingRule, BarkerTest or None
        Another test, instead of `epsilon`: see `pymc_austerity.sequential`. None accepts every
        proposal, for those that follow gradients (`LangevinProposal`).
    batch_size : int, optional
        Rows of the first look at most; strata want ten each, and below 40 there are none. With
        uniform samples, 500 by default, rows of every look.
    likelihood : sequence of str, optional
        Names of the observed variables or potentials to subsample. By default the observed
        variables with the most rows. A likelihood written as ``pm.Potential`` must be named.
    axis : int
        Axis of the rows in their log-likelihood.
    rows : {"windows", "fresh"}
        Read consecutive rows of a random order from a random start (fast), or draw every row
        anew at random as in the paper. Both have the same error rate. With "fresh" all samples
        are uniform.
    control_variates : {"auto", 1, 2, None}
        Subtract from each difference its Taylor expansion of this order about the posterior
        mode, whose sum over all rows is known. "auto" is the second order where the model allows
        for it, else none; the summary says which.
    strata : {"auto", None}
        Sample rows by their influence, measured on pilot pairs of points, or uniformly (None, and
        always without control variates).
    anchor : dict or InferenceData, optional
        Where to expand, instead of at the mode: values of the free variables, or draws of an
        earlier run whose mean is taken.
    proposal : Proposal or callable, optional
        Where to go next, such as a `CrankNicolsonProposal` or a `LangevinProposal`; by default
        ``ProposalMixture()`` with control variates and ``RandomWalkProposal()`` without.
        A function ``(point, rng) -> (new point, log-ratio)`` plugs in, with
        ``log q(point | new) - log q(new | point)`` as log-ratio; it is tried once at the start.
    audit : {"auto"} or float
        Which decisions are checked on all rows after they were taken, for the statistics only: as
        many as 5 % of the sampling time pays for, which are few where decisions are cheap, or a
        share of them in [0, 1]: 0.1 for a run that is to be believed.
    tune : bool
        Adapt the proposal in the tuning phase.
    steps_per_draw : int
        Transitions between recorded draws. Where a transition costs little, PyMC's own work on a
        draw is most of the time; more of them make better draws in the same time.
    model : pymc.Model, optional
        By default the model on the context stack.
    rng : int or numpy.random.Generator, optional
        Source of the order in which the rows are stored, and of draws outside of ``pm.sample``,
        which brings its own. By default a fixed order.
    initial_point : dict, optional
        Point at which shapes are read and the model is verified.
    blocked : bool
        Update all variables together; else one step method for each variable, on shared rows.
    compile_kwargs : dict, optional
        Passed on to ``pymc.compile``; the mode is NUMBA by default.

    Raises
    ------
    NotRowwiseError
        The likelihood of one row needs other rows.
    DataError
        No observed data, or data or log-density that are not finite at the start.
    SettingError, SettingTypeError
        An argument cannot be used, or a variable has one entry per row.

    Warns
    -----
    AusterityWarning
        The means of first looks are not normal enough for the test.

    Notes
    -----
    Statistics of every draw, in ``sample_stats``, each of shape (chain, draw). With several steps
    per draw integers are sums, booleans hold for all the steps (``audited``: for any), the others
    are means:

    ================== ======= ====================================================================
    name               type    meaning
    ================== ======= ====================================================================
    accepted           float64 1 if the proposal was accepted, else 0
    n_rows_used        int64   rows whose likelihood was evaluated for the decision
    data_fraction      float64 the same as a share of all rows
    n_looks            int64   looks of the sequential test; 0 if the prior alone decided
    decision_error     float64 tail probability at the decision; 0 when it is exact
    standardized_mean  float64 estimated distance of the mean from the threshold (mu_std); NaN where
                               it is not defined
    used_all_rows      bool    whether the decision is exact because all rows were seen
    audited            bool    whether the decision was checked on all rows
    audit_agrees       bool    whether all rows agreed (True where not audited)
    n_audited          int64   decisions checked on all rows: 1 or 0 with one step per draw
    n_wrong            int64   those of them that all rows contradict
    scaling            float64 size of the proposal
    test_epsilon       float64 tail probability at which the test stopped; NaN if it has none
    ================== ======= ====================================================================

    Before the run the t statistic of first looks at real differences is compared with Student's t;
    the result is in the attribute ``normality``, and a warning names the remedy where it fails.

    Constants of the run (``n_rows``, ``epsilon``, ``batch_size``, ``setup_seconds``, ...) are
    attributes of ``sample_stats``.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML. arXiv:1304.5299.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity import AusterityMH
    >>> y = np.random.default_rng(1).normal(2.0, 1.0, size=5_000)
    >>> with pm.Model():
    ...     mu = pm.Normal("mu", 0.0, 10.0)
    ...     _ = pm.Normal("y", mu, 1.0, observed=y)
    ...     step = AusterityMH(epsilon=0.05, batch_size=100)
    ...     idata = pm.sample(
    ...         draws=500, step=step, chains=2, cores=1, random_seed=1, progressbar=False
    ...     )
    >>> bool(abs(idata.posterior["mu"].mean() - y.mean()) < 0.01)
    True
    """

    name = "austerity_mh"
    _state_class = AusterityState

    @clean_interrupt
    def __new__(cls, vars: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Check the variables before PyMC does, and share one copy of the rows among blocks."""
        refuse_positional(cls, args)
        refuse_contradictions(kwargs)
        checked_choice("blocked", kwargs.get("blocked", True), (True, False))
        model = checked_model(kwargs.get("model"))
        variables = checked_variables(vars, model)
        if kwargs.get("blocked") is False and len(variables) > 1:
            names = ("likelihood", "axis", "rng", "initial_point")
            settings = {name: kwargs[name] for name in names if name in kwargs}
            kwargs["_prepared"] = prepare(model, **settings)
        return super().__new__(cls, variables, **kwargs)

    @clean_interrupt
    def __init__(
        self,
        vars: Sequence | None = None,
        *,
        epsilon: float | Schedule = USUAL_EPSILON,
        max_error: float | None = None,
        test: StoppingRule | BarkerTest | Literal["auto"] | None = "auto",
        batch_size: int | None = None,
        likelihood: Sequence[str] | None = None,
        axis: int = 0,
        rows: Literal["windows", "fresh"] = "windows",
        control_variates: Literal["auto", 1, 2] | None = "auto",
        strata: Literal["auto"] | None = "auto",
        anchor: Any = None,
        proposal: Proposal[Any] | ProposalFunction | None = None,
        audit: float | Literal["auto"] = "auto",
        tune: bool = True,
        steps_per_draw: int = 1,
        model: pm.Model | None = None,
        rng: Any = None,
        initial_point: dict[str, NDArray] | None = None,
        blocked: bool = True,
        compile_kwargs: dict[str, Any] | None = None,
        _prepared: PreparedModel | None = None,
    ) -> None:
        self.settings = Settings(
            epsilon=epsilon,
            max_error=max_error,
            test=test,
            batch_size=batch_size,
            rows=rows,
            control_variates=control_variates,
            strata=strata,
            audit=audit,
            steps_per_draw=steps_per_draw,
        )
        own_proposal = checked_proposal(proposal)
        checked_choice("tune", tune, (True, False))
        self.adapts = tune and self.settings.test is not None  # else nothing is learnt
        compile_kwargs = checked_compile_kwargs(compile_kwargs)
        model = checked_model(model)
        variables = checked_variables(vars, model)
        refuse_unsuitable(variables, model, own_proposal)
        self.settings.refuse_uncorrected(own_proposal)
        started = time.perf_counter()
        with stages() as say:
            prepared = _prepared or prepare(
                model,
                likelihood=likelihood,
                axis=axis,
                rng=rng,
                initial_point=initial_point,
                say=say,
            )
            self.start = raveled(prepared.point, variables)
            self.layout = layout_of(variables, model, prepared.point)
            self.settings.try_bound(self.start)
            shared = make_shared_replacements(prepared.point, variables, model)
            machinery = assemble(
                prepared,
                variables,
                shared,
                self.settings,
                anchor=anchor_point(anchor, variables, model),
                unconstrained=is_unconstrained(variables, model, own_proposal),
                compile_kwargs=compile_kwargs,
                say=say,
            )
            self.proposal: Proposal[Any] = with_gradients(
                own_proposal
                or (RandomWalkProposal() if machinery.anchor is None else ProposalMixture()),
                prepared,
                machinery,
                variables,
                shared,
                self.settings,
                compile_kwargs,
            )
            try_proposal(self.proposal, self.layout, machinery.approximation, self.start)
            if isinstance(self.proposal, ProposalMixture):
                say("finding the posterior mean")
                machinery = about_mean(
                    machinery, self.proposal, self.layout, self.start, prepared.rng
                )
        self._begin(variables, shared, prepared.likelihood, blocked=blocked, rng=rng)
        self.machinery = machinery
        plan = trial_plan(machinery.sampling, self.settings, self.n_rows)
        self.decisions = Decisions(self.settings, plan)
        self.proposal_state: Any = None
        self.normality = check_normality(
            machinery, self.proposal, self.layout, self.start, self.settings, rng=prepared.rng
        )
        self._finish(started, explain(prepared.likelihood, variables))

    @property
    def epsilon(self) -> float:
        """Tail probability at which the test stops in the end; NaN if there is not one for all."""
        settings = self.settings
        varies = settings.max_error is not None or callable(settings.epsilon)
        return settings.tail if settings.is_sequential and not varies else math.nan

    @property
    def test(self) -> str:
        """Which test decides, as a word for those who compare states."""
        return f"{self.decisions.rule!r}, {self.settings.max_error=}"

    @property
    def anchor(self) -> Anchor | None:
        """Where the row differences are expanded; None if they are not."""
        return self.machinery.anchor

    @property
    def constants(self) -> dict[str, Any]:
        """What is constant over the run, as it is written to the attributes of sample_stats."""
        settings, plan = self.settings, self.decisions.plan
        constants = {
            "sampler": type(self).__name__,
            "n_rows": self.n_rows,
            "epsilon": self.epsilon,
            "max_error": math.nan if settings.max_error is None else settings.max_error,
            "test": name_of_test(settings, plan),
            "proposal": type(self.proposal).__name__,
            "proposal_rows": getattr(self.proposal, "n_rows_read", 0),
            "audit": settings.audit if settings.audit != "auto" else math.nan,
            "steps_per_draw": settings.steps_per_draw,
            "subsampled": ", ".join(self.subsampled),
            "setup_seconds": round(self.setup_seconds, 3),
            "control_variates": 0 if self.anchor is None else self.anchor.order,
            "normality": verdict_of(self.normality),
            **self.machinery.sampling.constants,
        }
        if plan is not None and plan.chooses_batch_size:
            constants["batch_size"] = math.nan
        return constants

    # ------------------------------------------------------------------ one step

    def astep(self, apoint: RaveledVars) -> tuple[RaveledVars, list[dict[str, Any]]]:
        """Propose, decide, and record what it took, as often as there are steps in a draw."""
        current = apoint.data
        if self.at_start:
            self.at_start = False
            if np.array_equal(current, self.start):  # else the user chose where it starts
                current = start_of_chain(
                    self.machinery, self.layout, current, self.rng, proposal=self.proposal
                )
        self.decisions.next_draw()
        decisions = []
        for _ in range(self.settings.steps_per_draw):
            current, statistics = self._transition(current)
            decisions.append(statistics)
        return RaveledVars(current, apoint.point_map_info), [of_draw(decisions)]

    def _transition(self, current: NDArray) -> tuple[NDArray, dict[str, Any]]:
        proposed, log_ratio = self.proposal.propose(self.proposal_state, current, self.rng)
        decision = self.machinery.decide(self.decisions, proposed, current, log_ratio, self.rng)
        following = proposed if decision.accept else current
        scaling = self.proposal.current_scaling(self.proposal_state)
        if self.tune and self.adapts:
            outcome = Outcome(current, following, decision.accept, decision.n_rows_used)
            self.proposal_state = self.proposal.tune(self.proposal_state, outcome)
        epsilon = self.decisions.epsilon
        return following, of_decision(decision, self.n_rows, scaling=scaling, epsilon=epsilon)

    # ------------------------------------------------------------------ a chain

    def set_rng(self, rng: Any) -> None:
        """Begin a chain."""
        super().set_rng(rng)
        self.decisions.begin(self.rng)

    def reset_tuning(self) -> None:
        """Forget what was learnt."""
        self.tune = True
        self.decisions.reset()
        self.proposal_state = self.proposal.init(self.layout, self.machinery.approximation)

    def stop_tuning(self) -> None:
        """Freeze the proposal and the test."""
        if self.tune and self.adapts:
            self.proposal_state = self.proposal.freeze(self.proposal_state)
        self.tune = False
        designed = self.decisions.stop_tuning()
        if designed:
            _log.info(designed)

    @property
    def decision_state(self) -> DecisionState:
        """What the decisions know that changes while a chain runs."""
        return self.decisions.state

    @decision_state.setter
    def decision_state(self, state: DecisionState) -> None:
        self.decisions.state = state

    # ------------------------------------------------------------------ words

    @property
    def summary(self) -> str:
        """What was built, in one line."""
        return (
            f"AusterityMH on {', '.join(self.subsampled)}: {self.machinery.summary}; "
            f"{promise_of(self.decisions, self.machinery.sampling, self.normality)}; "
            f"{proposal_in_words(self.proposal, self.n_rows)} "
            f"(set up in {self.setup_seconds:.1f} s)."
        )
