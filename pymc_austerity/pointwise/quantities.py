"""Log-likelihoods, replications and LOO, with memory that does not grow with the number of rows."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any, TypeAlias, Unpack

import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from xarray import Variable
from xarray.backends import BackendArray
from xarray.core import indexing

from pymc_austerity._pymc import with_group
from pymc_austerity.errors import SettingError, StorageError
from pymc_austerity.pointwise.request import (
    Generators,
    PointwiseRequest,
    WhichRows,
    log_likelihood_rows,
    no_generators,
    observed_names,
    predictive_rows,
    refuse_too_many,
)

Store: TypeAlias = str | PathLike[str]
"""Path of a folder."""

_ROWS_OF_A_CHUNK = 4_096


class _LazyArray(BackendArray):
    """An array of shape (n_chains, n_draws, ...) whose entries are computed when they are read."""

    def __init__(self, request: PointwiseRequest) -> None:
        self._request = request
        self.shape = (*request.draws.shape, *request.shape)
        self.dtype = request.dtype

    def __getitem__(self, key: Any) -> Any:
        support = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._read)

    def _read(self, key: tuple[Any, ...]) -> NDArray:
        picked = [
            np.arange(*own.indices(length)) if isinstance(own, slice) else np.asarray(own)
            for own, length in zip(key, self.shape, strict=True)
        ]
        chains, draws, *others = (np.atleast_1d(own) for own in picked)
        samples = (chains[:, None] * self.shape[1] + draws).ravel().tolist()
        axis = self._request.of_rows.axis
        found = self._request.evaluated(others[axis], samples)
        for number, own in enumerate(others):
            if number != axis:
                found = found.take(own, axis=number + 1)
        return found.reshape([own.size for own in picked if own.ndim])


def lazy_variable(request: PointwiseRequest) -> Variable:
    """A variable that stores no values."""
    return Variable(
        ("chain", "draw", *request.dims), indexing.LazilyIndexedArray(_LazyArray(request))
    )


class Results:
    """Variables that are filled block by block, in memory or in a zarr store.

    Parameters
    ----------
    store : path, optional
        Folder that does not exist yet; without one, results are kept in memory.

    Raises
    ------
    SettingError, StorageError
        The package zarr is missing, or the folder already exists.
    """

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._group = None if store is None else _new_group(store)
        self._coords: dict[str, Any] = {}
        self._variables: dict[str, Any] = {}

    def add(
        self,
        request: PointwiseRequest,
        generators_at: Callable[[int], Generators],
        *,
        progressbar: bool,
    ) -> None:
        """Fill a variable block by block, with generators for each from its first row."""
        axis, dims = request.of_rows.axis + 2, ("chain", "draw", *request.dims)
        shape = (*request.draws.shape, *request.shape)
        self._coords |= request.coords
        array: Any
        if self._group is None:
            array = np.empty(shape, request.dtype)
            self._variables[request.name] = (dims, array)
        else:
            chunks = (*shape[:axis], min(shape[axis], _ROWS_OF_A_CHUNK), *shape[axis + 1 :])
            kind = {"shape": shape, "chunks": chunks, "dtype": request.dtype}
            array = self._group.create_array(request.name, dimension_names=dims, **kind)
        samples = range(request.draws.size)
        for rows in request.slices(len(samples), progressbar=progressbar):
            values = request.evaluated(rows, samples, generators_at(rows.start))
            shaped = values.reshape(*request.draws.shape, *values.shape[1:])
            array[(*[slice(None)] * axis, rows)] = shaped

    def dataset(self) -> xr.Dataset:
        """All variables; those in a store are read on use."""
        if self._store is None:
            return xr.Dataset(self._variables, coords=self._coords)
        coords = {dim: _of_any_length(labels) for dim, labels in self._coords.items()}
        xr.Dataset(coords=coords).to_zarr(self._store, mode="a", consolidated=False)
        return xr.open_zarr(self._store, consolidated=False, chunks=None)


def _of_any_length(labels: Any) -> Any:
    """Text in the form that zarr stores."""
    return labels.astype(object) if labels.dtype.kind == "U" else labels


def _new_group(store: Store) -> Any:
    try:
        import zarr
    except ImportError as error:
        raise SettingError(
            "store needs the package zarr: pip install zarr, or leave store out."
        ) from error
    try:
        return zarr.open_group(store, mode="w-")
    except FileExistsError as error:
        raise StorageError(
            f"{store} exists already: give store the path of a folder that does not."
        ) from error


def compute_log_likelihood(
    idata: Any,
    *,
    model: pm.Model | None = None,
    var_names: Sequence[str] | None = None,
    store: Store | None = None,
    extend_inferencedata: bool = True,
    progressbar: bool = True,
    **which: Unpack[WhichRows],
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
    store : path, optional
        Folder that does not exist yet; everything is written to it block by block, with zarr.
    extend_inferencedata : bool
        Whether to add the group ``log_likelihood`` to `idata`.
    progressbar : bool
        Whether to show the progress of writing.
    rows : sequence of int, optional
        Numbers of rows; by default all of them.
    axis : int
        Axis of the rows in the observed variables, 0 by default.
    data : dict of str to source, optional
        Source of all rows, as for `AusterityMH`, if the model was built on a few of them.

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
        request = PointwiseRequest.of(log_likelihood_rows, name, idata, model, **which)
        if store is None:
            lazy[name] = lazy_variable(request)
            coords |= request.coords
        else:
            results.add(request, lambda start: no_generators, progressbar=progressbar)
    dataset = xr.Dataset(lazy, coords) if store is None else results.dataset()
    return with_group(idata, "log_likelihood", dataset) if extend_inferencedata else dataset


def sample_posterior_predictive(
    idata: Any,
    *,
    model: pm.Model | None = None,
    var_names: Sequence[str] | None = None,
    store: Store | None = None,
    random_seed: int | None = None,
    extend_inferencedata: bool = True,
    progressbar: bool = True,
    **which: Unpack[WhichRows],
) -> Any:
    """Replications of rows at all draws, like ``pm.sample_posterior_predictive``, for many rows.

    Parameters
    ----------
    idata, model, var_names, store, extend_inferencedata, progressbar, rows, axis, data
        As for `compute_log_likelihood`; the group is ``posterior_predictive``. Without `store`,
        everything is kept in memory, 8 bytes for each draw and row.
    random_seed : int, optional
        The same seed gives the same replications, whether they are stored or not.

    Returns
    -------
    InferenceData, DataTree or Dataset
        `idata`, or only the group: variables of shape (chain, draw, ...).

    Raises
    ------
    NotRowwiseError
        Rows cannot be drawn one by one: distributions that are drawn in a loop, draws that rows
        share, variables that depend on another observed variable.
    SettingError, SettingTypeError, StorageError
        As for `compute_log_likelihood`.

    Examples
    --------
    >>> import numpy as np, pymc as pm, xarray as xr
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu")
    ...     _ = pm.Normal("y", mu, 1e-6, observed=np.zeros(1_000_000))
    >>> draws = xr.Dataset({"mu": (("chain", "draw"), [[0.0, 2.0]])})
    >>> run = xr.DataTree.from_dict({"posterior": draws})
    >>> run = sample_posterior_predictive(run, model=model, rows=[3, 7], random_seed=1)
    >>> run["posterior_predictive"]["y"].values.round(3) + 0.0
    array([[[0., 0.],
            [2., 2.]]])
    """
    model, results = pm.modelcontext(model), Results(store)
    seeds = np.random.SeedSequence(random_seed)
    for name in observed_names(model, var_names):
        request = PointwiseRequest.of(predictive_rows, name, idata, model, **which)
        (seed,) = seeds.spawn(1)
        generators_at = partial(_generators, seed, len(request.of_rows.generators))
        results.add(request, generators_at, progressbar=progressbar)
    dataset = results.dataset()
    return with_group(idata, "posterior_predictive", dataset) if extend_inferencedata else dataset


def _generators(seed: np.random.SeedSequence, n_generators: int, start: int) -> Generators:
    """Separate generators for each draw of each block of rows."""

    def of_draw(number: int) -> list[np.random.Generator]:
        key = (*seed.spawn_key, start, number)
        own = np.random.SeedSequence(seed.entropy, spawn_key=key)
        return [np.random.default_rng(child) for child in own.spawn(n_generators)]

    return of_draw


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
    request = PointwiseRequest.of(log_likelihood_rows, names[0], idata, model, axis=axis, data=data)
    refuse_too_many(observations, len(request.numbers))
    coords = {dim: request.coords[dim] for dim in request.dims}
    nothing = np.broadcast_to(np.zeros(()), request.shape)  # takes the place of the data
    tree = xr.DataTree.from_dict(
        {
            "posterior": request.draws.posterior,
            "log_likelihood": xr.Dataset({request.name: lazy_variable(request)}, request.coords),
            "observed_data": xr.Dataset({request.name: (request.dims, nothing)}, coords),
        }
    )

    def at_the_mean(observed: xr.DataArray, data: Any) -> xr.DataArray:
        return xr.DataArray(_at_the_mean(request), coords, request.dims, request.name)

    return subsampled(
        tree, observations, var_name=request.name, method="plpd", log_lik_fn=at_the_mean, **kwargs
    )


def _at_the_mean(request: PointwiseRequest) -> NDArray:
    """Log-likelihoods of all rows at the posterior mean."""
    axis, mean = request.of_rows.axis, request.draws.mean()
    parts = [request.function(*mean, *request.block(some)) for some in request.slices(1)]
    return np.concatenate(parts, axis=axis)
