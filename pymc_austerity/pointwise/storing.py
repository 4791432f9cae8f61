"""Results in memory or in a zarr store, block by block."""

from collections.abc import Iterable
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pymc_austerity.errors import SettingError, StorageError
from pymc_austerity.pointwise.asked import Asked

__all__ = ["Results", "Store"]

Store: TypeAlias = str | PathLike[str]
"""Path of a folder."""

_ROWS_OF_A_CHUNK = 4_096


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

    def add(self, asked: Asked, blocks: Iterable[tuple[slice, NDArray]]) -> None:
        """Fill a variable with blocks of rows, each of shape (n_samples, ..., n_rows, ...)."""
        axis, dims = asked.of_rows.axis + 2, ("chain", "draw", *asked.dims)
        shape = (*asked.draws.shape, *asked.shape)
        self._coords |= asked.coords
        array: Any
        if self._group is None:
            array = np.empty(shape, asked.dtype)
            self._variables[asked.name] = (dims, array)
        else:
            chunks = list(shape)
            chunks[axis] = min(shape[axis], _ROWS_OF_A_CHUNK)
            array = self._group.create_array(
                asked.name,
                shape=shape,
                chunks=tuple(chunks),
                dtype=asked.dtype,
                dimension_names=dims,
            )
        for rows, values in blocks:
            shaped = values.reshape(*asked.draws.shape, *values.shape[1:])
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
