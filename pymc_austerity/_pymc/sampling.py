"""What ``pm.sample`` is given, and what it returns."""

import functools
import importlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import NDArray
from pymc.exceptions import SamplingError

from pymc_austerity.errors import warn_user

SAMPLING_LOOP = frozenset({("pymc.sampling.mcmc", "_iter_sample")})
"""The loop over the draws of one chain in the user's process: module and name of the function."""

WORKER_LOOP = frozenset({("pymc.sampling.parallel", "_start_loop")})
"""The same in a process of a parallel run."""

OWN_DRAWS = "draws_of_pymc"
"""Group of a result of Bambi with draws of the variables of its PyMC model, the last ones among
them."""

_MOST_KEPT = 500

RECORDING = frozenset({("pymc.backends.ndarray", "record"), ("pymc.backends.zarr", "record")})
"""Where a draw is stored, with PyMC 6 by compiled code; those of workers, too."""

# ------------------------------------------------------------------ what pm.sample is given


class ChainsToCome(NamedTuple):
    """What ``pm.sample`` knows of its chains before it looks at step methods.

    Attributes
    ----------
    generators : sequence of numpy.random.Generator
        Those with which the chains will begin.
    seeds : sequence of int
        Seeds of their initial points.
    initial_values : dict, sequence of dict, or None
        ``initvals``, as given.
    n_retries : int
        ``jitter_max_retries``, as given.
    """

    generators: Sequence[np.random.Generator]
    seeds: Sequence[int]
    initial_values: Any
    n_retries: int


def before_sampling(check: Callable[..., bool], complete: Callable[[Any, pm.Model], Any]) -> None:
    """Look at what ``pm.sample`` was given, before anything begins, and complete it.

    PyMC assigns step methods to variables first of all; this wraps the function that does.

    Parameters
    ----------
    check : callable
        ``check(model, steps, nuts_sampler, nuts_settings, var_names, chains)``: the step methods
        that the user gave, the name of a sampler other than PyMC's or None, the settings of NUTS,
        the names of the variables to store or None, and the `ChainsToCome`. It returns whether the
        settings of NUTS have done their work, and PyMC, which rejects settings without effect, must
        not see them.
    complete : callable
        ``complete(step, model)``: the step methods that PyMC goes on with.
    """
    mcmc: Any = importlib.import_module("pymc.sampling.mcmc")
    assign = mcmc.assign_step_methods

    @functools.wraps(assign)
    def assign_step_methods(model: pm.Model, step: Any = None, methods: Any = None) -> Any:
        given = sys._getframe(1).f_locals
        step = complete(step, model)
        nuts_sampler = given.get("nuts_sampler")
        of_nuts = {"init": init} if (init := given.get("init", "auto")) != "auto" else {}
        kwargs = given.get("kwargs") or {}
        of_nuts |= kwargs.get("nuts") or {}
        is_used = check(
            model,
            flat_steps(step),
            None if nuts_sampler == "pymc" else nuts_sampler,
            of_nuts,
            given.get("var_names"),
            _chains_to_come(given),
        )
        if is_used:
            kwargs.pop("nuts", None)
        return assign(model, step, methods=methods)

    mcmc.assign_step_methods = assign_step_methods


def _chains_to_come(given: Mapping[str, Any]) -> ChainsToCome | None:
    """From the local variables of ``pm.sample``; None for another caller."""
    if "random_seed_list" not in given:
        return None
    generators, seeds = given["rngs"], given["random_seed_list"]
    return ChainsToCome(generators, seeds, given["initvals"], given["jitter_max_retries"])


def starts_of_nuts(
    model: pm.Model, chains: ChainsToCome, log_density: Callable[[Mapping[str, NDArray]], float]
) -> list[dict[str, NDArray]]:
    """Where the chains of ``pm.sample()`` begin: initial points, jittered within (-1, 1).

    Parameters
    ----------
    model : pymc.Model
    chains : ChainsToCome
    log_density : callable
        The log-density at a point. Where it is not finite, another point is tried.

    Returns
    -------
    list of dict
        Empty where no finite log-density was found.
    """
    mcmc: Any = importlib.import_module("pymc.sampling.mcmc")
    try:
        return mcmc._init_jitter(
            model,
            chains.initial_values,
            seeds=chains.seeds,
            jitter=True,
            jitter_max_retries=chains.n_retries,
            logp_fn=log_density,
        )
    except SamplingError:
        return []


def set_first_mean(nuts: pm.NUTS, mean: NDArray) -> None:
    """Give a NUTS that exists the point about which its metric begins to adapt."""
    nuts.potential._initial_mean = mean
    nuts.potential.reset()


def tune_steps_alone(
    nuts: pm.NUTS, variances: NDArray, weight: int, transitions: Callable[[], None]
) -> None:
    """Give a NUTS that exists its first metric, and the first step size that suits it.

    Parameters
    ----------
    nuts : pymc.NUTS
    variances : array, shape (d,)
        The metric.
    weight : int
        Draws that it counts as when chains adapt it.
    transitions : callable
        Makes transitions that tune, with the metric as it is.
    """
    potential: Any = nuts.potential
    potential._initial_diag, potential._initial_weight = variances, weight
    nuts.reset_tuning()
    window, potential.adaptation_window = potential.adaptation_window, math.inf
    try:
        transitions()
    finally:
        potential.adaptation_window = window
    nuts.step_adapt._initial_step = nuts.step_adapt.current(False)
    nuts.reset_tuning()


def flat_steps(step: Any) -> list[Any]:
    """The single step methods of one, a list, or a compound of them."""
    if step is None:
        return []
    several = step if isinstance(step, list | tuple) else getattr(step, "methods", None)
    return [step] if several is None else [one for each in several for one in flat_steps(each)]


def set_target_acceptance(nuts: pm.NUTS, target: float) -> None:
    """Give a NUTS that exists the acceptance rate to which it adapts the length of its steps."""
    nuts.target_accept = nuts.step_adapt._target = target


# ------------------------------------------------------------------ what pm.sample returns


def annotate_conversion(
    constants_of: Callable[[list[dict]], dict[str, Any]],
    *,
    at_end: Callable[[], None],
    what_is_wrong: Callable[..., str],
) -> None:
    """Write constants of the run to the attributes of ``sample_stats``, and warn if it went wrong.

    ``pm.sample`` ends by calling ``pm.to_inference_data`` and offers no place for attributes, so
    this wraps it; runs without constants pass through untouched.

    Parameters
    ----------
    constants_of : callable
        From the types of the statistics of all step methods to names and values.
    at_end : callable
        What else is to be done when sampling ends.
    what_is_wrong : callable
        ``what_is_wrong(idata, look_at_draws=...)``: a sentence for an `AusterityWarning`, or
        nothing. Draws are not looked at with ``pm.sample(compute_convergence_checks=False)``.
    """
    convert = pm.to_inference_data

    @functools.wraps(convert)
    def to_inference_data(trace: Any = None, **kwargs: Any) -> Any:
        at_end()
        idata = convert(trace, **kwargs)
        chains = list(getattr(trace, "_straces", {}).values())
        constants = constants_of(chains[0].sampler_vars or []) if chains else {}
        if constants:
            free = pm.modelcontext(kwargs.get("model")).free_RVs
            constants["free_variables"] = "\n".join(variable.name for variable in free)
        for group in ("sample_stats", "warmup_sample_stats") if constants else ():
            if group in idata:
                idata[group].attrs.update(constants)
        if constants and "sample_stats" in idata:
            caller = sys._getframe(1).f_locals
            checks = bool(caller.get("compute_convergence_checks", True))
            if sentence := _in_words(what_is_wrong, idata, look_at_draws=checks):
                warn_user(sentence)
        if constants and "posterior" in idata and _is_called_by_bambi():
            _keep_draws(idata, pm.modelcontext(kwargs.get("model")))
        return idata

    pm.to_inference_data = to_inference_data


def groups_of_chain(idata: Any) -> dict[str, xr.Dataset]:
    """Groups of a result that have chains: draws and statistics, without the data of the model."""
    groups = _groups_of(idata)
    return {name: group for name, group in groups.items() if "chain" in group.dims}


def join_chains(
    chains: Sequence[Mapping[str, xr.Dataset]], model: pm.Model, conversion: Mapping[str, Any]
) -> Any:
    """A result of ``pm.sample`` from the groups of each of its chains.

    Where chains differ in length, the shorter ones are left out or the longer ones are shortened,
    whichever keeps more draws, as in PyMC.

    Parameters
    ----------
    chains : sequence of dict
        As returned by `groups_of_chain`.
    model : pymc.Model
    conversion : dict
        The user's ``idata_kwargs``.
    """
    lengths = [chain["posterior"].sizes["draw"] for chain in chains]
    shortest = max(lengths, key=lambda n: n * sum(length >= n for length in lengths))
    kept = [chain for chain, n in zip(chains, lengths, strict=True) if n >= shortest]
    of_data = {name: conversion[name] for name in ("coords", "dims") if name in conversion}
    data = pm.to_inference_data(prior={}, model=model, **of_data)
    how: Any = {"coords": "minimal", "data_vars": "minimal", "compat": "override"}
    groups = {
        name: xr.concat([chain[name] for chain in kept], "chain", join="inner", **how)
        for name in kept[0]
    } | _groups_of(data)
    if isinstance(data, xr.DataTree):
        return xr.DataTree.from_dict(groups)
    return type(data)(**groups)


def _groups_of(idata: Any) -> dict[str, xr.Dataset]:
    if isinstance(idata, xr.DataTree):
        return {name: group.to_dataset() for name, group in idata.children.items()}
    return {name: idata[name] for name in idata.groups()}


def _is_called_by_bambi() -> bool:
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("bambi."):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _keep_draws(idata: Any, model: pm.Model) -> None:
    """Add some draws of the free variables of the PyMC model, which Bambi changes and drops."""
    posterior = idata["posterior"]
    names = [variable.name for variable in model.free_RVs if variable.name in posterior]
    n_chains, n_draws = posterior.sizes["chain"], posterior.sizes["draw"]
    step = max(n_chains * n_draws // _MOST_KEPT, 1)
    last = slice((n_draws - 1) % step, None, step)
    draws = xr.Dataset({name: posterior[name].isel(draw=last) for name in names})
    with_group(idata, OWN_DRAWS, draws)


def with_group(idata: Any, group: str, dataset: xr.Dataset) -> Any:
    """The same result with another group, which replaces one of the same name."""
    if isinstance(idata, xr.DataTree):
        idata[group] = xr.DataTree(dataset)
        return idata
    if group in idata.groups():
        del idata[group]
    idata.add_groups({group: dataset}, warn_on_custom_groups=False)
    return idata


def _in_words(what_is_wrong: Callable[..., str], idata: Any, *, look_at_draws: bool) -> str:
    try:
        return what_is_wrong(idata, look_at_draws=look_at_draws)
    except Exception as error:  # noqa: BLE001  the draws must not be lost for it
        return (
            f"The run could not be checked ({type(error).__name__}: {error}): look at r_hat and "
            "pymc_austerity.diagnostics.audit yourself."
        )
