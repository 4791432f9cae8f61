"""What the decisions of a run cost, and how often they are wrong."""

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import xarray as xr
from scipy.stats import binomtest

from pymc_austerity.arguments import checked_fraction, checked_rate
from pymc_austerity.diagnostics.run_info import RunInfo, statistics_of
from pymc_austerity.errors import SettingError, warn_user

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
    >>> from pymc_austerity.diagnostics.decisions import by_chain
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
    idata : InferenceData, DataTree or Dataset
        A run of AusterityMH or AusterityGibbs.
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
    idata : InferenceData, DataTree or Dataset
        A run of GroupedMH.

    Returns
    -------
    pandas.DataFrame
        A row for each block, in the order of a sweep: ``"untouched"`` (entries on which no row
        depends), one per factor, ``"common"`` (entries on which all rows depend), ``"joint"``
        (these together with the levels of all factors but the largest), ``"exchange"`` (what no
        row notices), and ``"ridges"`` (what rows hardly notice). The columns are

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


def exact_interval(n_hits: int, n_trials: int, prob: float) -> tuple[float, float]:
    """Clopper-Pearson interval of a probability, from hits in independent trials.

    Parameters
    ----------
    n_hits, n_trials : int
        Numbers of hits and of trials; without trials, the interval is (0, 1).
    prob : float
        Minimum coverage, in (0, 1).

    Returns
    -------
    tuple of float
        Lower and upper end, in [0, 1].

    References
    ----------
    Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated
    in the case of the binomial. Biometrika 26(4), 404-413.

    Examples
    --------
    >>> from pymc_austerity.diagnostics.decisions import exact_interval
    >>> low, high = exact_interval(0, 100, 0.95)
    >>> low, round(high, 4), round(1 - 0.025 ** (1 / 100), 4)
    (0.0, 0.0362, 0.0362)
    """
    if n_trials == 0:
        return 0.0, 1.0
    interval = binomtest(n_hits, n_trials).proportion_ci(prob, method="exact")
    return float(interval.low), float(interval.high)


def audit(
    idata: Any, *, limit: float | None = None, prob: float = 0.95, step_method: int | None = None
) -> pd.DataFrame:
    r"""How often decisions are wrong: by the tests' own estimates, and by checks on all rows.

    The tail probability :math:`\delta` at which a test stopped estimates its error at the last
    look: the probability that all rows would give another decision, if this had been the only look.
    The whole sequential test is wrong more often. Audited decisions tell how often.

    Parameters
    ----------
    idata : InferenceData, DataTree or Dataset
        A run of AusterityMH or AusterityGibbs.
    limit : float, optional
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
        ``error_mean``, ``error_max``
            Mean and largest tail probability; 0 for exact decisions. With several steps per draw,
            the largest mean of a draw.
        ``expected_wrong``
            Expected number of wrong decisions: the sum of the tail probabilities.
        ``wrong_rate``, ``wrong_rate_low``, ``wrong_rate_high``
            Share of wrong decisions among those audited, and the ends of its Clopper-Pearson
            interval, in [0, 1]; NaN, 0 and 1 without audits.
        ``limit``
            Largest acceptable share, see above.

    Raises
    ------
    SettingError, SettingTypeError
        `idata` is not such a run, or an argument cannot be used.

    Warns
    -----
    AusterityWarning
        The lower end of the interval over all chains exceeds the limit.

    References
    ----------
    Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated
    in the case of the binomial. Biometrika 26(4), 404-413.
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, algorithm 1.

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
    table = audit_table(idata, limit, prob, step_method)
    info = RunInfo(statistics_of(idata, step_method=step_method))
    if broken := above_limit(table.loc["all"], info, limit):
        warn_user(": ".join(broken) + ".")
    return table


def audit_table(
    idata: Any, limit: float | None, prob: float, step_method: int | None
) -> pd.DataFrame:
    """`audit` without the warning."""
    statistics = statistics_of(idata, ["n_audited", "n_wrong"], step_method=step_method)
    checked_rate("prob", prob, "the probability that an interval covers")
    if limit is None:
        limit = _limit_of(statistics)  # NaN where decisions are not right or wrong
    else:
        checked_fraction("limit", limit, 1.0, "a share of wrong decisions")

    def summary(chains: xr.Dataset) -> dict[str, float]:
        n_audited, n_wrong = int(chains["n_audited"].sum()), int(chains["n_wrong"].sum())
        low, high = exact_interval(n_wrong, n_audited, prob)
        steps, unknown = chains["steps_per_draw"], xr.DataArray(math.nan)
        error = chains.get("decision_error", unknown).broadcast_like(chains["n_audited"])
        return {
            "error_mean": float(error.weighted(steps).mean()),
            "error_max": float(error.max()),
            "expected_wrong": float((error * steps).sum(skipna=False)),
            "n_audited": n_audited,
            "n_wrong": n_wrong,
            "wrong_rate": n_wrong / n_audited if n_audited else math.nan,
            "wrong_rate_low": low,
            "wrong_rate_high": high,
            "limit": limit,
        }

    return by_chain(statistics, summary)


def _limit_of(statistics: xr.Dataset) -> float:
    """The largest error that was requested, else the largest epsilon of a draw, else of the run."""
    info = RunInfo(statistics)
    if info.is_designed:
        return info.max_error
    if "test_epsilon" in statistics:
        return float(statistics["test_epsilon"].max())
    return float(statistics_of(statistics, ["epsilon"])["epsilon"].max())


def above_limit(
    row: pd.Series, info: RunInfo, limit: float | None = None
) -> tuple[str, str] | None:
    """What a row of an audit says against a run, and the remedy; None if nothing.

    Parameters
    ----------
    row : pandas.Series
        Of the result of `audit_table`.
    info : RunInfo
        Settings of the run.
    limit : float, optional
        What the user set; by default the limit is that of the run.
    """
    if not contradicts(row):
        return None
    words = f"allowed by {info.strictness}" if limit is None else "limit"
    if words == "allowed by epsilon" and not info.is_bounded:
        words += ", which bounds the error of one look"
    return (
        f"{row['n_wrong']:,.0f} of {row['n_audited']:,.0f} audited {info.decision}s were wrong, "
        f"more than the {row['limit']:.2%} {words}"
    ), info.fewer_errors


def contradicts(row: pd.Series) -> bool:
    """Whether the limit is too small to explain a row of an audit."""
    return bool(row["wrong_rate_low"] > row["limit"])


def needed_audits(limit: float) -> int:
    """Number of audits, all of them right, that confirm the limit; 0 if no number can."""
    if not 0.0 < limit < 1.0:
        return 0
    return math.ceil(math.log(0.025) / math.log1p(-limit))
