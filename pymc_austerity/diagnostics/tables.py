"""One row for each chain, and one for all of them."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import xarray as xr

__all__ = ["by_chain", "n_decisions"]


def by_chain(
    statistics: xr.Dataset, summarise: Callable[[xr.Dataset], dict[str, Any]]
) -> pd.DataFrame:
    """Summarise every chain, and all chains together in the last row, ``"all"``.

    Parameters
    ----------
    statistics : xarray.Dataset
        As from `statistics_of`.
    summarise : callable
        From statistics to the columns of one row.

    Examples
    --------
    >>> import xarray as xr
    >>> from pymc_austerity.diagnostics.tables import by_chain
    >>> run = xr.Dataset({"x": (("chain", "draw"), [[1, 3], [5, 7]])})
    >>> by_chain(run, lambda chain: {"mean": float(chain["x"].mean())})
           mean
    chain
    0       2.0
    1       6.0
    all     4.0
    """
    labels = statistics["chain"].values.tolist()
    rows = [summarise(statistics.isel(chain=[i])) for i in range(len(labels))]
    index = pd.Index([*labels, "all"], name="chain", dtype=object)
    return pd.DataFrame([*rows, summarise(statistics)], index=index)


def n_decisions(statistics: xr.Dataset) -> int:
    """Decisions taken: draws times steps per draw, summed over step methods and chains."""
    n_draws = statistics.sizes["chain"] * statistics.sizes["draw"]
    return int(n_draws * statistics["steps_per_draw"].sum())
