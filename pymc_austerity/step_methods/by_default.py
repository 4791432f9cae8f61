"""What ``AusterityMH()`` is: decisions on few rows, groups, or NUTS on all rows."""

import inspect
import logging
import time
from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any

from pymc_austerity.errors import DataError, NotRowwiseError, SettingError
from pymc_austerity.model import refuse_simulators
from pymc_austerity.setup.expected_time import (
    SETUP_SECONDS,
    Size,
    nuts_seconds,
    seconds_per_effective_draw,
    size_of,
)
from pymc_austerity.setup.levels import (
    MOST_AT_ONCE,
    NoFactorError,
    NoGroupsError,
    build_groups,
)
from pymc_austerity.setup.model_inputs import (
    checked_compile_kwargs,
    checked_generator,
    checked_model,
    checked_point,
)
from pymc_austerity.setup.prepared import PreparedModel, chosen
from pymc_austerity.step_methods.all_rows_nuts import on_all_rows
from pymc_austerity.step_methods.grouped_mh import GroupedMH
from pymc_austerity.step_methods.probe import Probe, probe
from pymc_austerity.time_limit import SetupTooLongError, within

__all__ = ["best_of_all", "grouped_if_possible", "leaves_the_choice"]

_log = logging.getLogger("pymc.austerity")

_OPEN = {"model", "rng", "compile_kwargs", "initial_point", "audit"}
"""Arguments of `AusterityMH` that do not ask for decisions on few rows."""

_PROBE_SHARE, _PROBE_SECONDS = 0.2, 0.5
"""Time of the short chains as a share of set-up, and at least in seconds."""
_COMPILATION_SECONDS = 5.0
"""Time that NUTS takes to compile."""
_ENOUGH_EFFECTIVE = 0.03
"""Effective draws of a draw that suffice, whatever NUTS does."""
_CLEARLY_ENOUGH = 0.1
"""Effective draws of a draw with which no other step method of this package is tried."""


def leaves_the_choice(cls: type, settings: dict[str, Any]) -> bool:
    """Whether none of the settings asks for decisions on few rows.

    Parameters
    ----------
    cls : type
        Class whose settings these are.
    settings : dict
        Keyword arguments.
    """
    return set(_asked(cls, settings)) <= _OPEN


def _asked(cls: type, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that differ from the defaults."""
    known = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    return {
        name: value
        for name, value in settings.items()
        if name not in known or value is not known[name].default
    }


def best_of_all(cls: type, variables: Sequence, settings: dict[str, Any]) -> Any:
    """The step method with the least expected time, which may be PyMC's NUTS.

    Parameters
    ----------
    cls : type
        `AusterityMH`.
    variables : sequence of variables
        Value variables.
    settings : dict
        Its keyword arguments, which leave the choice.
    """
    started = time.perf_counter()
    model = checked_model(settings.get("model"))
    point = _checked(settings, model)
    size = size_of(model, point)
    reason = _few_rows(size) if model.observed_RVs else "no variable is observed"
    if not reason:
        step, reason = _on_few_rows(cls, variables, settings, point, size)
        if not reason:
            _log.info(step.summary)
            return step
    of_nuts: dict[str, Any] = {"started": started, "point": point}
    of_nuts |= {name: settings[name] for name in ("rng", "compile_kwargs") if name in settings}
    return on_all_rows(variables, model, reason, of_nuts)


def _checked(settings: dict[str, Any], model: Any) -> dict[str, Any]:
    """The model's initial point; values that cannot be used are errors, not reasons for NUTS."""
    checked_generator(settings.get("rng"))
    checked_compile_kwargs(settings.get("compile_kwargs"))
    if settings.get("initial_point") is not None:
        checked_point(settings["initial_point"], model)
    refuse_simulators(model)
    return checked_point(None, model)


def _few_rows(size: Size) -> str:
    """Why no set-up is worth its time, as a clause; empty if one may be."""
    if nuts_seconds(size) < SETUP_SECONDS:
        return f"{size.n_rows:,} rows are too few to gain from reading fewer"
    return ""


def _on_few_rows(
    cls: type, variables: Sequence, settings: dict[str, Any], point: dict[str, Any], size: Size
) -> tuple[Any, str]:
    """The best step method of this package, or why none is better than NUTS."""
    tried: list[tuple[Any, Probe]] = []
    reason = ""
    try:
        with within(_time_for_setup(size)):
            for step in _candidates(cls, variables, dict(settings)):
                tried.append((step, _probed(step, point)))
                if tried[-1][1].share_effective >= _CLEARLY_ENOUGH:
                    break
    except SetupTooLongError as error:
        reason = str(error)
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
        return None, reason
    step, found = min(tried, key=lambda one: one[1].seconds_per_effective_draw)
    return step, _why_not(found, size)


def _candidates(cls: type, variables: Sequence, settings: dict[str, Any]) -> Iterator[Any]:
    """Step methods in the order in which they are tried."""
    grouped = grouped_if_possible(cls, variables, settings)
    if grouped is not None:
        yield grouped
        return
    yield cls(variables, **settings, _is_candidate=True)
    grouped = grouped_if_possible(cls, variables, settings, only_where_best=False)
    if grouped is not None:
        yield grouped


def _time_for_setup(size: Size) -> float:
    """Seconds after which a set-up is given up: a part of a run of NUTS and of its compilation."""
    return _COMPILATION_SECONDS + 0.25 * nuts_seconds(size)


def _probed(step: Any, point: dict[str, Any]) -> Probe:
    return probe(step, point, max(_PROBE_SECONDS, _PROBE_SHARE * step.setup_seconds))


def _why_not(found: Probe, size: Size) -> str:
    """What short chains say against a step method; empty if nothing."""
    if found.wrong or found.share_effective >= _ENOUGH_EFFECTIVE:
        return found.wrong
    if found.seconds_per_effective_draw < seconds_per_effective_draw(size):
        return ""
    return "an effective draw is expected to take longer without it"


def grouped_if_possible(
    cls: type, vars: Sequence, settings: dict[str, Any], *, only_where_best: bool = True
) -> GroupedMH | None:
    """A `GroupedMH` for settings of `AusterityMH`, if these and the model allow it.

    Parameters
    ----------
    cls : type
        Class whose settings these are.
    vars : sequence of variables
        Value variables.
    settings : dict
        Keyword arguments; unsuccessful preparations are left in ``settings["_prepared"]``.
    only_where_best : bool
        Whether to refuse models for which moves of everything at once are likely to be faster.
    """
    known = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    if not set(settings) <= set(known):
        return None
    asked = _asked(cls, settings)
    prepared = asked.pop("_prepared", None)
    if asked.get("test") == "exact":
        del asked["test"]
    asked.pop("max_error", None)  # no decision of groups is wrong without an epsilon
    if not set(asked) <= set(inspect.signature(GroupedMH.__init__).parameters):
        return None
    if not all(isinstance(asked.get(name, 0.0), Real) for name in ("epsilon", "audit")):
        return None

    def keep(prepared: PreparedModel) -> None:
        settings["_prepared"] = prepared

    model, kwargs = checked_model(asked.get("model")), asked.get("compile_kwargs")
    kwargs, beyond = checked_compile_kwargs(kwargs), MOST_AT_ONCE if "epsilon" in asked else 0
    where = (model, vars, kwargs, chosen(asked), keep, prepared)
    try:
        built = build_groups(*where, only_where_best=only_where_best, only_beyond=beyond)
    except NoFactorError:
        return None
    except NoGroupsError as error:
        if "_prepared" in settings:
            settings["_prepared"].no_groups = str(error)
        return None
    return GroupedMH(vars, **asked, _built=built)
