"""The test's own estimates of the error of its decisions."""

from typing import Any

import pandas as pd
import xarray as xr

from pymc_austerity.diagnostics.groups import statistics_of
from pymc_austerity.diagnostics.tables import by_chain

__all__ = ["decision_errors"]


def decision_errors(idata: Any, *, step_method: int | None = None) -> pd.DataFrame:
    r"""Tail probabilities at the decisions, by chain and overall.

    The tail probability :math:`\delta` at which a test stopped estimates its error at the last
    look: the probability that all rows would give another decision, if this had been the only look.
    The whole sequential test is wrong more often. `audit` measures how often.

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
        ``error_mean``, ``error_max``
            Mean and largest tail probability; 0 for exact decisions. With several steps per draw,
            the largest mean of a draw.
        ``expected_wrong``
            Expected number of wrong decisions: the sum of the tail probabilities.

    Raises
    ------
    SettingError, SettingTypeError
        `idata` is not such a run, or has no such step method.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, algorithm 1.

    Examples
    --------
    >>> import xarray as xr
    >>> from pymc_austerity.diagnostics import decision_errors
    >>> dims = ("chain", "draw")
    >>> run = xr.Dataset(
    ...     {
    ...         "n_rows_used": (dims, [[100, 300], [100, 1000]]),
    ...         "decision_error": (dims, [[0.01, 0.04], [0.03, 0.0]]),
    ...     }
    ... )
    >>> decision_errors(run).round(3)
           n_decisions  error_mean  error_max  expected_wrong
    chain
    0                2       0.025       0.04            0.05
    1                2       0.015       0.03            0.03
    all              4       0.020       0.04            0.08
    """
    return by_chain(statistics_of(idata, ["decision_error"], step_method=step_method), _summary)


def _summary(statistics: xr.Dataset) -> dict[str, float]:
    error = statistics["decision_error"]
    steps = statistics["steps_per_draw"]
    return {
        "error_mean": float(error.weighted(steps).mean()),
        "error_max": float(error.max()),
        "expected_wrong": float((error * steps).sum()),
    }
