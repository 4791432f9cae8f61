"""What ``AusterityMH()`` is: decisions on few rows, groups, or NUTS on all rows."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import pymc as pm

from pymc_austerity.deciding.sampling import StratifiedSampling
from pymc_austerity.errors import DataError, NotRowwiseError, SettingError
from pymc_austerity.model import refuse_simulators
from pymc_austerity.model.rewritten import on_full_data
from pymc_austerity.setup.control_variates import MOST_ENTRIES
from pymc_austerity.setup.levels.anchor import NoGroupsError
from pymc_austerity.setup.levels.build import (
    MOST_AT_ONCE,
    ROWS_OF_A_LEVEL,
    NoFactorError,
    OthersAreBetterError,
    build_groups,
)
from pymc_austerity.setup.model_inputs import checked_point
from pymc_austerity.setup.normality import spread_of_residuals
from pymc_austerity.setup.prepared import PreparedModel
from pymc_austerity.setup.problem import pose
from pymc_austerity.setup.wide import has_sparse_design
from pymc_austerity.step_methods.all_rows_nuts import AllRowsNUTS, PyMCSteps, on_all_rows
from pymc_austerity.step_methods.expected_time import (
    LONG_RUN,
    SETUP_SECONDS,
    CostOfNUTS,
    Size,
    expected_cost,
    measured_cost,
    seconds_of_rows,
    size_of,
)
from pymc_austerity.step_methods.few_rows import FewRowsStep
from pymc_austerity.step_methods.grouped_mh import GroupedMH, GroupedStep
from pymc_austerity.step_methods.probe import FEWEST_STEPS, NOTHING_KNOWN, Probe, probe
from pymc_austerity.step_methods.request import Request
from pymc_austerity.step_methods.wide_hmc import WideHMC
from pymc_austerity.time_limit import SetupTooLongError, share_of_rest, within

_log = logging.getLogger("pymc.austerity")

_OPEN = {"vars", "model", "rng", "compile_kwargs", "initial_point", "audit"}
"""Arguments of `AusterityMH` that do not ask for decisions on few rows."""

_PROBE_SHARE, _PROBE_SECONDS, _PROBE_SHARE_OF_NUTS = 0.1, 0.25, 0.1
"""Time of the short chains as a share of set-up and at least in seconds. Where they speak against a
step method, longer ones take a share of a run of NUTS."""
_PROBE_STEPS = 100, 400
"""Of a chain: few, and many where few leave a doubt."""
_MARGIN, _NOT_NORMAL, _OF_LEVELS = 3.0, 5.0, 15.0
"""Times as long as NUTS is expected to take for an effective draw: what is expected of NUTS holds
where it has no difficulties, and short chains still tune. It has some where a normal approximation
is poor, and in hierarchies: of twenty of its draws, none to two are effective for the worst
entry."""
_OF_TRANSITIONS, _OF_THOSE_OF_LEVELS = 1.0, 5.0
"""The same where transitions of NUTS were made, which show some of its difficulties."""
_SETUP_SHARE, _FIRST_SHARE = 0.4, 0.6
"""Time for set-up as a share of a run of NUTS; and the share of it that the first of two step
methods gets."""
_MOST_SECONDS_OF_TRANSITION = 0.5
"""A transition of NUTS that is expected to take longer is not tried: it may have 50 times as many
gradients."""
_TIMES_COMPILED, _OF_COMPILED, _OF_MEASURED = 2.0, 0.5, 0.2
"""Where NUTS is compiled: times as long as that a run takes at least for a set-up to be tried, and
the time for it as shares of compilation and run."""
_ROWS_OF_AN_ENTRY = 10
"""With fewer rows for each entry, an expansion of the rows is too far from them."""
_LONGER = "an effective draw is expected to take longer without it"
_CLEARLY_ENOUGH = 0.1
"""Effective draws of a draw with which no longer chains, and no other step method, are tried."""
_ENOUGH, _MOST_STEPS, _SHARE_OF_TRANSITION = 0.2, 20, 0.2
"""Effective draws of a recorded one that are aimed at; and the transitions between two of these: at
most how many, and how much of the time of a transition of NUTS."""
_MOST_ROWS, _MOST_SPREAD = 0.25, 1.0
"""Share of the rows that a sequential test may read where the expansion leaves more nats open.
There short chains can look well where long ones are not, as for logarithms of many scales."""


def leaves_the_choice(request: Request) -> bool:
    """Whether none of the settings asks for decisions on few rows."""
    return set(request.given) <= _OPEN


def best_of_all(request: Request, variables: Sequence, model: pm.Model) -> Any:
    """The step method with the least expected time, which may be PyMC's NUTS.

    Parameters
    ----------
    request : Request
        What the user asks, which leaves the choice.
    variables : sequence of variables
        Value variables.
    model : pymc.Model
        The model.
    """
    choice = _Choice(request, variables, model)
    reason = "" if model.observed_RVs else _nothing_observed(model)
    cost = expected_cost(choice.size)
    if not reason and (reason := _few_rows(choice.size)):
        measured = choice.cost_of_nuts(choice.started)
        if measured is not None and _is_long(measured):
            cost, reason = measured, ""
    if not reason:
        best, cost = choice.best_on_few_rows(cost)
        if not best.why_not:
            best.step.take(_steps_per_draw(best.found, cost))
            return best.step
        reason = best.why_not
    choice.nuts.choose_because(reason, choice.started)
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
    """

    step: Any
    found: Probe
    why_not: str
    is_late: bool = False

    @property
    def is_open(self) -> bool:
        """Whether a slower NUTS would be another answer."""
        return self.is_late or self.why_not == _LONGER


class _Choice:
    """What is to be sampled, and how long NUTS takes for it, once that is known.

    Parameters
    ----------
    request, variables, model
        As in `best_of_all`.
    """

    def __init__(self, request: Request, variables: Sequence, model: pm.Model) -> None:
        self.started = time.perf_counter()
        self._request, self._variables, self._model = request, variables, model
        self._point = _checked(request, model)
        self.size = size_of(on_full_data(model), self._point)

    @cached_property
    def nuts(self) -> AllRowsNUTS | PyMCSteps:
        """NUTS on all rows, which is compiled when it is asked for."""
        kwargs = self._request.options.compile_kwargs
        its = {"point": self._point, "rng": self._request.rng, "compile_kwargs": kwargs}
        return on_all_rows(self._variables, self._model, its)

    def cost_of_nuts(self, started: float) -> CostOfNUTS | None:
        """What NUTS takes, where it moves all variables and can begin.

        Parameters
        ----------
        started : float
            When its compilation began, by the performance counter.
        """
        step = self.nuts
        if not isinstance(step, AllRowsNUTS) or len(step.vars) < len(self._variables):
            return None
        try:
            return measured_cost(step, self._point, started, self.size)
        except Warning:
            raise
        except Exception as error:  # noqa: BLE001  the chains say it, unless they begin elsewhere
            _log.debug("NUTS could not be tried: %s", error)
            return None

    def best_on_few_rows(self, cost: CostOfNUTS) -> tuple[_Best, CostOfNUTS]:
        """The best step method of this package, and what NUTS takes, tried where that decides.

        Parameters
        ----------
        cost : CostOfNUTS
            As expected, or measured.
        """
        begun = time.process_time()
        best = self._on_few_rows(cost, _time_for_setup(cost))
        spent, compiling = time.process_time() - begun, time.perf_counter()
        is_tried = cost.is_measured or cost.per_draw >= _MOST_SECONDS_OF_TRANSITION
        if is_tried or not best.is_open:
            return best, cost
        measured = self.cost_of_nuts(compiling)
        if measured is None:
            return best, cost
        if not best.is_late:
            best = best._replace(why_not=_why_not(best.step, best.found, measured))
        elif _time_for_setup(measured) > 2.0 * spent:
            best = self._on_few_rows(measured, _time_for_setup(measured) - spent)
        return best, measured

    def _on_few_rows(self, cost: CostOfNUTS, seconds: float) -> _Best:
        """Set up what may be better than NUTS, within some processor time, and try it."""
        tried: list[tuple[Any, Probe]] = []
        reason, is_late = "", False
        try:
            with within(seconds):
                for step in self._candidates():
                    if isinstance(step, WideHMC):  # it was tried at set-up
                        return _Best(step, NOTHING_KNOWN, "")
                    tried.append((step, _probed(step, self._point, cost)))
                    if tried[-1][1].share_effective >= _CLEARLY_ENOUGH:
                        break
        except SetupTooLongError as error:
            reason, is_late = str(error), True
        except (NotRowwiseError, DataError, SettingError) as error:
            reason = str(error).partition(": ")[0]
        except Warning:  # where the user has made an error of it
            raise
        except Exception as error:  # noqa: BLE001  a defect of this package costs time, not a run
            _log.warning(
                f"Set-up failed ({type(error).__name__}: {error}); please report it.", exc_info=True
            )
            reason = f"set-up failed with {type(error).__name__}"
        if not tried:
            return _Best(None, NOTHING_KNOWN, reason, is_late)
        step, found = min(tried, key=lambda one: one[1].seconds_per_effective_draw)
        return _Best(step, found, _why_not(step, found, cost))

    def _candidates(self) -> Iterator[Any]:
        """Step methods in the order in which they are tried."""
        request, variables, model, size = self._request, self._variables, self._model, self.size
        prepared = request.prepared(model)
        grouped = grouped_if_possible(request, variables, model, prepared)
        per_entry = size.n_rows / size.dimension
        if grouped is not None:
            yield grouped
            if size.dimension > MOST_AT_ONCE or per_entry < ROWS_OF_A_LEVEL:
                return
        elif size.dimension > MOST_ENTRIES:
            problem = pose(prepared, variables, dict(request.options.compile_kwargs or {}))
            if has_sparse_design(problem):
                yield WideHMC(variables, problem=problem, model=model, rng=request.rng)
                return

        def on_few_rows() -> FewRowsStep:
            its = {"rng": request.rng, "prepared": prepared, "is_candidate": True}
            return FewRowsStep(variables, request=request, model=model, **its)

        def by_level() -> GroupedStep | None:
            return grouped_if_possible(request, variables, model, prepared, only_where_best=False)

        in_order: list[Callable[[], Any]] = [on_few_rows] if per_entry >= _ROWS_OF_AN_ENTRY else []
        if prepared.has_groups:
            in_order.insert(0 if per_entry < ROWS_OF_A_LEVEL else 1, by_level)
        yield from _made_in_time(
            in_order, f"{size.n_rows:,} rows are few for {size.dimension} dimensions"
        )


def _is_long(cost: CostOfNUTS) -> bool:
    """Whether another set-up may be worth its time where NUTS is compiled already."""
    return cost.of_run >= max(LONG_RUN, _TIMES_COMPILED * cost.compilation)


def _checked(request: Request, model: pm.Model) -> dict[str, Any]:
    """The model's initial point; values that cannot be used are errors, not reasons for NUTS."""
    checked_point(request.options.initial_point, model)
    refuse_simulators(model)
    return checked_point(None, model)


def _nothing_observed(model: pm.Model) -> str:
    """Why there are no rows, and what to do if they are those of a potential."""
    names = [potential.name for potential in model.potentials if potential.type.ndim]
    if not names:
        return "no variable is observed"
    return f"no variable is observed; if {names[0]!r} is the likelihood, add likelihood={names[:1]}"


def _few_rows(size: Size) -> str:
    """Why no set-up is worth its time, as a clause; empty if one may be."""
    if seconds_of_rows(size) < SETUP_SECONDS:
        return f"{size.n_rows:,} rows are too few to gain from reading fewer"
    return ""


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


def _probed(step: Any, point: dict[str, Any], cost: CostOfNUTS) -> Probe:
    usual = max(_PROBE_SHARE * step.setup_seconds, _PROBE_SECONDS)
    longest = _PROBE_SHARE_OF_NUTS * cost.of_run
    few, many = _PROBE_STEPS
    found = probe(step, point, usual, few)
    if longest > usual and math.isnan(found.share_effective):
        return probe(step, point, longest, FEWEST_STEPS)
    is_clear = found.share_effective >= _CLEARLY_ENOUGH and not _why_not(step, found, cost)
    if found.n_steps == few and not is_clear:
        found = probe(step, point, usual, many)
    for n_steps in _PROBE_STEPS:
        is_open = found.is_vague or _why_not(step, found, cost)
        if longest > usual and found.n_steps < n_steps and is_open:
            found = probe(step, point, longest, n_steps)
    return found


def _why_not(step: Any, found: Probe, cost: CostOfNUTS) -> str:
    """What short chains say against a step method; empty if nothing."""
    margin = _OF_THOSE_OF_LEVELS if cost.is_measured else _OF_LEVELS
    if isinstance(step, FewRowsStep):
        margin = _MARGIN if step.target.surrogate is None else _NOT_NORMAL
        margin = _OF_TRANSITIONS if cost.is_measured else margin
        if (
            isinstance(step.target.sampling, StratifiedSampling)
            and found.share_of_rows > _MOST_ROWS
            and not spread_of_residuals(step.target, step.proposal) <= _MOST_SPREAD
        ):
            return f"a sequential test reads {found.share_of_rows:.0%} of the rows"
    if found.wrong:
        return found.wrong
    if found.seconds_per_effective_draw < margin * cost.per_draw:
        return ""
    return _LONGER


def _steps_per_draw(found: Probe, cost: CostOfNUTS) -> int:
    """Transitions between recorded draws, more than one where these would be much alike.

    A user of NUTS records what it takes for some hundred effective draws: as many draws should do,
    in less time.
    """
    if not found.share_effective > 0.0:
        return 1
    per_step = found.seconds_per_effective_draw * found.share_effective
    most = min(_MOST_STEPS, int(_SHARE_OF_TRANSITION * cost.per_draw / per_step))
    return max(1, min(int(_ENOUGH / found.share_effective), most))


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
    only_where_best : bool
        Whether to refuse models for which moves of everything at once are likely to be faster.
    """
    kwargs = dict(request.options.compile_kwargs or {})
    beyond = MOST_AT_ONCE if "epsilon" in request.given else 0
    where = prepared, variables, kwargs
    try:
        built = build_groups(*where, only_where_best=only_where_best, only_beyond=beyond)
    except NoGroupsError as error:
        if not isinstance(error, NoFactorError):
            prepared.no_groups = str(error)
        prepared.has_groups = isinstance(error, OthersAreBetterError)
        return None
    return GroupedStep(variables, request=request, model=model, built=built)
