"""Arguments of ``pm.sample`` that cannot be used together with a step method."""

import itertools
import logging
import warnings
from collections.abc import Sequence
from typing import Any

import pymc as pm

from pymc_austerity.errors import AusterityWarning, SettingError
from pymc_austerity.step_methods.all_rows_nuts import AllRowsNUTS
from pymc_austerity.step_methods.austerity_step import AusterityStep

_log = logging.getLogger("pymc.austerity")


def check_step_methods(
    model: pm.Model,
    steps: list[Any],
    nuts_sampler: str | None,
    nuts_settings: dict[str, Any],
    var_names: Sequence[str] | None,
) -> bool:
    """Reject step methods of other models, and settings without effect beside a step method.

    What `AusterityMH` was left to choose takes the settings of NUTS where it is NUTS, and does
    without them where it is not.

    Parameters
    ----------
    model : pymc.Model
        The model that is sampled.
    steps : list of step methods
        The user's step methods.
    nuts_sampler : str or None
        Name of a sampler that replaces PyMC's NUTS.
    nuts_settings : dict
        Settings of NUTS.
    var_names : sequence of str or None
        Variables to store; None stores all.

    Returns
    -------
    bool
        Whether the settings of NUTS have done their work, so that PyMC must not see them.

    Raises
    ------
    SettingError
        The reason, in one sentence. Runs without a step method of this package are not checked.

    Warns
    -----
    AusterityWarning
        A Deterministic with one entry per row is computed and stored at every draw.
    """
    ours = [step for step in steps if isinstance(step, AusterityStep)]
    for step in ours:
        step.refuse_other_model(model)
    if not ours:
        return False
    name = type(ours[0]).__name__
    _refuse_moved_twice(steps)
    if nuts_sampler is not None:
        raise SettingError(
            f"nuts_sampler={nuts_sampler!r} samples all variables by itself and takes no step "
            f"method such as {name}: leave out nuts_sampler or step."
        )
    is_used = _use_settings_of_nuts(model, steps, ours, nuts_settings)
    by_row = {name for step in ours for name in step.deterministics_by_row}
    stored = by_row if var_names is None else by_row & set(var_names)
    for deterministic in sorted(stored):
        warnings.warn(
            f"Deterministic {deterministic!r} has one entry per row ({ours[0].n_rows:,}), which "
            "PyMC computes and stores at every draw: leave it out with pm.sample(var_names=[...]) "
            "and compute it afterwards with pm.compute_deterministics.",
            AusterityWarning,
            stacklevel=4,
        )
    return is_used


def _use_settings_of_nuts(
    model: pm.Model, steps: list[Any], ours: list[AusterityStep], nuts_settings: dict[str, Any]
) -> bool:
    """Whether the settings are used up; PyMC uses them for variables that it moves by NUTS."""
    on_all_rows = [step for step in ours if isinstance(step, AllRowsNUTS)]
    for step in on_all_rows:
        step.use(nuts_settings)
    moved = {variable for step in steps for variable in step.vars}
    are_all_moved = set(model.continuous_value_vars) <= moved
    if on_all_rows or not nuts_settings or not are_all_moved:
        return are_all_moved
    settings = ", ".join(f"{key}={value!r}" for key, value in nuts_settings.items())
    if not all(step.is_chosen_by_default for step in ours):
        raise SettingError(
            f"{settings} has no effect, because {type(ours[0]).__name__} updates all variables "
            "and NUTS is not used: leave it out."
        )
    _log.info(f"{settings} has no effect, because NUTS is not used.")
    return True


def _refuse_moved_twice(steps: list[Any]) -> None:
    """Reject a variable of several step methods, where each one alone would do."""
    for one, other in itertools.combinations(steps, 2):
        twice = [variable.name for variable in one.vars if variable in other.vars]
        if twice:
            names = f"{type(one).__name__} and {type(other).__name__}"
            raise SettingError(
                f"{', '.join(map(repr, twice))} is moved by both {names}: name the variables of "
                "each with vars=, or leave one of them out."
            )
