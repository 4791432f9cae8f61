"""What the decisions of a run cost."""

from typing import Any

import pandas as pd
import xarray as xr

from pymc_austerity.diagnostics.groups import statistics_of
from pymc_austerity.diagnostics.tables import by_chain

__all__ = ["data_usage"]

_NEEDED = ("n_rows_used", "data_fraction", "n_looks", "used_all_rows", "accepted")


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
