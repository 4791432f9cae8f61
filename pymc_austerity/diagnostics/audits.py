"""What all rows said about the decisions that were checked."""

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from pymc_austerity.diagnostics.binomial import exact_interval
from pymc_austerity.diagnostics.groups import statistics_of
from pymc_austerity.diagnostics.tables import by_chain
from pymc_austerity.errors import AusterityWarning, SettingError, SettingTypeError

__all__ = ["audit", "audit_table", "contradicts", "has_max_error"]


def audit(
    idata: Any,
    *,
    promised: float | None = None,
    probability: float = 0.95,
    step_method: int | None = None,
) -> pd.DataFrame:
    r"""Share of wrong decisions among those checked on all rows, next to what was promised.

    Parameters
    ----------
    idata : InferenceData, DataTree, Dataset or path
        A run of ``AusterityMH(audit=...)``, or a netCDF file of one.
    promised : float, optional
        Largest share of wrong decisions that is acceptable, in [0, 1]; by default the ``max_error``
        of the run, or else its ``epsilon``, which bounds one look: whole decisions may err more
        often.
    probability : float
        Coverage of the interval, in (0, 1).
    step_method : int, optional
        Which AusterityMH of a compound run, counted from 0; by default all together, next to the
        largest ``epsilon``.

    Returns
    -------
    pandas.DataFrame
        A row for each chain and one, ``"all"``, for all chains, with the columns

        ``n_audited``, ``n_wrong``
            Draws with a decision that was audited, and with one that all rows contradict.
        ``wrong_rate``, ``wrong_rate_low``, ``wrong_rate_high``
            Share of wrong decisions among those that looked at rows, and the ends of its
            Clopper-Pearson interval, in [0, 1]. Without audits NaN, 0 and 1.
        ``promised``
            See above.

    Raises
    ------
    SettingError, SettingTypeError
        `idata` is not a run of AusterityMH, or an argument cannot be used.

    Warns
    -----
    AusterityWarning
        The lower end of the interval over all chains exceeds what was promised.

    Notes
    -----
    With :math:`s` steps per draw, of which each is audited with probability :math:`a`, a record
    says only whether all rows agreed with all the audited decisions of a draw. A share :math:`w` of
    wrong decisions, independent of each other, makes a share

    .. math:: p = \frac{1 - (1 - a w)^s}{1 - (1 - a)^s}

    of the audited draws disagree. The binomial interval is that of :math:`p`, its ends solved for
    :math:`w`; with one step per draw :math:`p = w`.

    References
    ----------
    Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated
    in the case of the binomial. Biometrika 26(4), 404-413.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from pymc_austerity.diagnostics import audit
    >>> dims, agrees = ("chain", "draw"), np.ones((2, 100), dtype=bool)
    >>> agrees[0, :3] = False
    >>> run = xr.Dataset(
    ...     {
    ...         "n_rows_used": (dims, np.full((2, 100), 500)),
    ...         "audited": (dims, np.ones((2, 100), dtype=bool)),
    ...         "audit_agrees": (dims, agrees),
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
    table = audit_table(idata, promised, probability, step_method)
    overall = table.loc["all"]
    if contradicts(overall):
        named = promised is not None or has_max_error(idata)
        source = "" if named else " by epsilon, which bounds one look only"
        warnings.warn(
            f"{overall['n_wrong']:.0f} of {overall['n_audited']:.0f} audited decisions were wrong, "
            f"more than the {overall['promised']:.2%} promised{source}: choose a smaller epsilon, "
            "or read more rows at the first look.",
            AusterityWarning,
            stacklevel=2,
        )
    return table


def audit_table(
    idata: Any, promised: float | None, probability: float, step_method: int | None
) -> pd.DataFrame:
    """`audit` without the warning."""
    statistics = statistics_of(idata, ["audited", "audit_agrees"], step_method=step_method)
    if (statistics["steps_per_draw"] > 1).any():
        statistics = statistics_of(statistics, ["audit"])
    _check_share("probability", probability)
    if promised is None:
        promised = _promised(statistics)  # NaN where decisions are not right or wrong
    else:
        _check_share("promised", promised)
    steps, share = _steps_and_share(statistics)

    def summary(chains: xr.Dataset) -> dict[str, float]:
        audited = chains["audited"].astype(bool)
        n_audited = int(audited.sum())
        n_wrong = int((audited & ~chains["audit_agrees"].astype(bool)).sum())
        rate = n_wrong / n_audited if n_audited else math.nan
        low, high = exact_interval(n_wrong, n_audited, probability)
        return {
            "n_audited": n_audited,
            "n_wrong": n_wrong,
            "wrong_rate": _of_decisions(rate, steps, share),
            "wrong_rate_low": _of_decisions(low, steps, share),
            "wrong_rate_high": _of_decisions(high, steps, share),
            "promised": promised,
        }

    return by_chain(statistics, summary)


def has_max_error(idata: Any) -> bool:
    """Whether the user named the largest share of wrong decisions when the run was made."""
    return bool(np.isfinite(_max_error(statistics_of(idata))))


def _max_error(statistics: xr.Dataset) -> float:
    known = statistics.coords.get("max_error")
    return math.nan if known is None else float(known.max())


def _promised(statistics: xr.Dataset) -> float:
    """The largest error that was asked for, else the largest epsilon of a draw, else of the run."""
    asked = _max_error(statistics)
    if not math.isnan(asked):
        return asked
    if "test_epsilon" in statistics:
        return float(statistics["test_epsilon"].max())
    return float(statistics_of(statistics, ["epsilon"])["epsilon"].max())


def contradicts(row: pd.Series) -> bool:
    """Whether a row of an audit cannot be explained by the error that was promised."""
    return bool(row["wrong_rate_low"] > row["promised"])


def _of_decisions(of_draws: float, steps: int, share: float) -> float:
    """Share of wrong decisions that makes a given share of the audited draws disagree."""
    if steps == 1:
        return of_draws
    disagree = -of_draws * math.expm1(steps * math.log1p(-share)) if share < 1.0 else of_draws
    if disagree >= 1.0:
        return 1.0
    return -math.expm1(math.log1p(-disagree) / steps) / share


def _steps_and_share(statistics: xr.Dataset) -> tuple[int, float]:
    """Steps per draw and share of audited decisions, of those step methods that audited any."""
    some = statistics["audited"].astype(bool).any(["chain", "draw"]).values
    steps = set(statistics["steps_per_draw"].values[some].tolist())
    if steps <= {1}:
        return 1, 1.0
    shares = set(statistics["audit"].values[some].tolist())
    if any(math.isnan(share) for share in shares):  # a budget: hardly ever two of one draw
        return 1, 1.0
    if len(steps) > 1 or len(shares) > 1:
        raise SettingError(
            "The step methods of this run differ in steps_per_draw or audit, so that their audits "
            "cannot be added up: choose one with step_method=0, 1, ..."
        )
    return int(steps.pop()), float(shares.pop())


def _check_share(name: str, value: Any) -> None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise SettingTypeError(f"{name} must be a number, not {type(value).__name__}.") from None
    if not 0.0 <= number <= 1.0 or (name == "probability" and number in {0.0, 1.0}):
        raise SettingError(f"{name} is a share and must be between 0 and 1, not {value}.")
