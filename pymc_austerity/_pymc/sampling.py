"""What ``pm.sample`` is given, who runs its chains, and what it returns."""

import functools
import importlib
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pymc as pm
import xarray as xr

from pymc_austerity.errors import AusterityWarning

__all__ = [
    "OWN_DRAWS",
    "RECORDING",
    "SAMPLING_LOOP",
    "WORKER_LOOP",
    "annotate_conversion",
    "before_sampling",
    "chains_run_by",
    "iterate_chain",
]

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


def before_sampling(check: Callable[..., None], complete: Callable[[Any, pm.Model], Any]) -> None:
    """Look at what ``pm.sample`` was given, before anything begins, and complete it.

    PyMC assigns step methods to variables first of all; this wraps the function that does.

    Parameters
    ----------
    check : callable
        ``check(model, steps, nuts_sampler, nuts_settings, var_names)``: the step methods that the
        user gave, the name of a sampler other than PyMC's or None, the settings of NUTS, and the
        names of the variables to store or None.
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
        of_nuts |= (given.get("kwargs") or {}).get("nuts") or {}
        check(
            model,
            _flat(step),
            None if nuts_sampler == "pymc" else nuts_sampler,
            of_nuts,
            given.get("var_names"),
        )
        return assign(model, step, methods=methods)

    mcmc.assign_step_methods = assign_step_methods


def _flat(step: Any) -> list[Any]:
    """The single step methods of one, a list, or a compound of them."""
    if step is None:
        return []
    several = step if isinstance(step, list | tuple) else getattr(step, "methods", None)
    return [step] if several is None else [one for each in several for one in _flat(each)]


# ------------------------------------------------------------------ who runs the chains


_runs_chains: ContextVar[Callable[..., None] | None] = ContextVar("_runs_chains", default=None)


@contextmanager
def chains_run_by(run: Callable[..., None]) -> Iterator[None]:
    """Let ``pm.sample`` leave its chains to a function, in this context and thread alone.

    Everything before and after stays PyMC's: seeds, starting points, step methods, what is
    returned.

    Parameters
    ----------
    run : callable
        Called with the keywords of PyMC's own functions for that: ``draws`` (tuning included),
        ``tune``, ``step``, ``rngs``, ``start`` and ``traces`` among them. It records the draws in
        the traces.
    """
    _ask_who_runs_chains()
    token = _runs_chains.set(run)
    try:
        yield
    finally:
        _runs_chains.reset(token)


@functools.cache
def _ask_who_runs_chains() -> None:
    """Wrap, once, the functions to which ``pm.sample`` leaves its chains."""
    mcmc: Any = importlib.import_module("pymc.sampling.mcmc")
    for name in ("_mp_sample", "_sample_many", "_sample_population"):
        setattr(mcmc, name, _unless_run_by_others(getattr(mcmc, name)))


def _unless_run_by_others(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        (_runs_chains.get() or function)(*args, **kwargs)

    return wrapped


def iterate_chain(**of_the_chain: Any) -> Generator[list[dict[str, Any]], None, None]:
    """PyMC's own loop over the draws of one chain, which yields the statistics of each.

    Parameters
    ----------
    **of_the_chain
        ``draws`` (tuning included), ``tune``, ``step``, ``start``, ``rng``, ``chain`` and
        ``trace``, an object with the methods ``record`` and ``close``.
    """
    mcmc: Any = importlib.import_module("pymc.sampling.mcmc")
    return mcmc._iter_sample(**of_the_chain)


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
        for group in ("sample_stats", "warmup_sample_stats") if constants else ():
            if group in idata:
                idata[group].attrs.update(constants)
        if constants and "sample_stats" in idata:
            caller = sys._getframe(1).f_locals
            checks = bool(caller.get("compute_convergence_checks", True))
            if sentence := _in_words(what_is_wrong, idata, look_at_draws=checks):
                # from here to pm.sample, and to who called that
                warnings.warn(sentence, AusterityWarning, stacklevel=4)
        if constants and "posterior" in idata and _is_called_by_bambi():
            _keep_draws(idata, pm.modelcontext(kwargs.get("model")))
        return idata

    pm.to_inference_data = to_inference_data


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
    if isinstance(idata, xr.DataTree):
        idata[OWN_DRAWS] = xr.DataTree(draws)
    else:
        idata.add_groups({OWN_DRAWS: draws}, warn_on_custom_groups=False)


def _in_words(what_is_wrong: Callable[..., str], idata: Any, *, look_at_draws: bool) -> str:
    try:
        return what_is_wrong(idata, look_at_draws=look_at_draws)
    except Exception as error:  # noqa: BLE001  the draws must not be lost for it
        return (
            f"The run could not be checked ({type(error).__name__}: {error}): look at r_hat and "
            "pymc_austerity.diagnostics.audit yourself."
        )
