"""Where the statistics of a run are, for every container and file that holds them."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from pymc_austerity.errors import SettingError, SettingTypeError

__all__ = ["OF_PYMC", "statistics_of"]

OF_PYMC = {"AllRowsNUTS": "NUTS", "NUTS": "NUTS", "PyMCSteps": "step methods of PyMC"}
"""Names of samplers that read all rows and decide nothing from some of them, in words."""

_GROUP = "sample_stats"
_DIMENSIONS = ("chain", "draw", "step_method")

_CONSTANTS = (
    "sampler",
    "n_rows",
    "n_factors",
    "epsilon",
    "max_error",
    "audit",
    "steps_per_draw",
    "batch_size",
    "control_variates",
    "no_control_variates",
    "test",
    "acceptance_rule",
    "assumption",
    "sampling",
    "normality",
    "proposal",
    "proposal_rows",
    "setup_seconds",
)


def statistics_of(
    idata: Any, names: Sequence[str] = (), *, step_method: int | None = None
) -> xr.Dataset:
    """Statistics of the decisions of a run, in the same shape for every kind of run.

    Parameters
    ----------
    idata : InferenceData, DataTree, Dataset or path
        The result of ``pm.sample``, its group ``sample_stats``, a netCDF file of either, or a
        result of this function.
    names : sequence of str
        Required statistics and constants.
    step_method : int, optional
        Index of the AusterityMH in a compound run, counted from 0; by default all of them.

    Returns
    -------
    xarray.Dataset
        The statistics, of shape (chain, draw, step_method), and the constants of the run (such as
        ``epsilon``) as coordinates of shape (step_method,). A statistic that step methods of other
        kinds record as well is NaN, because its values cannot be distinguished.

    Raises
    ------
    SettingTypeError
        `idata` is something else.
    SettingError
        It holds no statistics of AusterityMH, or not those in `names`, or has no such step method.

    Examples
    --------
    >>> import xarray as xr
    >>> from pymc_austerity.diagnostics import statistics_of
    >>> run = xr.Dataset(
    ...     {"n_rows_used": (("chain", "draw"), [[100, 300], [100, 100]])}, attrs={"epsilon": 0.05}
    ... )
    >>> statistics = statistics_of(run)
    >>> statistics["n_rows_used"].shape, float(statistics["epsilon"][0])
    ((2, 2, 1), 0.05)
    """
    group = _group(idata)
    sampler = OF_PYMC.get(str(group.attrs.get("sampler")))
    if sampler:
        group = _without_decisions(group)
    if "n_rows_used" not in group or not {"chain", "draw"} <= set(group["n_rows_used"].dims):
        raise SettingError(
            "The run holds no statistics of AusterityMH: pass what pm.sample(step=AusterityMH()) "
            "returned."
        )
    statistics = _aligned(group)
    missing = [name for name in names if name not in statistics.variables]
    if missing and sampler:
        raise SettingError(
            f"The run has no {', '.join(map(repr, missing))}, because it is one of {sampler}, "
            "evaluated on all rows: use report, data_usage or plot_data_usage."
        )
    if missing:
        raise SettingError(
            f"The run lacks {', '.join(map(repr, missing))}, which AusterityMH records in "
            f"{_GROUP}: pass the run as pm.sample returned it."
        )
    return statistics if step_method is None else _one_of(statistics, step_method)


def _group(idata: Any) -> xr.Dataset:
    if isinstance(idata, str | os.PathLike):
        return _stored(Path(idata))
    if isinstance(idata, xr.Dataset):
        return idata
    group = getattr(idata, _GROUP, idata)
    if isinstance(group, xr.DataTree):
        return group.to_dataset()
    if isinstance(group, xr.Dataset):
        return group
    if hasattr(idata, "posterior") or hasattr(idata, "prior"):
        raise SettingError(f"The run has no group {_GROUP}: pass it as pm.sample returned it.")
    raise SettingTypeError(
        "idata must be an InferenceData, a DataTree, a Dataset or a path to a netCDF file, not "
        f"{type(idata).__name__}."
    )


def _stored(path: Path) -> xr.Dataset:
    if not path.exists():
        raise SettingError(f"There is no file {path}: save a run with idata.to_netcdf(path).")
    for group in (_GROUP, None):  # a whole run, or its statistics alone
        try:
            with xr.open_dataset(path, group=group) as dataset:
                return dataset.load()
        except (OSError, KeyError, ValueError):
            continue
    raise SettingError(f"{path} is not a netCDF file: save a run with idata.to_netcdf(path).")


def _aligned(group: xr.Dataset) -> xr.Dataset:
    """Statistics with an axis of step methods, and with constants as coordinates of this axis."""
    n_step_methods = int(np.prod(group["n_rows_used"].shape[2:]))
    statistics = xr.Dataset(
        {name: _with_axis(group[name], n_step_methods) for name in _ours(group)},
        attrs=group.attrs,
    )
    constants = {"steps_per_draw": 1, "proposal_rows": 0} | dict(group.attrs)
    found = {
        name: (_DIMENSIONS[-1], _for_each(constants[name], n_step_methods))
        for name in _CONSTANTS
        if name in constants and name not in statistics.coords
    }
    return statistics.assign_coords(found)


def _without_decisions(group: xr.Dataset) -> xr.Dataset:
    """Statistics of a sampler of PyMC, with those of decisions that read all rows."""
    if not {"chain", "draw"} <= set(group.sizes):
        return group
    n_rows = group.attrs.get("n_rows", np.nan)
    usual = {
        "n_rows_used": n_rows,
        "n_looks": 1,
        "used_all_rows": True,
        "accepted": np.nan,
        "decision_error": 0.0,
        "n_audited": 0,
        "n_wrong": 0,
    }
    shape = [group.sizes[name] for name in ("chain", "draw")]
    new = {k: (("chain", "draw"), np.full(shape, v)) for k, v in usual.items() if k not in group}
    group = group.assign(new).assign_attrs({"epsilon": 0.0} | group.attrs)
    if "data_fraction" in group:
        return group
    return group.assign(data_fraction=group["n_rows_used"] / n_rows)


def _ours(group: xr.Dataset) -> list[str]:
    return [str(name) for name in group.data_vars if {"chain", "draw"} <= set(group[name].dims)]


def _with_axis(values: xr.DataArray, n_step_methods: int) -> xr.DataArray:
    extra = [name for name in values.dims if name not in _DIMENSIONS[:2]]
    values = values.drop_vars(extra, errors="ignore")
    if len(extra) == 1:
        values = values.rename({extra[0]: _DIMENSIONS[-1]})
    else:
        values = values.expand_dims({_DIMENSIONS[-1]: 1})
    values = values.transpose(*_DIMENSIONS, ...)
    if values.shape[2:] == (n_step_methods,):
        return values
    unknown = values.isel(dict.fromkeys(values.dims[2:], 0), drop=True)
    unknown = xr.full_like(unknown, np.nan, dtype=float)
    return unknown.expand_dims({_DIMENSIONS[-1]: n_step_methods}, axis=-1)


def _for_each(value: Any, n_step_methods: int) -> list[Any]:
    values = np.atleast_1d(np.asarray(value)).tolist()
    return values if len(values) == n_step_methods else values[:1] * n_step_methods


def _one_of(statistics: xr.Dataset, step_method: int) -> xr.Dataset:
    n_step_methods = statistics.sizes[_DIMENSIONS[-1]]
    if isinstance(step_method, bool) or not isinstance(step_method, int | np.integer):
        raise SettingTypeError(f"step_method must be an integer, not {type(step_method).__name__}.")
    if not 0 <= step_method < n_step_methods:
        raise SettingError(
            f"step_method must be from 0 to {n_step_methods - 1}, the AusterityMH of this run, "
            f"not {step_method}."
        )
    return statistics.isel({_DIMENSIONS[-1]: [step_method]})
