"""Rows that decisions and blocks read, as pictures."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.diagnostics import block_usage, statistics_of
from pymc_austerity.diagnostics.run_info import RunInfo
from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.plots.drawing import COLORS, axes_or_new, color, finished, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SINGLE = 10.0


def plot_data_usage(
    idata: Any,
    *,
    window: int | None = None,
    step_method: int | None = None,
    ax: "tuple[Axes, Axes] | None" = None,
) -> "NDArray[np.object_]":
    """Draw how many rows a decision reads, over the draws and as a distribution.

    The left plot has a line for each chain, averaged over neighboring draws; the right one has the
    distribution over all decisions, with the median and the mean. Rows are on a logarithmic scale,
    up to all of them. Decisions that need no rows are left out.

    Parameters
    ----------
    idata : InferenceData, DataTree or Dataset
        A run of AusterityMH or AusterityGibbs.
    window : int, optional
        Number of draws to average over; by default a fiftieth of them.
    step_method : int, optional
        Index of the AusterityMH in a compound run, counted from 0; by default the mean of all.
    ax : pair of matplotlib.axes.Axes, optional
        Where to draw, by default in a new figure.

    Returns
    -------
    array of matplotlib.axes.Axes, shape (2,)
        The plots of the draws and of the distribution.

    Raises
    ------
    SettingError, SettingTypeError
        `idata` is not such a run, or an argument cannot be used.
    ImportError
        matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from pymc_austerity.plots import plot_data_usage
    >>> dims, n_looks = ("chain", "draw"), np.random.default_rng(1).geometric(0.5, size=(2, 500))
    >>> run = xr.Dataset(
    ...     {"n_rows_used": (dims, 100 * n_looks), "n_looks": (dims, n_looks)},
    ...     attrs={"n_rows": 10_000},
    ... )
    >>> over_draws, distribution = plot_data_usage(run)
    >>> over_draws.get_xlabel(), over_draws.get_ylabel()
    ('draw (lines: mean of 10 draws)', 'rows read per decision')
    """
    statistics = statistics_of(idata, ["n_looks"], step_method=step_method)
    info = RunInfo(statistics)
    rows = (statistics["n_rows_used"] / statistics["steps_per_draw"]).where(
        statistics["n_looks"] > 0
    )
    draws, seen = rows["draw"].values, rows.values[np.isfinite(rows.values)]
    if not seen.size:
        raise SettingError("No decision of this run has read any rows: there is nothing to draw.")
    window = _checked_window(window, draws.size)
    left, right = _pair(ax)
    for number, values in enumerate(rows.values):
        label = f"chain {rows['chain'].values[number]}"
        averaged = _moving_mean(values, window)
        left.plot(draws, averaged, color=color(number), linewidth=1.2, label=label)
    bins, weights = _bins(seen), np.full(seen.size, 1.0 / seen.size)
    right.hist(seen, bins=bins.tolist(), orientation="horizontal", color="0.75", weights=weights)
    for name, value, style in (("median", np.median(seen), "-"), ("mean", seen.mean(), "--")):
        label = f"{name} {_number(float(value))}"
        right.axhline(float(value), color=COLORS[-1], linewidth=1.2, linestyle=style, label=label)
    n_rows = info.constant("n_rows")
    for axes in (left, right):
        if n_rows is not None and not info.is_gibbs:
            label = f"all {n_rows:,} rows" if axes is left else ""
            axes.axhline(n_rows, color="0.6", linewidth=1.0, linestyle=":", label=label)
        _scale(axes, seen, max(float(seen.max()), n_rows or 0.0))
    draw = "draw" + (f" (lines: mean of {window} draws)" if window > 1 else "")
    read = f"{info.rows} read per {info.decision}"
    finished(left, xlabel=draw, ylabel=read)
    finished(right, shares="x", xlabel=f"share of the {info.unit}", ylabel=read)
    return np.array([left, right], dtype=object)


def _scale(axes: "Axes", seen: NDArray[np.float64], highest: float) -> None:
    """A logarithmic axis up to all rows, with zero on it where decisions read none."""
    from matplotlib.ticker import LogLocator, SymmetricalLogLocator

    subs, low = (1.0, 2.0, 5.0), float(seen.min())
    axes.set_ylim(low / 2.0 if low >= 1.0 else 0.0, 1.3 * max(highest, 1.0))
    if low < 1.0:
        axes.set_yscale("symlog", linthresh=1.0)
        axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10.0, linthresh=1.0, subs=subs))
    else:
        axes.set_yscale("log", subs=())
        axes.yaxis.set_major_locator(LogLocator(subs=subs))
    axes.yaxis.set_major_formatter(_ticks)


def _ticks(value: float, _position: Any = None) -> str:
    return f"{value:,.0f}"


def _number(rows: float) -> str:
    return f"{rows:,.0f}" if rows >= 10.0 else f"{rows:.2g}"


def _pair(ax: Any) -> tuple["Axes", "Axes"]:
    if ax is None:
        options = {"width_ratios": (3, 2), "figsize": (10.0, 4.0), "layout": "constrained"}
        ax = pyplot().subplots(1, 2, **options)[1]
    if np.size(ax) != 2:
        raise SettingTypeError("ax must be a pair of matplotlib Axes.")
    left, right = ax
    return axes_or_new(left), axes_or_new(right)


def _checked_window(window: Any, n_draws: int) -> int:
    if window is None:
        return max(1, n_draws // 50)
    if isinstance(window, bool) or not isinstance(window, int | np.integer):
        raise SettingTypeError(f"window must be an integer, not {type(window).__name__}.")
    if not 1 <= window <= n_draws:
        raise SettingError(
            f"window must be from 1 to {n_draws}, the draws of a chain, not {window}."
        )
    return int(window)


def _moving_mean(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Mean over `window` draws and step methods around every draw, ignoring unknown values."""
    known = np.isfinite(values)
    sums, counts = np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1)
    kernel = np.ones(window)
    total, count = (np.convolve(x, kernel, mode="full") for x in (sums, counts))
    middle = slice((window - 1) // 2, (window - 1) // 2 + sums.size)
    with np.errstate(invalid="ignore"):
        return total[middle] / np.where(count[middle] > 0.5, count[middle], np.nan)


def _bins(seen: NDArray[np.float64]) -> NDArray[np.float64]:
    """Edges of bins of equal width on a logarithmic scale, and of single rows below ten."""
    low, high = float(seen.min()), float(seen.max())
    if low >= _SINGLE:
        return np.geomspace(0.98 * low, 1.02 * high, 31)
    single = np.arange(_SINGLE + 1.0)
    above = np.geomspace(_SINGLE, max(1.02 * high, _SINGLE + 1.0), 31)[1:]
    return np.concatenate([single, above])


def plot_block_usage(idata: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the rows that a sweep read for each block, with the block's acceptance rate.

    Parameters
    ----------
    idata : InferenceData, DataTree or Dataset
        A run of GroupedMH.
    ax : matplotlib.axes.Axes, optional
        Where to draw, by default in a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    SettingError, SettingTypeError
        `idata` is not a run of GroupedMH, or `ax` is not an Axes.
    ImportError
        matplotlib is not installed.

    Examples
    --------
    >>> import xarray as xr
    >>> from pymc_austerity.plots import plot_block_usage
    >>> dims = ("chain", "draw")
    >>> run = xr.Dataset({"n_rows_used": (dims, [[30, 30]])}, attrs={"blocks": "county"})
    >>> run["n_rows_county"], run["accepted_county"] = (dims, [[30, 30]]), (dims, [[0.5, 0.7]])
    >>> ax = plot_block_usage(run)
    >>> [label.get_text() for label in ax.get_yticklabels()], ax.get_xlabel()
    (['county'], 'rows read per sweep')
    """
    table = block_usage(idata)
    ax = axes_or_new(ax, (6.0, 1.2 + 0.4 * len(table)))
    places = range(len(table))
    ax.barh(places, table["rows_mean"], color=color(0), height=0.6, label="rows read")
    for place, (rows, accepted) in enumerate(
        zip(table["rows_mean"], table["acceptance"], strict=True)
    ):
        ax.annotate(
            f"{accepted:.0%} accepted",
            (rows, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
        )
    ax.set_yticks(places, table.index)
    ax.invert_yaxis()
    ax.set_xlim(0.0, 1.3 * max(table["rows_mean"].max(), 1.0))
    return finished(ax, xlabel="rows read per sweep", ylabel="block")
