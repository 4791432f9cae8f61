"""Audited decisions, compared with those of all rows."""

import math
import warnings
from typing import Any

import pandas as pd
import xarray as xr

from pymc_austerity.diagnostics.binomial import exact_interval
from pymc_austerity.diagnostics.groups import statistics_of
from pymc_austerity.diagnostics.run_info import RunInfo
from pymc_austerity.diagnostics.tables import by_chain
from pymc_austerity.errors import AusterityWarning, SettingError, SettingTypeError

__all__ = ["audit", "audit_table", "contradicts", "needed_audits"]


def audit(
    idata: Any,
    *,
    promised: float | None = None,
    prob: float = 0.95,
    step_method: int | None = None,
) -> pd.DataFrame:
    r"""Share of wrong decisions among those checked on all rows, compared with the promised share.

    Parameters
    ----------
    idata : InferenceData, DataTree, Dataset or path
        A run of AusterityMH or AusterityGibbs, or a netCDF file of one.
    promised : float, optional
        Largest share of wrong decisions that is acceptable, in [0, 1]; by default the ``max_error``
        of the run, or else its ``epsilon``, which bounds the error of one look: whole decisions
        may be wrong more often.
    prob : float
        Coverage of the interval, in (0, 1).
    step_method : int, optional
        Index of the AusterityMH in a compound run, from 0; by default all together, compared
        with the largest ``epsilon``.

    Returns
    -------
    pandas.DataFrame
        A row for each chain, and one, ``"all"``, for all chains, with the columns

        ``n_decisions``, ``n_audited``, ``n_wrong``
            Numbers of decisions, of audited decisions, and of audited decisions that were wrong.
        ``wrong_rate``, ``wrong_rate_low``, ``wrong_rate_high``
            Share of wrong decisions among those audited, and the ends of its Clopper-Pearson
            interval, in [0, 1]; NaN, 0 and 1 without audits.
        ``promised``
            The promised share, see above.

    Raises
    ------
    SettingError, SettingTypeError
        `idata` is not such a run, or an argument cannot be used.

    Warns
    -----
    AusterityWarning
        The lower end of the interval over all chains exceeds the promised share.

    References
    ----------
    Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated
    in the case of the binomial. Biometrika 26(4), 404-413.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from pymc_austerity.diagnostics import audit
    >>> dims, wrong = ("chain", "draw"), np.zeros((2, 100), dtype=int)
    >>> wrong[0, :3] = 1
    >>> run = xr.Dataset(
    ...     {
    ...         "n_rows_used": (dims, np.full((2, 100), 500)),
    ...         "n_audited": (dims, np.ones((2, 100), dtype=int)),
    ...         "n_wrong": (dims, wrong),
    ...     },
    ...     attrs={"epsilon": 0.05},
    ... )
    >>> table = audit(run).round(3)
    >>> table[["n_audited", "n_wrong", "wrong_rate_low", "wrong_rate_high"]]
           n_audited  n_wrong  wrong_rate_low  wrong_rate_high
    chain
    0            100        3           0.006            0.085
    1            100        0           0.000            0.036
    all          200        3           0.003            0.043
    """
    table = audit_table(idata, promised, prob, step_method)
    overall = table.loc["all"]
    if contradicts(overall):
        info = RunInfo(statistics_of(idata, step_method=step_method))
        by_epsilon = promised is None and not info.is_designed and not info.is_bounded
        limit = "allowed by epsilon, which bounds one look only" if by_epsilon else "promised"
        warnings.warn(
            f"{overall['n_wrong']:.0f} of {overall['n_audited']:.0f} audited decisions were wrong, "
            f"more than the {overall['promised']:.2%} {limit}: {info.fewer_errors}.",
            AusterityWarning,
            stacklevel=2,
        )
    return table


def audit_table(
    idata: Any, promised: float | None, prob: float, step_method: int | None
) -> pd.DataFrame:
    """`audit` without the warning."""
    statistics = statistics_of(idata, ["n_audited", "n_wrong"], step_method=step_method)
    _check_share("prob", prob)
    if promised is None:
        promised = _promised(statistics)  # NaN where decisions are not right or wrong
    else:
        _check_share("promised", promised)

    def summary(chains: xr.Dataset) -> dict[str, float]:
        n_audited, n_wrong = int(chains["n_audited"].sum()), int(chains["n_wrong"].sum())
        low, high = exact_interval(n_wrong, n_audited, prob)
        return {
            "n_audited": n_audited,
            "n_wrong": n_wrong,
            "wrong_rate": n_wrong / n_audited if n_audited else math.nan,
            "wrong_rate_low": low,
            "wrong_rate_high": high,
            "promised": promised,
        }

    return by_chain(statistics, summary)


def _promised(statistics: xr.Dataset) -> float:
    """The largest error that was requested, else the largest epsilon of a draw, else of the run."""
    info = RunInfo(statistics)
    if info.is_designed:
        return info.max_error
    if "test_epsilon" in statistics:
        return float(statistics["test_epsilon"].max())
    return float(statistics_of(statistics, ["epsilon"])["epsilon"].max())


def contradicts(row: pd.Series) -> bool:
    """Whether the promised error is too small to explain a row of an audit."""
    return bool(row["wrong_rate_low"] > row["promised"])


def needed_audits(promised: float) -> int:
    """Number of audits, all of them right, that confirm the promised error; 0 if no number can."""
    if not 0.0 < promised < 1.0:
        return 0
    return math.ceil(math.log(0.025) / math.log1p(-promised))


def _check_share(name: str, value: Any) -> None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise SettingTypeError(f"{name} must be a number, not {type(value).__name__}.") from None
    if not 0.0 <= number <= 1.0 or (name == "prob" and number in {0.0, 1.0}):
        raise SettingError(f"{name} is a share and must be between 0 and 1, not {value}.")
