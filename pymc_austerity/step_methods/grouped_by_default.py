"""When `AusterityMH` becomes a `GroupedMH`."""

import inspect
from collections.abc import Sequence
from numbers import Real
from typing import Any

from pymc_austerity.setup.levels import (
    MOST_AT_ONCE,
    NoFactorError,
    NoGroupsError,
    build_groups,
)
from pymc_austerity.setup.model_inputs import checked_compile_kwargs, checked_model
from pymc_austerity.setup.prepared import PreparedModel, chosen
from pymc_austerity.step_methods.grouped_mh import GroupedMH

__all__ = ["grouped_if_possible"]


def grouped_if_possible(cls: type, vars: Sequence, settings: dict[str, Any]) -> GroupedMH | None:
    """The step method for settings of `AusterityMH`, if these and the model allow it.

    Parameters
    ----------
    cls : type
        Class whose settings these are.
    vars : sequence of variables
        Value variables.
    settings : dict
        Keyword arguments; unsuccessful preparations are left in ``settings["_prepared"]``.
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
