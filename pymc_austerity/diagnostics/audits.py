"""Errors of decisions: the test's own estimates, audits, and distances for designs."""

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import binomtest

from pymc_austerity.design import TrialRun
from pymc_austerity.diagnostics.groups import statistics_of
from pymc_austerity.diagnostics.run_info import RunInfo
from pymc_austerity.diagnostics.usage import by_chain
from pymc_austerity.errors import AusterityWarning, SettingError, SettingTypeError

__all__ = [
    "audit",
    "audit_table",
    "contradicts",
    "decision_errors",
    "exact_interval",
    "needed_audits",
    "trial_run",
]

_MOSTLY = 0.9
"""Share of exact decisions above which the other decisions do not matter."""


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
    >>> from pymc_austerity.diagnostics.audits import exact_interval
    >>> low, high = exact_interval(0, 100, 0.95)
    >>> low, round(high, 4), round(1 - 0.025 ** (1 / 100), 4)
    (0.0, 0.0362, 0.0362)
    """
    if n_trials == 0:
        return 0.0, 1.0
    interval = binomtest(n_hits, n_trials).proportion_ci(prob, method="exact")
    return float(interval.low), float(interval.high)


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


def trial_run(idata: Any, *, step_method: int | None = None) -> TrialRun:
    r"""Distances of a run's decisions from the threshold, to design the test of the next run.

    Parameters
    ----------
    idata : InferenceData, DataTree, Dataset or path
        A run of ``AusterityMH(epsilon=0)``, with one step per draw on uniform samples, or a netCDF
        file of one.
    step_method : int, optional
        Index of the AusterityMH in a compound run, counted from 0; by default all together.

    Returns
    -------
    TrialRun
        Input of `pymc_austerity.design.average_design` with ``measure="decision"``.

    Raises
    ------
    SettingError, SettingTypeError
        `idata` is not such a run, or no decision needed any rows.

    Notes
    -----
    The statistic ``standardized_mean`` is :math:`\mu_{std}` itself if a decision read all rows,
    as with ``epsilon=0``. Tests stop where its estimate is far from the threshold, so designs from
    runs that stopped early would be wrong more often than promised: runs in which more than a tenth
    of the decisions stopped early are rejected.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from pymc_austerity.design import average_design
    >>> from pymc_austerity.diagnostics import trial_run
    >>> dims, rng = ("chain", "draw"), np.random.default_rng(1)
    >>> run = xr.Dataset(
    ...     {
    ...         "n_rows_used": (dims, np.full((2, 500), 10_000)),
    ...         "standardized_mean": (dims, rng.normal(0.0, 3.0, size=(2, 500))),
    ...         "used_all_rows": (dims, np.ones((2, 500), dtype=bool)),
    ...         "n_looks": (dims, np.ones((2, 500), dtype=int)),
    ...     },
    ...     attrs={"n_rows": 10_000},
    ... )
    >>> design = average_design(trial_run(run), max_error=0.01, measure="decision")
    >>> design.expected_error <= 0.01
    True
    """
    names = ["standardized_mean", "n_rows", "used_all_rows", "n_looks"]
    statistics = statistics_of(idata, names, step_method=step_method)
    if (statistics["steps_per_draw"] > 1).any():
        raise SettingError(
            "The run took several steps per draw and recorded the mean of their distances: make "
            "the trial run with steps_per_draw=1."
        )
    if "stratum_sizes" in statistics.attrs:
        raise SettingError(
            "The run sampled rows by influence, where the unit of distances changes from decision "
            "to decision: run the trial with sampling='windows', or use AusterityMH(max_error=...)."
        )
    exact = float((statistics["used_all_rows"] | (statistics["n_looks"] == 0)).mean())
    if exact < _MOSTLY:
        raise SettingError(
            f"Only {exact:.0%} of the run's decisions read all rows, and distances are "
            "overestimated where a test stopped early: make the trial run with epsilon=0."
        )
    values = statistics["standardized_mean"].values
    distances = values[np.isfinite(values)]
    if not distances.size:
        raise SettingError("No decision of the run needed any rows: there is nothing to design.")
    n_rows = int(statistics["n_rows"].max())
    return TrialRun.from_distances(distances, 1.0, n_rows)  # standardized: in units of the spread
