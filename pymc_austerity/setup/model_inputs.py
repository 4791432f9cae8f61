"""Inputs of a step method, checked at once: model, variables, seeds, compiler."""

import inspect
import os
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pytensor
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    OWN_DRAWS,
    RandomVariable,
    get_mode,
    get_random_generator,
    predefined_modes,
)
from pymc_austerity.arguments import choice_among
from pymc_austerity.errors import DataError, SettingError, SettingTypeError


def checked_model(value: Any) -> pm.Model:
    """A model, by default the one on the context stack."""
    try:
        model = pm.modelcontext(value)
    except TypeError as error:
        raise SettingTypeError(
            "there is no model to sample: construct the step method inside of `with pm.Model():`, "
            "or give model=."
        ) from error
    if not hasattr(model, "free_RVs"):
        raise SettingTypeError(
            f"model={value!r} is not a model: give a pm.Model, or leave it out inside of "
            "`with pm.Model():`."
        )
    refuse_duplicates(model)
    _refuse_columns(model)
    return model


def refuse_duplicates(model: pm.Model) -> None:
    """Refuse a model that holds an observed variable twice, of which PyMC has no density."""
    names = [variable.name for variable in model.observed_RVs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SettingError(
            f"the model lists {', '.join(map(repr, twice))} twice since "
            "pm.sample_posterior_predictive was called: build the model again, and name the "
            f"variables there, as in var_names={twice!r}."
        )


def _refuse_columns(model: pm.Model) -> None:
    """Refuse a response that is a column where its distribution has a vector of parameters."""
    for variable in model.observed_RVs:
        found, op = model.rvs_to_values[variable].type, variable.owner.op
        if found.shape[1:] != (1,) or not isinstance(op, RandomVariable) or op.ndim_supp:
            continue
        parameters = op.dist_params(variable.owner)
        lengths = [int(each.shape[-1].eval()) for each in parameters if each.type.ndim]
        if max(lengths, default=1) > 1:
            raise DataError(
                f"the values of {variable.name!r} are a column, and its distribution has "
                f"{max(lengths):,} of each parameter: give a vector, such as table['y'] or "
                "values[:, 0]."
            )


def checked_data(value: Any) -> tuple[str, ...]:
    """Names of the data whose rows are in sources; none by default."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise SettingTypeError(
            f"data of type {type(value).__name__} is not a dictionary: give where the rows of each "
            "pm.Data or observed variable are, as in data={'x': source, 'y': source}."
        )
    for name in value:
        if not isinstance(name, str):
            raise SettingTypeError(
                f"data= has the key {name!r:.80}, which is not a name: give the name of a pm.Data "
                "or of an observed variable, as in data={'x': source, 'y': source}."
            )
    if not value:
        raise SettingError(
            "data={} names nothing: leave it out, or give where the rows of each pm.Data or "
            "observed variable are."
        )
    return tuple(value)


def checked_setup_folder(value: Any, data: Any) -> Path | None:
    """The folder for results of passes; None where none is named."""
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike):
        raise SettingTypeError(f"setup_folder={value!r:.80} is not a path: name a folder.")
    if data is None:
        raise SettingError(
            "setup_folder= has no effect without data=, as set-up reads the rows from memory: "
            "leave it out."
        )
    return Path(value).expanduser().absolute()


def checked_generator(rng: Any) -> np.random.Generator:
    """A generator from a seed."""
    try:
        return get_random_generator(rng)
    except (TypeError, ValueError) as error:
        raise SettingTypeError(
            f"rng={rng!r} is not a source of random numbers: give an integer of at least 0 or a "
            "numpy.random.Generator."
        ) from error


def checked_compile_kwargs(value: Any) -> dict[str, Any]:
    """Arguments of ``pymc.compile``."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise SettingTypeError(
            f"compile_kwargs={value!r} is not a dictionary: give arguments of pymc.compile, as in "
            "{'mode': 'NUMBA'}."
        )
    known = {"random_seed", *inspect.signature(pytensor.function).parameters}
    known -= {"inputs", "outputs"}
    for name in set(value) - known:
        raise SettingError(
            f"compile_kwargs has {name!r}, which pymc.compile does not take here: "
            f"{choice_among(name, sorted(known))}."
        )
    try:
        get_mode(value.get("mode"))
    except Exception as error:
        raise SettingError(
            f"compile_kwargs has the mode {value['mode']!r}, which PyTensor does not know: "
            f"{choice_among(str(value['mode']).upper(), predefined_modes)}."
        ) from error
    return dict(value)


def checked_point(value: Any, model: pm.Model) -> dict[str, NDArray]:
    """The point at which a model is verified; by default its initial point."""
    usual = model.initial_point()
    if value is None:
        return usual
    if not isinstance(value, Mapping):
        raise SettingTypeError(
            f"initial_point of type {type(value).__name__} is not a point: give a dictionary such "
            "as model.initial_point() returns."
        )
    for name, array in usual.items():
        found = f"has shape {np.shape(value[name])}" if name in value else "is missing"
        if found != f"has shape {np.shape(array)}":
            raise SettingError(
                f"initial_point does not fit the model, as {name!r} {found} and should have shape "
                f"{np.shape(array)}: change values of what model.initial_point() returns."
            )
    return dict(value)


def checked_variables(variables: Any, model: pm.Model) -> list:
    """The value variables of the variables, or names of variables, that a user gives.

    They are in the order of the model, in which PyMC joins values if there are no other variables.
    """
    if not model.free_RVs:
        raise SettingError(
            "the model has no free variables, so there is nothing to sample: add a prior for "
            "each unknown, e.g. pm.Normal('beta')."
        )
    if variables is None:
        _refuse_trees(model.free_RVs, model)
        return list(model.value_vars)
    if hasattr(variables, "free_RVs"):
        raise SettingTypeError(
            "a model was given as vars, which is the first argument: give it as model=."
        )
    if isinstance(variables, Real):
        raise SettingTypeError(
            f"{variables!r} was given as vars, which is the first argument: name what it is, as in "
            f"epsilon={variables!r}."
        )
    if isinstance(variables, str) or not isinstance(variables, Sequence):
        variables = [variables]
    if not variables:
        raise SettingError(
            "vars=[] names no variable to sample: leave it out for all of them, or name some."
        )
    chosen = [_value_variable(variable, model) for variable in variables]
    _refuse_trees([model.values_to_rvs[value] for value in chosen], model)
    return [value for value in model.value_vars if value in chosen]


def _refuse_trees(variables: Sequence, model: pm.Model) -> None:
    """Refuse sums of trees of PyMC-BART, whose density is not available in PyMC."""
    trees = [variable.name for variable in variables if _is_bart(variable)]
    if not trees:
        return
    others = [variable.name for variable in model.free_RVs if not _is_bart(variable)]
    raise SettingError(
        f"{', '.join(map(repr, trees))} is a sum of trees of PyMC-BART, which has a step method of "
        + (
            f"its own: name the variables to sample, as in vars={others}, and pm.sample adds it."
            if others
            else "its own, and the model has no other variables: leave step= out."
        )
    )


def _is_bart(variable: Any) -> bool:
    return any(base.__name__ == "BARTRV" for base in type(variable.owner.op).__mro__)


def _value_variable(variable: Any, model: pm.Model) -> Any:
    name = variable if isinstance(variable, str) else getattr(variable, "name", None)
    for random_variable in model.free_RVs:
        value = model.rvs_to_values[random_variable]
        if variable is random_variable or variable is value or name in (random_variable.name,):
            return value
    names = [random_variable.name for random_variable in model.free_RVs]
    raise SettingError(
        f"vars= names {name or variable!r}, which is not a free variable of the model: "
        f"{choice_among(name, names)}."
    )


def raveled(point: Mapping[str, NDArray], variables: Sequence) -> NDArray:
    """The values of some variables, in the given order, as one vector.

    Raises
    ------
    SettingError
        The variables have no entries.
    """
    if not any(np.size(point[variable.name]) for variable in variables):
        names = ", ".join(repr(variable.name) for variable in variables)
        raise SettingError(
            f"{names} has no entries, so there is nothing to sample: leave it out of the model, or "
            "out of vars."
        )
    return np.concatenate([np.ravel(point[variable.name]) for variable in variables])


def draws_of_model(what: str, run: Any) -> Any:
    """Draws of the variables of a model, in a run of ``pm.sample`` or of Bambi's ``fit``.

    Parameters
    ----------
    what : str
        The argument that holds the run.
    run : InferenceData or DataTree
        The run. If it is Bambi's, some draws as PyMC made them are in a group of their own.

    Raises
    ------
    SettingError
        Bambi made the run with another sampler, so that there is no such group.
    """
    if hasattr(run, OWN_DRAWS):
        return getattr(run, OWN_DRAWS)
    refuse_draws_of_bambi(what, run.posterior)
    return run.posterior


def refuse_draws_of_bambi(what: str, posterior: Any) -> None:
    """Refuse results of Bambi's ``fit``, which are not draws of the variables of its PyMC model.

    Parameters
    ----------
    what : str
        The argument that holds the draws.
    posterior : xarray.Dataset or DataTree
        The draws.

    Raises
    ------
    SettingError
        The draws are from Bambi: their intercept is that for predictors that are not centered.
    """
    if posterior.attrs.get("modeling_interface") == "bambi":
        raise SettingError(
            f"{what} is a result of Bambi's fit, whose intercept is another one than in the PyMC "
            "model, where predictors are centered: use methods of the Bambi model, such as "
            "predict, or take draws by pm.sample inside of `with model.backend.model:`."
        )
