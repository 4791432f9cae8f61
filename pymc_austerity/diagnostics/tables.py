"""Tables with one row for each chain, and one for all of them."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import xarray as xr

__all__ = ["by_chain"]


def by_chain(
    statistics: xr.Dataset, summarize: Callable[[xr.Dataset], dict[str, Any]]
) -> pd.DataFrame:
    """Summarize every chain, and all chains together in the last row, ``"all"``.

    Parameters
    ----------
    statistics : xarray.Dataset
        Result of `statistics_of`.
    summarize : callable
        Maps statistics to the columns of one row, which follow the number of decisions.

    Examples
    --------
    >>> import xarray as xr
    >>> from pymc_austerity.diagnostics import statistics_of
    >>> from pymc_austerity.diagnostics.tables import by_chain
    >>> run = statistics_of(xr.Dataset({"n_rows_used": (("chain", "draw"), [[1, 3], [5, 7]])}))
    >>> by_chain(run, lambda chain: {"mean": float(chain["n_rows_used"].mean())})
           n_decisions  mean
    chain
    0                2   2.0
    1                2   6.0
    all              4   4.0
    """
    labels = statistics["chain"].values.tolist()
    groups = [*(statistics.isel(chain=[i]) for i in range(len(labels))), statistics]
    index = pd.Index([*labels, "all"], name="chain", dtype=object)
    rows = [{"n_decisions": _n_decisions(group), **summarize(group)} for group in groups]
    return pd.DataFrame(rows, index=index)


def _n_decisions(statistics: xr.Dataset) -> int:
    """Number of decisions: draws times steps per draw, summed over step methods and chains."""
    n_draws = statistics.sizes["chain"] * statistics.sizes["draw"]
    return int(n_draws * statistics["steps_per_draw"].sum())
