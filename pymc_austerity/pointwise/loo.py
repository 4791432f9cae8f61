"""Leave-one-out cross-validation from a sample of the rows, by ArviZ."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from pymc_austerity.errors import SettingError
from pymc_austerity.model.pointwise import log_likelihood_rows
from pymc_austerity.pointwise.asked import Asked, observed_names, refuse_too_many
from pymc_austerity.pointwise.lazy import lazy_variable

__all__ = ["loo_subsample"]


def loo_subsample(
    idata: Any,
    observations: int | ArrayLike,
    *,
    model: pm.Model | None = None,
    var_name: str | None = None,
    axis: int = 0,
    data: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Any:
    """Expected log predictive density of a new row, by PSIS-LOO on a sample of the rows.

    All rows are evaluated once, at the posterior mean, and those of the sample also at all draws.
    ``arviz_stats.loo_subsample`` does the rest.

    Parameters
    ----------
    idata : InferenceData or DataTree
        A run of ``pm.sample``.
    observations : int or sequence of int
        Number of rows to sample, or the row numbers of the sample.
    model : pymc.Model, optional
        The model of the run; by default the one on the context stack.
    var_name : str, optional
        Observed variable; may be omitted if there is only one.
    axis : int
        Axis of its rows.
    data : dict of str to source, optional
        Source of all rows, as for `AusterityMH`, if the model was built on a few of them.
    **kwargs
        Passed on to ``arviz_stats.loo_subsample``: ``pointwise``, ``reff``, ``seed``.

    Returns
    -------
    arviz_stats.ELPDData
        Contains the standard error due to the sample as ``subsampling_se``.

    Raises
    ------
    SettingError
        arviz-stats is missing or too old, there are several observed variables, or there are fewer
        rows than requested.

    References
    ----------
    Magnusson, M., Riis Andersen, M., Jonasson, J. and Vehtari, A. (2019). Bayesian leave-one-out
    cross-validation for large data. ICML.
    """
    try:
        from arviz_stats import loo_subsample as subsampled
    except ImportError as error:
        raise SettingError(
            "loo_subsample needs arviz-stats, which comes with PyMC 6: install it beside PyMC 5 by "
            "pip install 'arviz-stats[xarray]', or use compute_log_likelihood(idata, rows=...) and "
            "az.loo(idata) on some of the rows."
        ) from error
    model = pm.modelcontext(model)
    names = observed_names(model, None if var_name is None else [var_name])
    if len(names) > 1:
        raise SettingError(
            f"the model has {len(names)} observed variables: name one of them, as in "
            f"var_name={names[0]!r}."
        )
    of_rows = log_likelihood_rows(model, names[0], axis, tuple(data or ()))
    asked = Asked.of(of_rows, idata, model, data=data)
    refuse_too_many(observations, len(asked.numbers))
    coords = {dim: asked.coords[dim] for dim in asked.dims}
    nothing = np.broadcast_to(np.zeros(()), asked.shape)  # takes the place of the data
    tree = xr.DataTree.from_dict(
        {
            "posterior": asked.draws.posterior,
            "log_likelihood": xr.Dataset({asked.name: lazy_variable(asked)}, asked.coords),
            "observed_data": xr.Dataset({asked.name: (asked.dims, nothing)}, coords),
        }
    )

    def at_the_mean(observed: xr.DataArray, data: Any) -> xr.DataArray:
        return xr.DataArray(_at_the_mean(asked), coords, asked.dims, asked.name)

    return subsampled(
        tree,
        observations,
        var_name=asked.name,
        method="plpd",
        log_lik_fn=at_the_mean,
        **kwargs,
    )


def _at_the_mean(asked: Asked) -> NDArray:
    """Log-likelihoods of all rows at the posterior mean."""
    axis, mean = asked.of_rows.axis, asked.draws.mean()
    parts = [asked.function(*mean, *asked.block(some)) for some in asked.slices(1)]
    return np.concatenate(parts, axis=axis)
