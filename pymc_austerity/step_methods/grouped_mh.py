"""Exact Metropolis within Gibbs for models with groups."""

import inspect
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from pymc_austerity._pymc import RaveledVars, StepMethodState, dataclass_state, without_traces
from pymc_austerity.arguments import (
    checked_choice,
    checked_count,
    checked_fraction,
    checked_tail,
    refuse_positional,
)
from pymc_austerity.deciding.stored_rows import rows_named
from pymc_austerity.design.wording import in_round_numbers
from pymc_austerity.errors import SettingError
from pymc_austerity.levels import (
    FEWEST_ROWS,
    BlockUse,
    SequentialSettings,
    SweepState,
    expected_rows,
)
from pymc_austerity.setup.levels import (
    FEWEST_PRODUCTS,
    MOST_AT_ONCE,
    GroupedTarget,
    NoFactorError,
    NoGroupsError,
    build_grouped,
    grouped_problem,
)
from pymc_austerity.setup.model_inputs import (
    checked_compile_kwargs,
    checked_model,
    checked_variables,
)
from pymc_austerity.setup.prepared import PreparedModel, chosen, prepare
from pymc_austerity.setup.problem import Problem, pose
from pymc_austerity.setup.setup_progress import setup_progress
from pymc_austerity.step_methods.base import SubsamplingStep
from pymc_austerity.step_methods.deferred import DeferredStep, is_without_model
from pymc_austerity.step_methods.interrupts import clean_interrupt
from pymc_austerity.step_methods.phase import Phase
from pymc_austerity.step_methods.statistics import STATISTICS, of_draw
from pymc_austerity.step_methods.summary import Words

__all__ = ["GroupedMH", "grouped_if_possible"]


@dataclass_state
class GroupedState(StepMethodState):
    """All that changes while a chain runs, and fields that must match on resume."""

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


class Built(NamedTuple):
    """What a step method is made of.

    Attributes
    ----------
    posed : Problem
        In terms of the user's variables.
    problem : Problem
        In terms of what is moved.
    target : GroupedTarget
    started : float
        When set-up began, by the performance counter.
    """

    posed: Problem
    problem: Problem
    target: GroupedTarget
    started: float


def build_groups(
    model: pm.Model,
    variables: Sequence,
    compile_kwargs: dict[str, Any],
    where: dict[str, Any],
    keep: Callable[[PreparedModel], object] = bool,
    *,
    only_where_best: bool = False,
    only_beyond: int = 0,
) -> Built:
    """Prepare the model and build the moves of its levels.

    Parameters
    ----------
    model : pymc.Model
    variables : sequence of variables
        Value variables.
    compile_kwargs, where : dict
        Arguments of ``pymc.compile``, and of `prepare`.
    keep : callable
        Takes what was prepared, for use where there are no groups.
    only_where_best : bool
        As in `build_grouped`.
    only_beyond : int
        Whether to refuse models with so many entries, or fewer.

    Raises
    ------
    NoGroupsError
        The message says why there are none.
    """
    started = time.perf_counter()
    with setup_progress("AusterityMH" if only_where_best else "GroupedMH") as say:
        prepared = prepare(model, **where, say=say)
        keep(prepared)
        posed = pose(prepared, variables, compile_kwargs)
        if posed.start.size <= only_beyond:
            raise NoGroupsError("everything can be moved at once")
        problem, coordinates = grouped_problem(posed, FEWEST_PRODUCTS)
        target = build_grouped(problem, coordinates, say, only_where_best=only_where_best)
        return Built(posed, problem, target, started)


class GroupedMH(SubsamplingStep):
    r"""Exact Metropolis-Hastings in which every level of a factor has a decision of its own.

    For models with groups, such as ``a[group] + x @ b`` with a prior of the ``a`` that has a mean
    and a scale of its own. `AusterityMH()` returns this step method where a factor has 30 levels or
    more, with 200 entries in all or several each, or in a model of more than 300 entries; three
    levels suffice in the non-centered form or with one row each. Other settings may exclude this;
    with an `epsilon`, the model must have more than 300 entries.
    A step is a sweep:

    - entries that no row reads (means and scales of priors) move given the levels, which reads no
      rows, and with the levels moving along, which makes them nearly as independent as if the
      levels were integrated out;
    - all levels of a factor move at once. Given the rest they are independent, so each has a
      proposal from its normal approximation, the exact prior, and an exact decision by itself;
    - the entries that all rows read move given the levels, and then jointly with the levels of all
      factors but the largest, whose levels move along;
    - sums that rows hold fixed, such as that of an intercept and the levels of a factor, are
      exchanged: one part rises, the other falls, and only the priors matter.

    Decisions are exact. They read a few rows of each level, drawn at rates that bound
    what they can change. Where there is no such bound they read all rows of a level, or, with an
    `epsilon`, some of them by a sequential test.

    Parameters
    ----------
    vars : sequence of variables or names, optional
        All free variables, which is the default.
    likelihood, axis, steps_per_draw, tune, model, rng, initial_point, compile_kwargs
        As for `AusterityMH`; a step is a sweep over all blocks.
    epsilon : float
        For rows without bounds: largest tail probability at which a t-test on some of the rows
        stops, in [0, 0.5]. Decisions about levels of at least 400 rows, and about all rows, are
        then sequential, and can be wrong. At 0, the default, all rows are read and decisions are
        exact. Where rows have bounds, decisions are exact for every `epsilon`.
    audit : float
        Share of the sequential decisions that are checked on all of their rows, in [0, 1]; see
        `pymc_austerity.diagnostics.audit`.

    Raises
    ------
    SettingError, SettingTypeError
        An argument cannot be used, or the model has no groups of this kind.
    NotRowwiseError, DataError
        As for `AusterityMH`.

    Notes
    -----
    Besides the statistics of `AusterityMH`, of whole sweeps, ``sample_stats`` has for each block
    the share of its proposals that were accepted and the rows that it read: ``accepted_common``
    and ``n_rows_common``, and so on. The attribute ``blocks`` has their names.

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

    name = "grouped_mh"
    _state_class = GroupedState
    target: GroupedTarget
    sweep_state: SweepState

    @clean_interrupt
    @without_traces()
    def __new__(cls, vars: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Check the variables before PyMC does."""
        refuse_positional(cls, args)
        if is_without_model(kwargs):
            return DeferredStep(cls, vars, kwargs)
        model = checked_model(kwargs.get("model"))
        return super().__new__(cls, checked_variables(vars, model), **kwargs)

    @clean_interrupt
    @without_traces()
    def __init__(
        self,
        vars: Sequence | None = None,
        *,
        likelihood: Sequence[str] | None = None,
        axis: int = 0,
        tune: bool = True,
        steps_per_draw: int = 1,
        epsilon: float = 0.0,
        audit: float = 0.0,
        model: pm.Model | None = None,
        rng: Any = None,
        initial_point: dict[str, NDArray] | None = None,
        compile_kwargs: dict[str, Any] | None = None,
        _built: "Built | None" = None,
    ) -> None:
        audit = checked_fraction("audit", audit, 1.0, "the share of decisions to check")
        tests = SequentialSettings(checked_tail("epsilon", epsilon), audit)
        checked_choice("tune", tune, (True, False))
        self.steps_per_draw = checked_count("steps_per_draw", steps_per_draw)
        self.adapts = tune
        compile_kwargs = checked_compile_kwargs(compile_kwargs)
        model = checked_model(model)
        variables = checked_variables(vars, model)
        if _built is None:
            where = {"likelihood": likelihood, "axis": axis, "rng": rng}
            where |= {"initial_point": initial_point}
            try:
                _built = build_groups(model, variables, compile_kwargs, where)
            except NoGroupsError as error:
                raise SettingError(
                    f"GroupedMH has no moves for this model because {error}: use AusterityMH()."
                ) from None
        self.target, problem = _built.target.with_tests(tests), _built.problem
        self.stats_dtypes_shapes = dict(STATISTICS)
        for block in self.target.sweep.blocks:
            self.stats_dtypes_shapes[f"accepted_{block}"] = (np.float64, [])
            self.stats_dtypes_shapes[f"n_rows_{block}"] = (np.int64, [])
        self._begin(_built.posed, blocked=True, rng=rng)
        self._cost = self._cost_of_sweep()
        self._finish(
            _built.started,
            _built.posed,
            structure=problem.structure,
            compiled_as=self.target.compiled_as,
            centered=self.target.coordinates.names,
            free=tuple(its.name for its in self.target.coordinates.absorbed),
            blocks=problem.blocks,
        )

    # ------------------------------------------------------------------ one step

    def astep(self, apoint: RaveledVars) -> tuple[RaveledVars, list[dict[str, Any]]]:
        """Sweep over all blocks as often as there are steps in a draw."""
        to = self.target.coordinates
        current = to.inner(apoint.data)
        if self.phase.is_start:
            self.phase = self.phase.begun()
            if np.array_equal(apoint.data, to.start):
                current = self.target.sweep.begin(self.rng)
            else:  # the user chose it
                exact_part = self.target.sweep.posterior.exact_part
                self._refuse_impossible_start(exact_part(current, to.inner(to.start)))
        sweeps = []
        for _ in range(self.steps_per_draw):
            current, statistics = self._sweep(current)
            sweeps.append(statistics)
        return RaveledVars(to.outer(current), apoint.point_map_info), [of_draw(sweeps)]

    def _sweep(self, current: NDArray) -> tuple[NDArray, dict[str, Any]]:
        tuning = self.tune and self.adapts
        with rows_named(self.target.numbers):
            following, self.sweep_state, uses = self.target.sweep.step(
                current, self.sweep_state, self.rng, tuning=tuning
            )
        return following, _of_sweep(
            uses, self.n_rows, self.sweep_state, self.target.sequential.epsilon
        )

    # ------------------------------------------------------------------ a chain

    def reset_tuning(self) -> None:
        """Forget what was learned."""
        self.tune = True
        self.sweep_state = self.target.sweep.init()

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
        """What is constant over the run, as it is written to the attributes of sample_stats."""
        return {
            **self._common_constants,
            "epsilon": self.target.sequential.epsilon,
            "max_error": math.nan,
            **_TESTS[self.target.sequential.epsilon > 0.0],
            "proposal": "Sweep",
            "proposal_rows": 0,
            "audit": self.target.sequential.audit,
            "steps_per_draw": self.steps_per_draw,
            "control_variates": 2,
            "normality": "not checked",
            "blocks": ", ".join(self.target.sweep.blocks),
        }

    @property
    def _words(self) -> Words:
        factors = self.target.sweep.posterior.factors
        levels = " and ".join(f"{len(f.entries):,} levels of {f.names}" for f in factors)
        epsilon, reason = self.target.sequential.epsilon, self.target.reads_all
        if epsilon:
            n_tested = sum(int((np.diff(f.rows.starts) >= FEWEST_ROWS).sum()) for f in factors)
            return Words(
                "Metropolis-Hastings in which every level has a decision of its own "
                f"({levels}), for {n_tested:,} of them by sequential tests with "
                f"epsilon={epsilon:g} because {reason}; decisions can be wrong.",
                self._cost,
            )
        return Words(
            "exact Metropolis-Hastings in which every level has a decision of its own "
            f"({levels}); no decision can be wrong.",
            self._cost,
        )

    def _cost_of_sweep(self) -> str:
        n_rows, reads_all = self.n_rows, self.target.reads_all
        if reads_all and not self.target.sequential.epsilon:
            return f"all {n_rows:,} rows per sweep, because {reads_all}"
        with rows_named(self.target.numbers):
            expected = expected_rows(self.target.sweep)
        if expected < 1.0:
            return f"on average less than one of {n_rows:,} rows per sweep"
        if expected > n_rows:
            return f"all {n_rows:,} rows, about {expected / n_rows:.1f} times per sweep"
        return f"about {in_round_numbers(expected)} of {n_rows:,} rows per sweep"


def _of_sweep(
    uses: dict[str, BlockUse], n_rows: int, state: SweepState, epsilon: float
) -> dict[str, Any]:
    """Statistics of a sweep."""
    used = sum(use.n_rows for use in uses.values())
    shares = [use.accepted for use in uses.values() if not math.isnan(use.accepted)]
    verdicts = [its for use in uses.values() for its in use.verdicts]
    errors = np.concatenate([its.errors for its in verdicts]) if verdicts else np.zeros(1)
    n_audited = sum(its.n_audited for its in verdicts)
    n_wrong = sum(its.n_wrong for its in verdicts)
    return {
        "accepted": sum(shares) / len(shares),
        "n_rows_used": used,
        "data_fraction": used / n_rows,
        "n_looks": 1,
        "decision_error": float(errors.mean()),
        "standardized_mean": math.nan,
        "used_all_rows": used == n_rows,
        "audited": n_audited > 0,
        "audit_agrees": n_wrong == 0,
        "n_audited": n_audited,
        "n_wrong": n_wrong,
        "scaling": state.along[0].search.scale if state.along else math.nan,
        "test_epsilon": epsilon or math.nan,
        **{f"accepted_{block}": use.accepted for block, use in uses.items()},
        **{f"n_rows_{block}": use.n_rows for block, use in uses.items()},
    }


def grouped_if_possible(cls: type, vars: Sequence, settings: dict[str, Any]) -> GroupedMH | None:
    """The step method for settings of `AusterityMH`, where these and the model allow for it.

    Parameters
    ----------
    cls : type
        Whose settings these are.
    vars : sequence of variables
        Value variables.
    settings : dict
        Keyword arguments; what was prepared without success is left in ``settings["_prepared"]``.
    """
    known = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    if not set(settings) <= set(known):
        return None
    asked = {name: value for name, value in settings.items() if value is not known[name].default}
    if asked.get("test") == "exact":
        del asked["test"]
    tests = {"epsilon", "audit"} & set(asked)
    if not set(asked) <= set(inspect.signature(GroupedMH.__init__).parameters):
        return None
    if not all(isinstance(asked[name], Real) for name in tests):
        return None

    def keep(prepared: PreparedModel) -> None:
        settings["_prepared"] = prepared

    model, kwargs = checked_model(asked.get("model")), asked.get("compile_kwargs")
    kwargs, beyond = checked_compile_kwargs(kwargs), MOST_AT_ONCE if tests else 0
    where = (model, vars, kwargs, chosen(asked), keep)
    try:
        built = build_groups(*where, only_where_best=True, only_beyond=beyond)
    except NoFactorError:
        return None
    except NoGroupsError as error:
        if "_prepared" in settings:
            settings["_prepared"].no_groups = str(error)
        return None
    return GroupedMH(vars, **asked, _built=built)
