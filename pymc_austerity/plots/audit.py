"""Audited errors, compared with the promised ones."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from pymc_austerity.diagnostics import statistics_of
from pymc_austerity.diagnostics.audits import audit_table, contradicts
from pymc_austerity.diagnostics.run_info import RunInfo
from pymc_austerity.errors import SettingError
from pymc_austerity.plots.drawing import COLORS, axes_or_new, finished, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_audit"]


def plot_audit(
    idata: Any,
    *,
    promised: float | None = None,
    prob: float = 0.95,
    step_method: int | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw audited shares of wrong decisions, with intervals, next to the promised share.

    There is a line for each chain and one for all chains together or, with several runs, a line for
    each run; labels give the number of audited decisions. An interval that lies entirely above the
    promised share has another color and another marker.

    Parameters
    ----------
    idata : InferenceData, DataTree, Dataset, path, or dict of these
        A run with audited decisions, a netCDF file of one, or several of these by name.
    promised : float, optional
        Largest share of wrong decisions that is acceptable, in [0, 1]; by default the ``max_error``
        of each run, or else its largest ``epsilon``, which bounds the error of one look: whole
        decisions may be wrong more often.
    prob : float
        Coverage of the intervals, in (0, 1).
    step_method : int, optional
        Index of the AusterityMH in a compound run, counted from 0; by default all together.
    ax : matplotlib.axes.Axes, optional
        Where to draw, by default in a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    SettingError, SettingTypeError
        `idata` is not such a run, there were no audits or nothing to audit, or an argument cannot
        be used.
    ImportError
        matplotlib is not installed.

    See Also
    --------
    pymc_austerity.diagnostics.audit : the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from pymc_austerity.plots import plot_audit
    >>> dims = ("chain", "draw")
    >>> run = xr.Dataset(
    ...     {
    ...         "n_rows_used": (dims, np.full((2, 100), 500)),
    ...         "n_audited": (dims, np.ones((2, 100), dtype=int)),
    ...         "n_wrong": (dims, np.arange(200).reshape(2, 100) % 50 == 0),
    ...     },
    ...     attrs={"epsilon": 0.05},
    ... )
    >>> ax = plot_audit(run)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['chain 0 (100 audited)', 'chain 1 (100 audited)', 'all (200 audited)']
    """
    table = _table(idata, promised, prob, step_method)
    if not table["n_audited"].any():
        raise SettingError(_why_not(idata, step_method))
    ax = axes_or_new(ax, (6.5, 1.4 + 0.4 * len(table)))
    broken = table.apply(contradicts, axis=1)
    _draw_intervals(ax, table, ~broken, "o", COLORS[0], f"audited, {percent(prob)} interval")
    _draw_intervals(ax, table, broken, "D", COLORS[1], "audited, above what was promised")
    ax.plot(
        table["promised"],
        range(len(table)),
        linestyle="",
        marker="|",
        markersize=16.0,
        markeredgewidth=2.0,
        color=COLORS[-1],
        label="promised",
    )
    ax.set_yticks(range(len(table)), _labels(table))
    limits = {"xlim": (0.0, _end(table)), "ylim": (len(table) - 0.5, -0.5)}
    return finished(ax, shares="x", xlabel="share of wrong decisions", **limits)


def _why_not(idata: Any, step_method: int | None) -> str:
    runs = idata.values() if isinstance(idata, dict) else [idata]
    infos = [RunInfo(statistics_of(run, step_method=step_method)) for run in runs]
    reasons = [info.nothing_to_audit for info in infos]
    return (
        reasons[0]
        if all(reasons)
        else f"No decision was audited: pass audit=0.1 to {infos[0].sampler}."
    )


def _labels(table: pd.DataFrame) -> list[str]:
    return [f"{name} ({n:,} audited)" for name, n in table["n_audited"].items()]


def _draw_intervals(
    ax: "Axes", table: pd.DataFrame, which: Any, marker: str, color: str, label: str
) -> None:
    rows = table[which & (table["n_audited"] > 0)]
    if rows.empty:
        return
    places = [i for i, name in enumerate(table.index) if name in rows.index]
    rate = rows["wrong_rate"]
    ends = [rate - rows["wrong_rate_low"], rows["wrong_rate_high"] - rate]
    ax.errorbar(
        rate, places, xerr=ends, linestyle="", marker=marker, capsize=4.0, color=color, label=label
    )


def _end(table: pd.DataFrame) -> float:
    known = table[table["n_audited"] > 0]
    return min(1.0, 1.1 * max(known["wrong_rate_high"].max(), known["promised"].max()))


def _table(
    idata: Any, promised: float | None, prob: float, step_method: int | None
) -> pd.DataFrame:
    settings = promised, prob, step_method
    # A Dataset and a DataTree are mappings, too: only a plain dictionary is several runs.
    if not isinstance(idata, dict):
        return audit_table(idata, *settings).rename(lambda x: x if x == "all" else f"chain {x}")
    if not idata:
        raise SettingError("idata names no run.")
    rows = {str(name): audit_table(run, *settings).loc["all"] for name, run in idata.items()}
    return pd.DataFrame(rows).T.astype({"n_audited": int, "n_wrong": int})
