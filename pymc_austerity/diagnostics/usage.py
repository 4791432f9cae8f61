"""What the decisions and the blocks of a run cost."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import xarray as xr

from pymc_austerity.diagnostics.groups import statistics_of
from pymc_austerity.errors import SettingError

__all__ = ["block_usage", "by_chain", "data_usage"]

_NEEDED = ("n_rows_used", "data_fraction", "n_looks", "used_all_rows", "accepted")


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
    >>> from pymc_austerity.diagnostics.usage import by_chain
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


def data_usage(idata: Any, *, step_method: int | None = None) -> pd.DataFrame:
    r"""Rows and looks of a decision, by chain and overall.

    Parameters
    ----------
    idata : InferenceData, DataTree, Dataset or path
        A run of AusterityMH or AusterityGibbs, or a netCDF file of one.
    step_method : int, optional
        Index of the AusterityMH in a compound run, counted from 0; by default all together.

    Returns
    -------
    pandas.DataFrame
        A row for each chain, and one, ``"all"``, for all chains, with the columns

        ``n_decisions``
            Number of decisions.
        ``rows_mean``, ``rows_median``, ``rows_q95``
            Mean, median and 95 % quantile of the rows read for a decision. With several steps per
            draw, the last two refer to means of draws.
        ``proposal_rows``
            Mean number of rows that a proposal read for its gradients.
        ``data_fraction``
            Mean share of all rows, :math:`\bar\pi` in section 5.1 of the paper, in [0, 1].
        ``looks_mean``
            Mean number of looks.
        ``exact_fraction``
            Share of the draws whose decisions were all exact, because all rows were read or
            none was needed, in [0, 1]; NaN if no test decided.
        ``acceptance``
            Acceptance rate of the proposals, in [0, 1]; NaN if step methods of other
            kinds record ``accepted`` as well.

    Raises
    ------
    SettingError, SettingTypeError
        `idata` is not such a run, or has no such step method.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML. arXiv:1304.5299.

    Examples
    --------
    >>> import xarray as xr
    >>> from pymc_austerity.diagnostics import data_usage
    >>> dims = ("chain", "draw")
    >>> run = xr.Dataset(
    ...     {
    ...         "n_rows_used": (dims, [[100, 100, 200, 1000]]),
    ...         "data_fraction": (dims, [[0.1, 0.1, 0.2, 1.0]]),
    ...         "n_looks": (dims, [[1, 1, 2, 10]]),
    ...         "used_all_rows": (dims, [[False, False, False, True]]),
    ...         "accepted": (dims, [[1.0, 0.0, 0.0, 1.0]]),
    ...     }
    ... )
    >>> data_usage(run)[["rows_mean", "rows_median", "looks_mean", "exact_fraction"]]
           rows_mean  rows_median  looks_mean  exact_fraction
    chain
    0          350.0        150.0         3.5            0.25
    all        350.0        150.0         3.5            0.25
    """
    return by_chain(statistics_of(idata, _NEEDED, step_method=step_method), _summary)


def _summary(statistics: xr.Dataset) -> dict[str, float]:
    steps = statistics["steps_per_draw"]
    rows = statistics["n_rows_used"] / steps
    exact = statistics["used_all_rows"] | (statistics["n_looks"] == 0)
    if "acceptance_rule" in statistics.coords:
        rule = statistics["acceptance_rule"]
        exact = (exact | (rule == "poisson")).where(rule != "none")
    return {
        "rows_mean": _mean(rows, steps),
        "rows_median": float(rows.median()),
        "rows_q95": float(rows.quantile(0.95)),
        "proposal_rows": float(statistics["proposal_rows"].weighted(steps).mean()),
        "data_fraction": _mean(statistics["data_fraction"], steps),
        "looks_mean": _mean(statistics["n_looks"] / steps, steps),
        "exact_fraction": float(exact.mean()),
        "acceptance": _mean(statistics["accepted"], steps),
    }


def _mean(of_draws: xr.DataArray, steps: xr.DataArray) -> float:
    """Mean over decisions: a draw counts as often as it took steps."""
    return float(of_draws.weighted(steps).mean(skipna=False))


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
