"""Results that are added to the run on whose posterior they are based."""

from typing import Any

import xarray as xr

__all__ = ["extended"]


def extended(idata: Any, group: str, dataset: xr.Dataset) -> Any:
    """The same run with another group, which replaces one of the same name."""
    if isinstance(idata, xr.DataTree):
        idata[group] = xr.DataTree(dataset)
        return idata
    if group in idata.groups():
        del idata[group]
    idata.add_groups({group: dataset})
    return idata
