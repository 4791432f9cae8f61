"""Results that are computed on use, or kept in memory or in a zarr store block by block."""

from collections.abc import Iterable
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from xarray import Variable
from xarray.backends import BackendArray
from xarray.core import indexing

from pymc_austerity.errors import SettingError, StorageError
from pymc_austerity.pointwise.request import PointwiseRequest

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

    def add(self, request: PointwiseRequest, blocks: Iterable[tuple[slice, NDArray]]) -> None:
        """Fill a variable with blocks of rows, each of shape (n_samples, ..., n_rows, ...)."""
        axis, dims = request.of_rows.axis + 2, ("chain", "draw", *request.dims)
        shape = (*request.draws.shape, *request.shape)
        self._coords |= request.coords
        array: Any
        if self._group is None:
            array = np.empty(shape, request.dtype)
            self._variables[request.name] = (dims, array)
        else:
            chunks = list(shape)
            chunks[axis] = min(shape[axis], _ROWS_OF_A_CHUNK)
            array = self._group.create_array(
                request.name,
                shape=shape,
                chunks=tuple(chunks),
                dtype=request.dtype,
                dimension_names=dims,
            )
        for rows, values in blocks:
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
            "store needs the package zarr: install it with pip install 'pymc-austerity[files]', or "
            "leave store out."
        ) from error
    try:
        return zarr.open_group(store, mode="w-")
    except FileExistsError as error:
        raise StorageError(
            f"{store} exists already: give store the path of a folder that does not."
        ) from error


def extended(idata: Any, group: str, dataset: xr.Dataset) -> Any:
    """The same run with another group, which replaces one of the same name."""
    if isinstance(idata, xr.DataTree):
        idata[group] = xr.DataTree(dataset)
        return idata
    if group in idata.groups():
        del idata[group]
    idata.add_groups({group: dataset})
    return idata
