"""Pointwise log-likelihoods, with memory that does not grow with the number of rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import pymc as pm
import xarray as xr
from numpy.typing import ArrayLike

from pymc_austerity.model.pointwise import log_likelihood_rows
from pymc_austerity.pointwise.asked import Asked, observed_names
from pymc_austerity.pointwise.groups import extended
from pymc_austerity.pointwise.lazy import lazy_variable
from pymc_austerity.pointwise.storing import Results, Store

__all__ = ["compute_log_likelihood"]


def compute_log_likelihood(
    idata: Any,
    *,
    model: pm.Model | None = None,
    var_names: Sequence[str] | None = None,
    rows: ArrayLike | None = None,
    axis: int = 0,
    data: Mapping[str, Any] | None = None,
    store: Store | None = None,
    extend_inferencedata: bool = True,
    progressbar: bool = True,
) -> Any:
    """Log-likelihoods of rows at all draws, like ``pm.compute_log_likelihood``, for many rows.

    No array of the size of all rows times all draws is held in memory. Without `store`, the entries
    are computed each time they are used: ``group["y"].isel(...)`` computes what it selects.

    Parameters
    ----------
    idata : InferenceData or DataTree
        A run of ``pm.sample``.
    model : pymc.Model, optional
        The model of the run; by default the one on the context stack.
    var_names : sequence of str, optional
        Observed variables; by default all of them.
    rows : sequence of int, optional
        Numbers of rows; by default all of them.
    axis : int
        Axis of the rows in the observed variables.
    data : dict of str to source, optional
        Source of all rows, as for `AusterityMH`, if the model was built on a few of them.
    store : path, optional
        Folder that does not exist yet; everything is written to it block by block, with zarr.
    extend_inferencedata : bool
        Whether to add the group ``log_likelihood`` to `idata`.
    progressbar : bool
        Whether to show the progress of writing.

    Returns
    -------
    InferenceData, DataTree or Dataset
        `idata`, or only the group: variables of shape (chain, draw, ...), nats.

    Raises
    ------
    NotRowwiseError
        Rows depend on each other.
    SettingError, SettingTypeError
        Draws, variables or rows are missing, or `idata` is not a run.
    StorageError
        `store` already exists.

    Examples
    --------
    >>> import numpy as np, pymc as pm, xarray as xr
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu")
    ...     _ = pm.Normal("y", mu, 1.0, observed=np.zeros(1_000_000))
    >>> draws = xr.Dataset({"mu": (("chain", "draw"), [[0.0, 2.0]])})
    >>> run = xr.DataTree.from_dict({"posterior": draws})
    >>> found = compute_log_likelihood(run, model=model, extend_inferencedata=False)
    >>> found["y"].shape, found["y"].isel(y_dim_0=7).values.round(3)
    ((1, 2, 1000000), array([[-0.919, -2.919]]))
    """
    model, results = pm.modelcontext(model), Results(store)
    lazy: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    for name in observed_names(model, var_names):
        of_rows = log_likelihood_rows(model, name, axis, tuple(data or ()))
        asked = Asked.of(of_rows, idata, model, rows, data)
        if store is None:
            lazy[name] = lazy_variable(asked)
            coords |= asked.coords
            continue
        samples = range(asked.draws.size)
        slices = asked.slices(len(samples), progressbar=progressbar)
        results.add(asked, ((some, asked.evaluated(some, samples)) for some in slices))
    dataset = xr.Dataset(lazy, coords) if store is None else results.dataset()
    return extended(idata, "log_likelihood", dataset) if extend_inferencedata else dataset
