"""What ``AusterityMH()`` is: decisions on few rows, groups, or NUTS on all rows."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, NamedTuple

import pymc as pm
from threadpoolctl import threadpool_limits

from pymc_austerity.errors import DataError, NotRowwiseError, SettingError
from pymc_austerity.model import refuse_simulators, rows_observed, rows_of_terms
from pymc_austerity.model.rewritten import on_full_data
from pymc_austerity.setup.build import SeveralModesError
from pymc_austerity.setup.control_variates import MOST_ENTRIES
from pymc_austerity.setup.earlier_run import checked_draws, earlier_run
from pymc_austerity.setup.levels.build import MOST_AT_ONCE
from pymc_austerity.setup.model_inputs import checked_point
from pymc_austerity.setup.prepared import PreparedModel
from pymc_austerity.setup.problem import pose
from pymc_austerity.setup.setup_progress import Say, Stage
from pymc_austerity.setup.wide import has_sparse_design
from pymc_austerity.step_methods.all_rows_nuts import AllRowsNUTS, PyMCSteps, on_all_rows
from pymc_austerity.step_methods.expected_time import (
    LONG_RUN,
    SETUP_SECONDS,
    WATCHED,
    CostOfNUTS,
    Size,
    TrialOfNUTS,
    expected_cost,
    measured_cost,
    seconds_of_rows,
    size_of,
    watched_cost,
)
from pymc_austerity.step_methods.few_rows import FewRowsStep
from pymc_austerity.step_methods.grouped_mh import GroupedStep, grouped_if_possible
from pymc_austerity.step_methods.request import Request
from pymc_austerity.step_methods.short_chains import (
    LONGER,
    MIXES,
    NOTHING_KNOWN,
    WATCHING_SHARE,
    Probe,
    by_time,
    glimpsed,
    is_settled,
    leaves_a_doubt,
    looked_at,
    may_stay,
    mixes_in_time,
    reason_against,
    seconds_of_run,
    steps_per_draw,
)
from pymc_austerity.step_methods.wide_hmc import SplitHamiltonian, WideHMC
from pymc_austerity.time_limit import (
    SetupTooLongError,
    counted,
    reviewed,
    share_of_rest,
    uncounted,
    within,
)

_log = logging.getLogger("pymc.austerity")

_OPEN = {"vars", "model", "rng", "compile_kwargs", "initial_point", "audit", "likelihood"}
"""Arguments of `AusterityMH` that do not ask for decisions on few rows."""
_OF_SOURCES = {"data", "setup_folder"}
"""Those beside which decisions on few rows or levels are still to be chosen, but not NUTS."""

_SETUP_SHARE, _FIRST_SHARE = 0.4, 0.6
"""Time for set-up as a share of a run of NUTS; and the share of it that the first of two step
methods gets."""
_MODES_SECONDS, _MODES_SHARE = 1.0, 0.05
"""Time to look for other modes beside NUTS, at least, and as a share of its run."""
_MOST_SECONDS_OF_TRANSITION = 0.5
"""A transition of NUTS that is expected to take longer is not tried: it may have 50 times as many
gradients."""
_SURE_SECONDS, _SURE_SHARE = 30.0, 0.05
"""A longer set-up, also as a share of the run that is expected of NUTS, is interrupted to try NUTS:
it may take a fifth of what is expected."""
_TIMES_COMPILED, _OF_COMPILED, _OF_MEASURED = 5.0, 0.5, 0.2
"""Where NUTS is compiled: times as long as that a run takes at least for a set-up to be tried, and
the time for it as shares of compilation and run."""
_MANY_ROWS_OF_AN_ENTRY, _LONG_RUN_OF_FEW_ROWS = 100, 30.0
"""Rows for each entry with fewer of which a set-up may have to compile trajectories, for a minute;
and the seconds that a run of a compiled NUTS takes at least for it to be tried then."""
_WITHOUT_NUTS = (CostOfNUTS(math.inf, compilation=0.0),)
_UNSURE = 5.0
"""Times the usual time of the rows with which NUTS is measured first, where each entry has few."""
_ROWS_OF_AN_ENTRY, _ROWS_OF_A_LEVEL = 10, 500
"""With fewer rows for each entry, an expansion of the rows is too far from them; and levels, where
they can be moved one by one, are tried first."""


def leaves_the_choice(request: Request, *, to_nuts: bool = True) -> bool:
    """Whether none of the settings asks for decisions on few rows, nor goes on with a run on few.

    A run on all rows, or of other samplers, leaves the choice open.

    Parameters
    ----------
    request : Request
        What the user asks.
    to_nuts : bool
        Whether NUTS would be an answer; it is none to a request with sources of rows.
    """
    given = set(request.given) - (set() if to_nuts else _OF_SOURCES)
    if request.sampler_before in ("", AllRowsNUTS.__name__) or _was_wide(request):
        given -= {"resume"}
    return given <= _OPEN


def _was_wide(request: Request) -> bool:
    """Whether the earlier run is one of `WideHMC`."""
    return request.constants_before.get("proposal") == SplitHamiltonian.__name__


def best_of_all(request: Request, variables: Sequence, model: pm.Model, say: Stage) -> Any:
    """The step method with the least expected time, which may be PyMC's NUTS.

    Parameters
    ----------
    request : Request
        What the user asks, which leaves the choice.
    variables : sequence of variables
        Value variables.
    model : pymc.Model
        The model.
    say : Stage
        The stage of set-up that is shown.
    """
    with closing(_Choice(request, variables, model, say)) as choice:
        return _compared(choice)


def best_without_nuts(
    request: Request, variables: Sequence, model: pm.Model, prepared: PreparedModel, say: Stage
) -> Any:
    """Decisions on few rows or levels, whichever short chains show to be faster.

    Rows from sources cannot be given to NUTS, which would need all of them in memory.

    Parameters
    ----------
    request, variables, model, say
        As in `best_of_all`.
    prepared : PreparedModel
        The model, which has levels that can be moved one by one.

    Raises
    ------
    NotRowwiseError, SettingError
        Neither can be had.
    """
    tried: list[tuple[tuple[bool, bool, float], Any]] = []
    point, begun = dict(prepared.point), counted()
    makers = _both(request, variables, model, prepared, say)
    for step in _made_in_time(makers, "neither is possible"):
        step.setup_seconds = counted() - begun
        with say.shown("trying chains"), _one_thread():
            found = glimpsed(step, point, _WITHOUT_NUTS)
        is_wrong = bool(reason_against(step, found, _WITHOUT_NUTS))
        tried.append(((is_wrong, *by_time((step, found))), step))
        if is_settled(step, found, _WITHOUT_NUTS):
            break
    _, fastest = min(tried, key=itemgetter(0))
    fastest.take(request.steps_per_draw, say)
    return fastest


def _compared(choice: "_Choice") -> Any:
    """The best step method."""
    if choice.request.sampler_before == AllRowsNUTS.__name__:
        choice.nuts.reason = "the earlier run is one of NUTS"
        return choice.nuts
    has_looked = False
    reason = "" if choice.rows else _nothing_observed(choice.model)
    few_rows = "" if reason else _few_rows(choice.size)
    if few_rows and choice.measure(is_first=True):
        choice.costs = choice.costs[:1]  # what is measured holds without doubt
        few_rows = "" if _is_long(choice.costs[0], choice.size) else few_rows
    reason = reason or few_rows
    if not reason:
        best = choice.best_on_few_rows()
        if not best.why_not:
            best.step.take(steps_per_draw(best.found, choice.costs), choice.say)
            return best.step
        reason = best.why_not
        has_looked = best.step is not None or best.has_several_modes
    if not has_looked:
        choice.warn_of_modes()
    choice.nuts.reason = reason
    return choice.nuts


class _Best(NamedTuple):
    """The best step method of this package.

    Attributes
    ----------
    step : step method
        None where there is none.
    found : Probe
        What its short chains showed.
    why_not : str
        Why NUTS is better, as a clause; empty if it is not.
    is_late : bool
        Whether set-up was given up for the time that it took.
    has_several_modes : bool
        Whether set-up ended because it found several modes, and warned of them.
    """

    step: Any
    found: Probe
    why_not: str
    is_late: bool = False
    has_several_modes: bool = False

    @property
    def is_open(self) -> bool:
        """Whether a slower NUTS would be another answer."""
        return self.is_late or self.why_not == LONGER


class _Choice:
    """What is to be sampled, and how long NUTS takes for it, once that is known.

    Parameters
    ----------
    request, variables, model, say
        As in `best_of_all`.

    Attributes
    ----------
    request : Request
    model : pymc.Model
    say : Stage
    rows : dict of str to int
        Rows of each term of the likelihood.
    size : Size
    costs : sequence of CostOfNUTS
        What NUTS takes, as it was measured if it was, and as it is expected.
    """

    def __init__(self, request: Request, variables: Sequence, model: pm.Model, say: Stage) -> None:
        self._started, self._begun, self.say = time.perf_counter(), counted(), say
        self.request, self._variables, self.model = request, variables, model
        self._point = _checked(request, model)
        whole, named = on_full_data(model), request.for_preparing["likelihood"]
        observed = rows_observed(whole)
        self.rows = observed if named is None else rows_of_terms(whole, named)
        self.size = size_of(whole, self._point, observed | self.rows)
        self.costs: tuple[CostOfNUTS, ...] = (expected_cost(self.size),)

    @cached_property
    def _trial(self) -> TrialOfNUTS:
        """A chain of NUTS, which begins when its first transition is asked for."""
        return TrialOfNUTS(self.nuts, self._point)

    def close(self) -> None:
        """End the trial of NUTS, if there was one."""
        if "_trial" in vars(self):
            self._trial.close()

    @cached_property
    def nuts(self) -> AllRowsNUTS | PyMCSteps:
        """NUTS on all rows, which is compiled when it is asked for."""
        kwargs, resume = self.request.options.compile_kwargs, self.request.resume
        if resume is not None:
            checked_draws(resume, list(self._variables), self.model)
        its = {"point": self._point, "rows": self.rows, "rng": self.request.rng}
        its["compile_kwargs"] = kwargs
        with self._with_nuts("compiling NUTS"):
            step = on_all_rows(self._variables, self.model, its)
            if resume is not None:
                self.say("learning from the earlier run")
                _resume(step, resume, self.model)
            return step

    @contextmanager
    def _with_nuts(self, stage: str) -> Iterator[None]:
        """A stage of which the time is not that of the other samplers."""
        with self.say.shown(stage), _one_thread(), uncounted():
            yield

    @property
    def _spent(self) -> float:
        """Processor time of the set-up and the short chains of other samplers."""
        return counted() - self._begun

    def measure(self, *, is_first: bool = False) -> bool:
        """Find out what NUTS takes, where it moves all variables and can begin.

        Parameters
        ----------
        is_first : bool
            Whether no other set-up has begun.
        """
        started = self._started if is_first else time.perf_counter()
        step = self.nuts
        if not isinstance(step, AllRowsNUTS) or len(step.vars) < len(self._variables):
            return False
        try:
            with self._with_nuts("trying NUTS"):
                measured = measured_cost(self._trial, started, self.size, is_first=is_first)
            self.costs = (measured, *self.costs)
        except Warning:
            raise
        except Exception as error:  # noqa: BLE001  the chains say it, unless they begin elsewhere
            _log.debug("NUTS could not be tried: %s", error)
        return self.costs[0].is_measured

    def warn_of_modes(self) -> None:
        """Warn where there are several modes, unless set-up has looked for them on few rows."""
        if isinstance(self.nuts, AllRowsNUTS) and len(self.nuts.vars) == len(self._variables):
            seconds = max(_MODES_SECONDS, _MODES_SHARE * self.costs[0].of_run)
            with self.say.shown("looking for other modes"):
                self.nuts.warn_of_modes(self._point, seconds)

    def best_on_few_rows(self) -> _Best:
        """The best step method of this package, beside a NUTS that is tried where that decides."""
        begun = counted()
        after = max(_SURE_SECONDS, _SURE_SHARE * self.costs[0].of_run)
        with reviewed(after, self._time_beside_nuts):
            best = self._on_few_rows(_time_for_setup(self.costs[0]))
        spent = counted() - begun
        if not (best.is_open and self._tries_nuts()):
            return best
        if not best.is_late:
            return best._replace(why_not=reason_against(best.step, best.found, self.costs))
        left = _time_for_setup(self.costs[0]) - spent
        return self._on_few_rows(left) if left > spent else best

    def _tries_nuts(self) -> bool:
        """Try NUTS where that was not done and does not take long: whether it was done now."""
        cost = self.costs[0]
        if cost.is_measured or cost.per_draw >= _MOST_SECONDS_OF_TRANSITION:
            return False
        return self.measure()

    def _time_beside_nuts(self) -> float:
        """Seconds that set-up may take once NUTS has been tried."""
        return _time_for_setup(self.costs[0]) if self._tries_nuts() else math.inf

    def _on_few_rows(self, seconds: float) -> _Best:
        """Set up what may be better than NUTS, within some processor time, and try it."""
        tried: list[tuple[Any, Probe]] = []
        reason, is_late, has_several_modes = "", False, False
        try:
            with within(seconds):
                for step in self._candidates():
                    step.setup_seconds = self._spent
                    if isinstance(step, WideHMC):  # it was tried at set-up
                        tried = [(step, step.tried)]
                        break
                    with self._trial_of_chains():
                        found = glimpsed(step, self._point, self.costs)
                    if is_settled(step, found, self.costs):
                        tried = [(step, found)]
                        break
                    tried.append((step, found))
        except SetupTooLongError as error:
            reason, is_late = str(error), True
        except (NotRowwiseError, DataError, SettingError) as error:
            reason = str(error).partition(": ")[0]
            has_several_modes = isinstance(error, SeveralModesError)
        except Warning:  # where the user has made an error of it
            raise
        except Exception as error:  # noqa: BLE001  a defect of this package costs time, not a run
            _log.warning(
                f"Set-up failed ({type(error).__name__}: {error}); please report it.", exc_info=True
            )
            reason = f"set-up failed with {type(error).__name__}"
        if tried:
            return self._best_of(tried)
        return _Best(None, NOTHING_KNOWN, reason, is_late, has_several_modes)

    @contextmanager
    def _trial_of_chains(self) -> Iterator[None]:
        """A stage in which no review of the time interrupts: the time of chains is measured."""
        shown = self.say.shown("trying chains")
        with shown, reviewed(math.inf, float), _one_thread():
            yield

    def _best_of(self, tried: Sequence[tuple[Any, Probe]]) -> _Best:
        """The fastest one that longer chains say nothing against, where short ones left a doubt."""
        seen: list[_Best] = []
        with self._trial_of_chains():
            for step, found in sorted(tried, key=by_time):
                if leaves_a_doubt(step, found, self.costs) or may_stay(step, found, self.costs):
                    self._tries_nuts()
                if self._depends_on_mixing(step, found):
                    is_nuts = bool(reason_against(step, found, self.costs))
                    run = self.costs[0].of_run if is_nuts else seconds_of_run(found, self.costs)
                    self._watch_nuts(WATCHING_SHARE * run)
                left = _time_for_setup(self.costs[0]) - self._spent
                longer = looked_at(step, found, self._point, self.costs, left)
                seen.append(_Best(step, longer, reason_against(step, longer, self.costs)))
                if not seen[-1].why_not:
                    return seen[-1]
        return min(seen, key=lambda best: best.found.seconds_per_effective_draw)

    def _depends_on_mixing(self, step: Any, found: Probe) -> bool:
        """Whether the share of the draws of NUTS that are effective decides."""
        cost, why_not = self.costs[0], reason_against(step, found, self.costs)
        slower = found.seconds_per_effective_draw / cost.per_draw
        if not slower > 1.0 or why_not not in ("", LONGER):
            return False
        if isinstance(step, GroupedStep) and not why_not:
            return True
        return cost.is_measured and (slower < 1.0 / MIXES or mixes_in_time(found, cost))

    def _watch_nuts(self, most_seconds: float) -> None:
        """Find out how many draws of NUTS are effective, where that does not take long."""
        self._tries_nuts()
        cost = self.costs[0]
        is_short = WATCHED * cost.per_draw < most_seconds
        if cost.is_measured and math.isnan(cost.share_effective) and is_short:
            with self._with_nuts("trying NUTS for longer"):
                watched = watched_cost(self._trial, cost, most_seconds)
                self.costs = (watched, *self.costs[1:])

    def _candidates(self) -> Iterator[Any]:
        """Step methods in the order in which they are tried."""
        request, variables, model, size = self.request, self._variables, self.model, self.size
        prepared = request.prepared(model, self.say)
        of_levels = request, variables, model, prepared, self.say
        grouped = grouped_if_possible(*of_levels)
        per_entry = size.n_rows / size.dimension
        if grouped is not None:
            yield grouped
            if size.dimension > MOST_AT_ONCE or per_entry < _ROWS_OF_A_LEVEL:
                return
        elif size.dimension > MOST_ENTRIES:
            problem = pose(prepared, variables, dict(request.options.compile_kwargs or {}))
            if has_sparse_design(problem):
                its = {"request": request, "model": model, "say": self.say}
                yield WideHMC(variables, problem=problem, **its)
                return

        on_few_rows, by_level = _both(*of_levels)
        in_order = [on_few_rows] if per_entry >= _ROWS_OF_AN_ENTRY else []
        if prepared.has_groups:
            in_order.insert(0 if per_entry < _ROWS_OF_A_LEVEL else 1, by_level)
        yield from _made_in_time(
            in_order, f"{size.n_rows:,} rows are few for {size.dimension} dimensions"
        )


def _one_thread() -> Any:
    """One thread for linear algebra, as each chain of ``pm.sample`` has by default.

    More of them take many times as long for small matrices where other work is done.
    """
    return threadpool_limits(1)


def _resume(step: AllRowsNUTS | PyMCSteps, resume: Any, model: pm.Model) -> None:
    """Let chains of NUTS go on where an earlier run ended."""
    if isinstance(step, PyMCSteps):
        raise SettingError(
            "resume has no effect, because no variable has a gradient and PyMC's step methods "
            "learn nothing from an earlier run: leave it out, and give its last draws to pm.sample "
            "as initvals."
        )
    run = earlier_run(resume, step.vars, step.vars, model)
    assert run is not None
    step.resume(run)


def _is_long(cost: CostOfNUTS, size: Size) -> bool:
    """Whether another set-up may be worth its time where NUTS is compiled already."""
    least = LONG_RUN if _has_many_rows(size) else _LONG_RUN_OF_FEW_ROWS
    return cost.of_run >= max(least, _TIMES_COMPILED * cost.compilation)


def _checked(request: Request, model: pm.Model) -> dict[str, Any]:
    """The model's initial point; values that cannot be used are errors, not reasons for NUTS."""
    given = request.options.initial_point
    point = checked_point(given, model)
    refuse_simulators(model)
    return point if given is None else checked_point(None, model)


def _nothing_observed(model: pm.Model) -> str:
    """Why there are no rows, and what to do if they are those of a potential."""
    if not model.potentials:
        return "no variable is observed"
    by_row = [potential.name for potential in model.potentials if potential.type.ndim]
    name = (by_row or [model.potentials[0].name])[0]
    how = "" if by_row else "write it without the sum over rows and "
    return f"no variable is observed; if {name!r} is the likelihood, {how}add likelihood=[{name!r}]"


def _has_many_rows(size: Size) -> bool:
    return size.n_rows >= _MANY_ROWS_OF_AN_ENTRY * size.dimension


def _few_rows(size: Size) -> str:
    """Why no set-up is worth its time, as a clause; empty if one may be."""
    if seconds_of_rows(size) < (1.0 if _has_many_rows(size) else _UNSURE) * SETUP_SECONDS:
        return f"{size.n_rows:,} rows are too few to gain from reading fewer"
    return ""


def _both(
    request: Request, variables: Sequence, model: pm.Model, prepared: PreparedModel, say: Say
) -> list[Callable[[], Any]]:
    """What sets up decisions on few rows of everything at once, and those of levels."""
    its: dict[str, Any] = {"request": request, "model": model, "prepared": prepared, "say": say}
    return [
        partial(FewRowsStep, variables, rng=request.rng, is_candidate=True, **its),
        partial(grouped_if_possible, variables=variables, only_where_best=False, **its),
    ]


def _made_in_time(makers: Sequence[Callable[[], Any]], why_none: str) -> Iterator[Any]:
    """What can be set up, in turn; all but the last get a share of the time that is left."""
    n_made = 0
    reason: Exception = NotRowwiseError(why_none)
    for number, make in enumerate(makers, start=1):
        try:
            with share_of_rest(_FIRST_SHARE if number < len(makers) else 1.0):
                step = make()
        except (SetupTooLongError, NotRowwiseError, SettingError) as error:
            reason = error
            continue
        if step is not None:
            n_made += 1
            yield step
    if not n_made:
        raise reason


def _time_for_setup(cost: CostOfNUTS) -> float:
    """Seconds after which a set-up is given up: a part of a run of NUTS and of its compilation."""
    if cost.is_measured:
        return _OF_COMPILED * cost.compilation + _OF_MEASURED * cost.of_run
    return cost.compilation + _SETUP_SHARE * cost.of_run
