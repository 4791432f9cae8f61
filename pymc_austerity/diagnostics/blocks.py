"""What the blocks of a model with groups cost."""

from typing import Any

import pandas as pd

from pymc_austerity.diagnostics.groups import statistics_of
from pymc_austerity.errors import SettingError

__all__ = ["block_usage"]


def block_usage(idata: Any) -> pd.DataFrame:
    """Rows that a sweep of `GroupedMH` read for each block, and the block's acceptance rate.

    Parameters
    ----------
    idata : InferenceData, DataTree, Dataset or path
        A run of GroupedMH, or a netCDF file of one.

    Returns
    -------
    pandas.DataFrame
        A row for each block, in the order of a sweep: ``"untouched"`` (entries on which no row
        depends), one per factor, ``"common"`` (entries on which all rows depend), and ``"joint"``
        (these together with the levels of all factors but the largest). The columns are

        ``rows_mean``
            Rows that a sweep read for the block, on average.
        ``share``
            Share of the block in all rows that were read, in [0, 1]; NaN if no rows were read.
        ``acceptance``
            Share of the block's proposals that were accepted, in [0, 1].

    Raises
    ------
    SettingError, SettingTypeError
        `idata` is not a run of GroupedMH.

    Examples
    --------
    >>> import xarray as xr
    >>> from pymc_austerity.diagnostics import block_usage
    >>> dims, values = ("chain", "draw"), {"untouched": (10, 0.25), "county": (30, 0.5)}
    >>> run = xr.Dataset({"n_rows_used": (dims, [[40, 40]])}, attrs={"blocks": "untouched, county"})
    >>> for name, (n_rows, accepted) in values.items():
    ...     run[f"n_rows_{name}"] = dims, [[n_rows, n_rows]]
    ...     run[f"accepted_{name}"] = dims, [[accepted, accepted]]
    >>> block_usage(run)
               rows_mean  share  acceptance
    block
    untouched       10.0   0.25        0.25
    county          30.0   0.75        0.50
    """
    statistics = statistics_of(idata)
    names = str(statistics.attrs.get("blocks", "")).split(", ")
    if not all(f"n_rows_{name}" in statistics for name in names):
        raise SettingError(
            "The run has no statistics of blocks, which GroupedMH records: use data_usage for runs "
            "of other step methods."
        )
    steps = statistics["steps_per_draw"]
    rows = [float((statistics[f"n_rows_{name}"] / steps).mean()) for name in names]
    table = pd.DataFrame({"rows_mean": rows}, index=pd.Index(names, name="block"))
    table["share"] = table["rows_mean"] / (sum(rows) or float("nan"))
    table["acceptance"] = [float(statistics[f"accepted_{name}"].mean()) for name in names]
    return table
