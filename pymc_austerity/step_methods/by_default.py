"""What ``AusterityMH()`` is: decisions on few rows, groups, or NUTS on all rows."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import pymc as pm
from numpy.typing import NDArray

from pymc_austerity.deciding.sampling import StratifiedSampling
from pymc_austerity.errors import DataError, NotRowwiseError, SettingError
from pymc_austerity.model import refuse_simulators, rows_observed, rows_of_terms
from pymc_austerity.model.rewritten import on_full_data
from pymc_austerity.setup.build import SeveralModesError
from pymc_austerity.setup.control_variates import MOST_ENTRIES
from pymc_austerity.setup.earlier_run import earlier_run
from pymc_austerity.setup.levels.build import MOST_AT_ONCE
from pymc_austerity.setup.model_inputs import checked_point
from pymc_austerity.setup.problem import pose
from pymc_austerity.setup.setup_progress import Say, setup_progress
from pymc_austerity.setup.wide import has_sparse_design
from pymc_austerity.step_methods.all_rows_nuts import AllRowsNUTS, PyMCSteps, on_all_rows
from pymc_austerity.step_methods.expected_time import (
    LONG_RUN,
    SETUP_SECONDS,
    TRANSITIONS,
    WATCHED,
    CostOfNUTS,
    Size,
    expected_cost,
    measured_cost,
    seconds_of_rows,
    size_of,
    watched_cost,
)
from pymc_austerity.step_methods.few_rows import FewRowsStep
from pymc_austerity.step_methods.grouped_mh import GroupedStep, grouped_if_possible
from pymc_austerity.step_methods.probe import FEWEST_STEPS, NOTHING_KNOWN, Probe, probe
from pymc_austerity.step_methods.request import Request
from pymc_austerity.step_methods.wide_hmc import WideHMC
from pymc_austerity.time_limit import SetupTooLongError, reviewed, share_of_rest, within

_log = logging.getLogger("pymc.austerity")

_OPEN = {"vars", "model", "rng", "compile_kwargs", "initial_point", "audit", "likelihood"}
"""Arguments of `AusterityMH` that do not ask for decisions on few rows."""

_PROBE_SHARE, _PROBE_SECONDS, _PROBE_SHARE_OF_NUTS = 0.1, 0.25, 0.1
"""Time of the short chains as a share of set-up and at least in seconds. Where they speak against a
step method, longer ones take a share of a run of NUTS."""
_PROBE_SHARE_OF_COMPILATION, _WATCHING_SHARE = 0.5, 0.25
"""Time of short chains as a share of what NUTS takes to compile, where they leave a doubt; and that
of longer ones, and of a NUTS that is watched, as a share of the run that would follow."""
_LONGER_CHAINS = 1.5
"""Times the length of chains from which longer ones show more."""
_PROBE_STEPS, _LONGEST_PROBE = (100, 400), 1_600
"""Of a chain: few, and many where few leave a doubt; and where chains may stay long in tails."""
_MARGIN, _NOT_NORMAL, _OF_LEVELS = 3.0, 5.0, 15.0
"""Times as long as NUTS is expected to take for an effective draw: what is expected of NUTS holds
where it has no difficulties, and short chains still tune. It has some where a normal approximation
is poor, and in hierarchies: of twenty of its draws, none to two are effective for the worst
entry."""
_OF_TRANSITIONS, _OF_THOSE_OF_LEVELS = 1.0, 5.0
"""The same where transitions of NUTS were made, which show some of its difficulties."""
_MIXES = 0.1
"""Share of the draws of a NUTS that was watched for a while which is known well enough to be used;
fewer may be effective because it has not found its metric yet."""
_SETUP_SHARE, _FIRST_SHARE = 0.4, 0.6
"""Time for set-up as a share of a run of NUTS; and the share of it that the first of two step
methods gets."""
_MODES_SECONDS, _MODES_SHARE = 1.0, 0.05
"""Time to look for other modes beside NUTS, at least, and as a share of its run."""
_MOST_SECONDS_OF_TRANSITION = 0.5
"""A transition of NUTS that is expected to take longer is not tried: it may have 50 times as many
gradients."""
_SURE_SECONDS, _SURE_SHARE = 10.0, 0.05
"""A longer set-up, also as a share of the run that is expected of NUTS, is interrupted to try NUTS:
it may take a fifth of what is expected."""
_TIMES_COMPILED, _OF_COMPILED, _OF_MEASURED = 5.0, 0.5, 0.2
"""Where NUTS is compiled: times as long as that a run takes at least for a set-up to be tried, and
the time for it as shares of compilation and run."""
_MANY_ROWS_OF_AN_ENTRY, _LONG_RUN_OF_FEW_ROWS = 100, 120.0
"""Rows for each entry with fewer of which a set-up may have to compile trajectories, for a minute;
and the seconds that a run of a compiled NUTS takes at least for it to be tried then."""
_UNSURE, _OUT_OF_REACH = 2.0, 2.5
"""Times the usual time of the rows with which NUTS is measured first, where each entry has few; and
times what a NUTS that was watched takes, from which longer chains do not lead back."""
_ROWS_OF_AN_ENTRY, _ROWS_OF_A_LEVEL = 10, 500
"""With fewer rows for each entry, an expansion of the rows is too far from them; and levels, where
they can be moved one by one, are tried first."""
_LONGER = "an effective draw is expected to take longer without it"
_CLEARLY_ENOUGH = 0.1
"""Effective draws of a draw with which no longer chains, and no other step method, are tried."""
_FAR_FASTER = 20.0
"""Effective draws in the time of a transition of NUTS beside which longer chains change nothing."""
_ENOUGH, _MOST_STEPS, _SHARE_OF_TRANSITION = 0.2, 20, 0.5
"""Effective draws of a recorded one that are aimed at; and the transitions between two of these: at
most how many, and how much of the time of a transition of NUTS."""
_OF_TESTS = 3.0
"""Times as fast as exact decisions that a sequential test has to be, as some of its are wrong."""
_MOST_ROWS, _MOST_SPREAD = 0.25, 1.0
"""Share of the rows that a sequential test may read where the expansion leaves more nats open.
There short chains can look well where long ones are not, as for logarithms of many scales."""


def leaves_the_choice(request: Request) -> bool:
    """Whether none of the settings asks for decisions on few rows, nor goes on with a run on few.

    A run that is none of this package leaves the choice open.
    """
    given = set(request.given)
    sampler = _sampler_of(request.resume)
    return given <= _OPEN or (given <= _OPEN | {"resume"} and sampler in ("", AllRowsNUTS.__name__))


def _sampler_of(run: Any) -> str:
    """The step method of this package that made a run; empty if none did."""
    return str(getattr(getattr(run, "sample_stats", None), "attrs", {}).get("sampler", ""))


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
    choice, has_looked = _Choice(request, variables, model), False
    if _sampler_of(request.resume) == AllRowsNUTS.__name__:
        choice.nuts.choose_because("the earlier run is one of NUTS", choice.started)
        return choice.nuts
    reason = "" if choice.rows else _nothing_observed(model)
    if not reason and (reason := _few_rows(choice.size)) and choice.measure(choice.started):
        choice.costs = choice.costs[:1]  # what is measured holds without doubt
        reason = "" if _is_long(choice.costs[0], choice.size) else reason
    if not reason:
        best = choice.best_on_few_rows()
        if not best.why_not:
            best.step.take(_steps_per_draw(best.found, choice.costs), choice.started)
            return best.step
        reason = best.why_not
        has_looked = best.step is not None or best.has_several_modes
    if not has_looked:
        choice.warn_of_modes()
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
        return self.is_late or self.why_not == _LONGER


class _Choice:
    """What is to be sampled, and how long NUTS takes for it, once that is known.

    Parameters
    ----------
    request, variables, model
        As in `best_of_all`.

    Attributes
    ----------
    rows : dict of str to int
        Rows of each term of the likelihood.
    size : Size
    costs : sequence of CostOfNUTS
        What NUTS takes, as it was measured if it was, and as it is expected.
    """

    def __init__(self, request: Request, variables: Sequence, model: pm.Model) -> None:
        self.started, self._own = time.perf_counter(), -time.process_time()
        self._request, self._variables, self._model = request, variables, model
        self._point = _checked(request, model)
        whole, named = on_full_data(model), request.for_preparing["likelihood"]
        observed = rows_observed(whole)
        self.rows = observed if named is None else rows_of_terms(whole, named)
        self.size = size_of(whole, self._point, observed | self.rows)
        self.costs: tuple[CostOfNUTS, ...] = (expected_cost(self.size),)

    @cached_property
    def nuts(self) -> AllRowsNUTS | PyMCSteps:
        """NUTS on all rows, which is compiled when it is asked for."""
        kwargs = self._request.options.compile_kwargs
        its = {"point": self._point, "rows": self.rows, "rng": self._request.rng}
        its["compile_kwargs"] = kwargs
        with self._with_nuts("compiling NUTS") as say:
            step = on_all_rows(self._variables, self._model, its)
            if self._request.resume is not None:
                say("learning from the earlier run")
                _resume(step, self._request.resume, self._model)
            return step

    @contextmanager
    def _with_nuts(self, stage: str) -> Iterator[Say]:
        """A stage of which the time is not that of the other samplers."""
        began = time.process_time()
        try:
            with setup_progress("AusterityMH", stage) as say:
                yield say
        finally:
            self._own -= time.process_time() - began

    @property
    def _seconds_left(self) -> float:
        """Processor time that the set-up and the short chains of other samplers may still take."""
        return _time_for_setup(self.costs[0]) - (self._own + time.process_time())

    def measure(self, started: float) -> bool:
        """Find out what NUTS takes, where it moves all variables and can begin.

        Parameters
        ----------
        started : float
            When its compilation began, by the performance counter.
        """
        step = self.nuts
        if not isinstance(step, AllRowsNUTS) or len(step.vars) < len(self._variables):
            return False
        try:
            with self._with_nuts("trying NUTS"):
                measured = measured_cost(step, self._point, started, self.size)
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
            with setup_progress("AusterityMH", "looking for other modes"):
                self.nuts.warn_of_modes(self._point, seconds)

    def best_on_few_rows(self) -> _Best:
        """The best step method of this package, beside a NUTS that is tried where that decides."""
        begun = time.process_time()
        after = max(_SURE_SECONDS, _SURE_SHARE * self.costs[0].of_run)
        with reviewed(after, self._time_beside_nuts):
            best = self._on_few_rows(_time_for_setup(self.costs[0]))
        spent = time.process_time() - begun
        if not (best.is_open and self._tries_nuts()):
            return best
        if not best.is_late:
            return best._replace(why_not=_why_not(best.step, best.found, self.costs))
        left = _time_for_setup(self.costs[0]) - spent
        return self._on_few_rows(left) if left > spent else best

    def _tries_nuts(self) -> bool:
        """Try NUTS where that was not done and does not take long: whether it was done now."""
        cost = self.costs[0]
        if cost.is_measured or cost.per_draw >= _MOST_SECONDS_OF_TRANSITION:
            return False
        return self.measure(time.perf_counter())

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
                    if isinstance(step, WideHMC):  # it was tried at set-up
                        tried = [(step, step.tried)]
                        break
                    with reviewed(math.inf, float):  # the time of its chains is measured
                        found = _glimpsed(step, self._point, self.costs)
                    if _is_clear(step, found, self.costs):
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

    def _best_of(self, tried: Sequence[tuple[Any, Probe]]) -> _Best:
        """The fastest one that longer chains say nothing against, where short ones left a doubt."""
        looked_at: list[_Best] = []
        with reviewed(math.inf, float):  # set-up is over, and the time of chains is measured
            for step, found in sorted(tried, key=_by_time):
                if _leaves_a_doubt(step, found, self.costs) or _may_stay(step, found, self.costs):
                    self._tries_nuts()
                if self._depends_on_mixing(step, found):
                    follows = _why_not(step, found, self.costs)
                    its = self.costs[0].of_run if follows else _seconds_of_run(found, self.costs)
                    self._watch_nuts(_WATCHING_SHARE * its)
                longer = _looked_at(step, found, self._point, self.costs, self._seconds_left)
                looked_at.append(_Best(step, longer, _why_not(step, longer, self.costs)))
                if not looked_at[-1].why_not:
                    return looked_at[-1]
        return min(looked_at, key=lambda best: best.found.seconds_per_effective_draw)

    def _depends_on_mixing(self, step: Any, found: Probe) -> bool:
        """Whether the share of the draws of NUTS that are effective decides."""
        share = found.seconds_per_effective_draw / self.costs[0].per_draw
        why_not = _why_not(step, found, self.costs)
        is_near = self.costs[0].is_measured and 1.0 < share < 1.0 / _MIXES
        if isinstance(step, GroupedStep) and not why_not:
            return share > 1.0
        return is_near and why_not in ("", _LONGER)

    def _watch_nuts(self, most_seconds: float) -> None:
        """Find out how many draws of NUTS are effective, where that does not take long."""
        self._tries_nuts()
        cost = self.costs[0]
        is_short = WATCHED * cost.per_draw < most_seconds
        if cost.is_measured and math.isnan(cost.share_effective) and is_short:
            with self._with_nuts("trying NUTS for longer"):
                watched = watched_cost(self.nuts, self._point, cost, most_seconds)
                self.costs = (watched, *self.costs[1:])

    def _candidates(self) -> Iterator[Any]:
        """Step methods in the order in which they are tried."""
        request, variables, model, size = self._request, self._variables, self._model, self.size
        prepared = request.prepared(model)
        grouped = grouped_if_possible(request, variables, model, prepared)
        per_entry = size.n_rows / size.dimension
        if grouped is not None:
            yield grouped
            if size.dimension > MOST_AT_ONCE or per_entry < _ROWS_OF_A_LEVEL:
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
            in_order.insert(0 if per_entry < _ROWS_OF_A_LEVEL else 1, by_level)
        yield from _made_in_time(
            in_order, f"{size.n_rows:,} rows are few for {size.dimension} dimensions"
        )


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
    checked_point(request.options.initial_point, model)
    refuse_simulators(model)
    return checked_point(None, model)


def _nothing_observed(model: pm.Model) -> str:
    """Why there are no rows, and what to do if they are those of a potential."""
    names = [potential.name for potential in model.potentials if potential.type.ndim]
    if not names:
        return "no variable is observed"
    return f"no variable is observed; if {names[0]!r} is the likelihood, add likelihood={names[:1]}"


def _has_many_rows(size: Size) -> bool:
    return size.n_rows >= _MANY_ROWS_OF_AN_ENTRY * size.dimension


def _few_rows(size: Size) -> str:
    """Why no set-up is worth its time, as a clause; empty if one may be."""
    if seconds_of_rows(size) < (1.0 if _has_many_rows(size) else _UNSURE) * SETUP_SECONDS:
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


def _by_time(tried: tuple[Any, Probe]) -> tuple[bool, float]:
    """Those of which something is known first, the fastest of these before the others."""
    step, found = tried
    times = _OF_TESTS if _is_test(step) else 1.0
    return math.isnan(found.share_effective), times * found.seconds_per_effective_draw


def _is_clear(step: Any, found: Probe, costs: Sequence[CostOfNUTS]) -> bool:
    return found.share_effective >= _CLEARLY_ENOUGH and not _why_not(step, found, costs)


def _glimpsed(step: Any, point: dict[str, NDArray], costs: Sequence[CostOfNUTS]) -> Probe:
    """What chains show in a small part of the time of set-up."""
    few, many = _PROBE_STEPS
    seconds = _usual_seconds(step)
    found = probe(step, point, seconds, few)
    longer = _PROBE_SHARE_OF_COMPILATION * costs[0].compilation  # of NUTS, which comes next
    is_much = longer > _LONGER_CHAINS * seconds
    if is_much and found.n_steps < few and _leaves_a_doubt(step, found, costs):
        seconds, found = longer, probe(step, point, longer, few)
    is_enough = found.n_steps < few or _is_clear(step, found, costs)
    return found if is_enough else probe(step, point, seconds, many)


def _looked_at(
    step: Any,
    found: Probe,
    point: dict[str, NDArray],
    costs: Sequence[CostOfNUTS],
    most_seconds: float,
) -> Probe:
    """What longer chains show, where those before them left a doubt."""
    usual = _usual_seconds(step)
    own = max(_WATCHING_SHARE * _seconds_of_run(found, costs), usual)
    ends = time.process_time() + most_seconds
    longest = min(_PROBE_SHARE_OF_NUTS * costs[0].of_run, own, most_seconds)
    watched = costs[0].per_draw / max(costs[0].share_effective, _MIXES)  # NaN if it was not
    if longest < usual or found.seconds_per_effective_draw > _OUT_OF_REACH * watched:
        return found
    if math.isnan(found.share_effective):
        found = probe(step, point, longest, FEWEST_STEPS)
        if not found.wrong:
            return found
    for n_steps in _PROBE_STEPS:
        if found.n_steps < n_steps and _leaves_a_doubt(step, found, costs):
            if _LONGER_CHAINS * found.seconds > longest:
                return found
            n_before, found = found.n_steps, probe(step, point, longest, n_steps)
            longest = min(longest, ends - time.process_time())
            if longest < usual or found.n_steps < _LONGER_CHAINS * n_before:
                return found
    if _may_stay(step, found, costs) and not _why_not(step, found, costs):
        found = probe(step, point, longest, _LONGEST_PROBE)
    return found


def _seconds_of_run(found: Probe, costs: Sequence[CostOfNUTS]) -> float:
    """What a run of as many transitions as that of NUTS takes, as far as it is known."""
    if not math.isfinite(found.seconds_per_step):
        return costs[0].of_run
    return TRANSITIONS * found.seconds_per_step * _steps_per_draw(found, costs)


def _usual_seconds(step: Any) -> float:
    return max(_PROBE_SHARE * step.setup_seconds, _PROBE_SECONDS)


def _leaves_a_doubt(step: Any, found: Probe, costs: Sequence[CostOfNUTS]) -> bool:
    """Whether longer chains, or a try of NUTS, may change the choice."""
    if _reads_many_rows(step, found):
        return False
    is_unknown = math.isnan(found.share_effective)
    return is_unknown or found.is_vague or bool(_why_not(step, found, costs))


def _may_stay(step: Any, found: Probe, costs: Sequence[CostOfNUTS]) -> bool:
    """Whether chains may stay so long in tails that more steps change the choice.

    In a posterior that is not normal, a few hundred steps look better than thousands.
    """
    is_low = isinstance(step, FewRowsStep) and found.share_effective < _CLEARLY_ENOUGH
    is_near = found.seconds_per_effective_draw * _FAR_FASTER > costs[0].per_draw
    return is_low and is_near


def _why_not(step: Any, found: Probe, costs: Sequence[CostOfNUTS]) -> str:
    """What short chains say against a step method; empty if nothing."""
    if _reads_many_rows(step, found):
        return f"a sequential test reads {found.share_of_rows:.0%} of the rows"
    if found.wrong:
        return found.wrong
    share = costs[0].share_effective
    longest = max(_seconds_of_nuts(step, cost) for cost in costs)
    if not math.isnan(share):
        longest = costs[0].per_draw / max(share, _MIXES)
    return "" if found.seconds_per_effective_draw < longest else _LONGER


def _reads_many_rows(step: Any, found: Probe) -> bool:
    """Whether a sequential test reads many rows beside a poor expansion."""
    if not (_is_test(step) and found.share_of_rows > _MOST_ROWS):
        return False
    return not step.spread_of_residuals <= _MOST_SPREAD


def _is_test(step: Any) -> bool:
    """Whether decisions are sequential tests, of which some are wrong."""
    return isinstance(step, FewRowsStep) and isinstance(step.target.sampling, StratifiedSampling)


def _seconds_of_nuts(step: Any, cost: CostOfNUTS) -> float:
    """What NUTS may take for an effective draw in a posterior like that of a step method."""
    if isinstance(step, GroupedStep):
        return (_OF_THOSE_OF_LEVELS if cost.is_measured else _OF_LEVELS) * cost.per_draw
    is_far = isinstance(step, FewRowsStep) and step.target.surrogate is not None
    margin = _NOT_NORMAL if is_far else _MARGIN
    return (_OF_TRANSITIONS if cost.is_measured else margin) * cost.per_draw


def _steps_per_draw(found: Probe, costs: Sequence[CostOfNUTS]) -> int:
    """Transitions between recorded draws, more than one where these would be much alike.

    A user of NUTS records what it takes for some hundred effective draws: as many draws should do,
    in less time.
    """
    if not found.share_effective > 0.0:
        return 1
    of_nuts = max(cost.per_draw for cost in costs)
    most = min(_MOST_STEPS, int(_SHARE_OF_TRANSITION * of_nuts / found.seconds_per_step))
    return max(1, min(int(_ENOUGH / found.share_effective), most))
