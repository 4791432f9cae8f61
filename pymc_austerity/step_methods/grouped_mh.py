"""Exact Metropolis within Gibbs for models with groups."""

import math
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal, Never, Unpack

import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import StepMethodState, dataclass_state
from pymc_austerity.arguments import checked_fraction, checked_tail
from pymc_austerity.compiled import SequentialSettings
from pymc_austerity.deciding.exact import rows_named
from pymc_austerity.errors import SettingError
from pymc_austerity.levels import SweepState, pilot_sweeps
from pymc_austerity.setup.earlier_run import Learnt, earlier_run, learn_sweeps
from pymc_austerity.setup.levels.anchor import NoGroupsError
from pymc_austerity.setup.levels.build import (
    MOST_AT_ONCE,
    BuiltGroups,
    GroupedTarget,
    NoFactorError,
    OthersAreBetterError,
    build_groups,
)
from pymc_austerity.setup.prepared import PreparedModel
from pymc_austerity.setup.setup_progress import Say, Stage
from pymc_austerity.step_methods.base import Phase, SubsamplingStep
from pymc_austerity.step_methods.configured import Configured
from pymc_austerity.step_methods.request import OptionFields, Options, Request
from pymc_austerity.step_methods.statistics import (
    cost_in_words,
    in_words,
    of_sweep,
    statistics_of_blocks,
)
from pymc_austerity.step_methods.summary import Words


class GroupedMH(Configured, ABC):
    r"""Metropolis-Hastings in which every level of a factor has its own decision.

    For models with groups, such as ``a[group] + x @ b`` where the prior of ``a`` has its own mean
    and scale; a factor has three levels or more. `AusterityMH()` tries only this step method if a
    factor has 30 levels or more, with 200 entries in total or several each, in the non-centered
    form, with one row each, or in a model of more than 300 entries; otherwise, it also tries moves
    of everything at once, first where there are 500 rows or more for each entry. With few rows, it
    is NUTS. Other settings may exclude this; with an `epsilon`, the model must have more than 300
    entries.
    A step is a sweep:

    - entries on which no row depends (means and scales of priors) move given the levels, which
      reads no rows, and then together with the levels, which makes them nearly as independent as if
      the levels were integrated out;
    - all levels of a factor move at once. Given the rest they are independent, so each has a
      proposal from its normal approximation, the exact prior, and its own exact decision;
    - the entries on which all rows depend move given the levels, then jointly with the levels of
      all factors, in the directions in which these depend on each other most;
    - exchange moves keep what the rows determine, such as the sum of an intercept and the levels of
      a factor, or the product of two levels: one part rises, the other falls, and only the priors
      matter.

    Decisions are exact unless `epsilon` permits sequential tests. Where rows have bounds, decisions
    read a few rows of each level, drawn at rates that bound what the rows can change. Without
    bounds, they read all rows of a level or, with an `epsilon`, some of them by a sequential test.

    Parameters
    ----------
    vars : sequence of variables or names, optional
        All free variables, which is the default.
    epsilon : float
        For rows without bounds: largest tail probability at which a t-test on some of the rows
        stops, in [0, 0.5]. Decisions about levels of at least 400 rows, and about all rows, are
        then sequential, and can be wrong. At 0, the default, all rows are read and decisions are
        exact. Where rows have bounds, decisions are exact for every `epsilon`.
    audit : float
        Share of the sequential decisions that are checked on all of their rows, in [0, 1]; see
        `pymc_austerity.diagnostics.audit`. If decisions are exact, there is nothing to check.
    likelihood, data, rng, model
        As for `AusterityMH`.
    resume : InferenceData or DataTree, optional
        An earlier run of the model, as for `AusterityMH`: moves are tuned by sweeps from one of its
        last draws, and chains start at these.
    options : Options, optional
        `axis`, `steps_per_draw`, `tune`, `initial_point`, `compile_kwargs` and `setup_folder` have
        a meaning here; a step is a sweep over all blocks. Each of them is also taken by name.
    **more
        Fields of `Options`.

    Raises
    ------
    SettingError, SettingTypeError
        An argument cannot be used, or the model has no groups of this kind.
    NotRowwiseError, DataError
        As for `AusterityMH`.

    Notes
    -----
    In addition to the statistics of `AusterityMH`, for whole sweeps, ``sample_stats`` contains for
    each block the share of its proposals that were accepted and the rows that it read:
    ``accepted_common`` and ``n_rows_common``, and so on. The attribute ``blocks`` lists the names.

    References
    ----------
    Zhang, R., Cooper, A. F. and De Sa, C. (2020). Asymptotically optimal exact minibatch
    Metropolis-Hastings. NeurIPS.
    Papaspiliopoulos, O., Roberts, G. O. and Sköld, M. (2007). A general framework for the
    parametrization of hierarchical models. Statistical Science 22(1), 59-73.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity import GroupedMH
    >>> rng = np.random.default_rng(1)
    >>> group = rng.integers(40, size=4_000)
    >>> y = rng.poisson(np.exp(rng.normal(1.0, 0.5, size=40))[group])
    >>> with pm.Model():
    ...     mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
    ...     a = pm.Normal("a", mu, tau, shape=40)
    ...     _ = pm.Poisson("y", pm.math.exp(a[group]), observed=y)
    ...     step = GroupedMH()
    ...     idata = pm.sample(
    ...         draws=300, tune=300, step=step, chains=2, cores=1, random_seed=1, progressbar=False
    ...     )
    >>> bool(0.3 < idata.posterior["tau"].mean() < 0.7)
    True
    >>> idata.sample_stats.attrs["blocks"]
    'untouched, a'
    """

    takes = frozenset(
        {"axis", "tune", "steps_per_draw", "initial_point", "compile_kwargs", "setup_folder"}
    )

    def __new__(
        cls,
        vars: Any = None,
        *args: Never,
        epsilon: float = 0.0,
        audit: float = 0.0,
        likelihood: Sequence[str] | Literal["auto"] = "auto",
        data: Mapping[str, Any] | None = None,
        resume: Any = None,
        rng: Any = None,
        model: pm.Model | None = None,
        options: Options | None = None,
        **more: Unpack[OptionFields],
    ) -> Any:
        """Hold the settings, and set up the step method inside a model."""
        epsilon = checked_tail("epsilon", epsilon)
        audit = checked_fraction("audit", audit, 1.0, "the share of decisions to check")
        return cls._made(locals())

    def _set_up(self, variables: list, model: pm.Model, say: Stage) -> Any:
        return GroupedStep(variables, request=self._request, model=model, say=say)


@dataclass_state
class GroupedState(StepMethodState):
    """Everything that changes while a chain runs, and fields that must match on resume."""

    phase: Phase
    sweep_state: SweepState
    n_rows: int = field(metadata={"frozen": True})
    data_fingerprint: str = field(metadata={"frozen": True})


_TESTS = {
    False: {
        "test": "exact",
        "acceptance_rule": "poisson",
        "assumption": "bounds",
        "sampling": "PoissonSampling",
    },
    True: {
        "test": "StudentTTest",
        "acceptance_rule": "metropolis",
        "assumption": "normal means",
        "sampling": "UniformSampling",
    },
}
"""Constants of runs without and with sequential tests."""


@GroupedMH.register
class GroupedStep(SubsamplingStep, shown_as="GroupedMH"):
    """What `GroupedMH` is for a model.

    Parameters
    ----------
    vars : sequence of variables
        Value variables.
    request : Request
        What the user asks.
    model : pymc.Model
        The model.
    say : callable
        Shows the stage of set-up.
    built : BuiltGroups, optional
        The moves, if `AusterityMH` has built them.
    """

    name = "grouped_mh"
    _state_class = GroupedState
    target: GroupedTarget
    sweep_state: SweepState
    learnt: Learnt | None

    def __init__(
        self,
        vars: Sequence,
        *,
        request: Request,
        model: pm.Model,
        say: Say,
        built: BuiltGroups | None = None,
    ) -> None:
        tests = SequentialSettings(_number(request.epsilon), _number(request.audit))
        options = request.options
        self.steps_per_draw = request.steps_per_draw
        self.adapts, self._is_audit_given = options.tune, tests.audit > 0.0
        earlier = earlier_run(request.resume, list(vars), list(vars), model)
        if built is None:
            try:
                compile_kwargs = dict(options.compile_kwargs or {})
                built = build_groups(request.prepared(model, say), vars, compile_kwargs, say)
            except NoGroupsError as error:
                raise SettingError(
                    f"GroupedMH has no moves for this model because {error}: use AusterityMH()."
                ) from None
        self.target, problem = built.target.with_tests(tests), built.problem
        self.coordinates = self.target.coordinates
        self.stats_dtypes_shapes = statistics_of_blocks(self.target.sweep.blocks)
        self._begin(built.posed, blocked=True, rng=request.rng)
        self.learnt = None
        if earlier is not None:
            say("learning from the earlier run")
            run = earlier.seen_in(self.target.coordinates)
            with rows_named(self.target.numbers):
                self.learnt = learn_sweeps(run, self.target.sweep, problem.prepared.rng)
        pilot = self.target.pilot
        if self.target.sequential.epsilon:
            say("trying sweeps with tests")
            with rows_named(self.target.numbers):
                pilot = pilot_sweeps(self.target.sweep)
        sweep = replace(self.target.sweep, learned=pilot.learned)
        self.target = replace(self.target, sweep=sweep)
        self._cost = cost_in_words(self.target, pilot, self.n_rows)
        problem.prepared.end_setup()
        self._describe(
            built.posed,
            structure=problem.structure,
            compiled_as=self.target.compiled_as,
            centered=self.target.coordinates.names,
            free=tuple(its.name for its in self.target.coordinates.absorbed),
            blocks=problem.blocks,
        )

    def _start(self) -> NDArray:
        if self.learnt is None:
            return self.target.sweep.begin(self.rng)
        return self.learnt.start(self.rng)

    def _row_free_part(self, point: NDArray) -> float:
        to = self.coordinates
        return self.target.sweep.posterior.row_free_part(point, to.inner(to.start))

    def _transition(self, current: NDArray) -> tuple[NDArray, dict[str, Any]]:
        tuning = self.tune and self.adapts
        with rows_named(self.target.numbers):
            following, self.sweep_state, uses = self.target.sweep.step(
                current, self.sweep_state, self.rng, tuning=tuning
            )
        epsilon = self.target.sequential.epsilon
        return following, of_sweep(uses, self.n_rows, self.sweep_state, epsilon)

    # ------------------------------------------------------------------ a chain

    def reset_tuning(self) -> None:
        """Forget what was learned."""
        self.tune = True
        learnt = self.learnt
        self.sweep_state = self.target.sweep.init() if learnt is None else learnt.proposal_state

    def stop_tuning(self) -> None:
        """Freeze the random walks."""
        if not self.tune:
            return
        self.tune = False
        if self.adapts:
            self.sweep_state = self.target.sweep.freeze(self.sweep_state)

    # ------------------------------------------------------------------ words

    @property
    def constants(self) -> dict[str, Any]:
        """Constants of the run, as they are written to the attributes of ``sample_stats``."""
        return {
            **self._common_constants,
            "epsilon": self.target.sequential.epsilon,
            "max_error": math.nan,
            **_TESTS[self.target.sequential.epsilon > 0.0],
            "proposal": "Sweep",
            "proposal_rows": 0,
            "audit": self.target.sequential.audit if self.target.sequential.epsilon else 0.0,
            "control_variates": 2,
            "normality": "not checked",
            "blocks": ", ".join(self.target.sweep.blocks),
        }

    @property
    def _words(self) -> Words:
        return Words(in_words(self.target, is_audit_given=self._is_audit_given), self._cost)


def _number(value: Any) -> float:
    """An `epsilon` or a share of audits; 0 where `AusterityMH` leaves it to the model."""
    return 0.0 if value == "auto" else float(value)


def allows_groups(request: Request) -> bool:
    """Whether the settings of `AusterityMH` have a meaning for moves of levels."""
    asked = set(request.given) - {"max_error"}  # no decision is wrong without an epsilon
    if isinstance(request.test, str) and request.test == "exact":
        asked.discard("test")
    return asked <= set(GroupedMH.settings_known()) and not callable(request.epsilon)


def grouped_if_possible(
    request: Request,
    variables: Sequence,
    model: pm.Model,
    prepared: PreparedModel,
    say: Say,
    *,
    only_where_best: bool = True,
) -> GroupedStep | None:
    """Moves of levels, if the model allows them.

    Parameters
    ----------
    request : Request
        What the user asks of `AusterityMH`.
    variables : sequence of variables
        Value variables.
    model : pymc.Model
        The model.
    prepared : PreparedModel
        The same, prepared; it gets the reason where there are no such moves.
    say : callable
        Shows the stage of set-up.
    only_where_best : bool
        Whether to refuse models for which moves of everything at once are likely to be faster.
    """
    kwargs = dict(request.options.compile_kwargs or {})
    beyond = MOST_AT_ONCE if "epsilon" in request.given else 0
    where = prepared, variables, kwargs, say
    try:
        built = build_groups(*where, only_where_best=only_where_best, only_beyond=beyond)
    except NoGroupsError as error:
        if not isinstance(error, NoFactorError):
            prepared.no_groups = str(error)
        prepared.has_groups = isinstance(error, OthersAreBetterError)
        return None
    return GroupedStep(variables, request=request, model=model, say=say, built=built)
