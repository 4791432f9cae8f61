"""A run in pictures: the rows that its decisions read, and the errors of these decisions."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from pymc_austerity.arguments import checked_count
from pymc_austerity.diagnostics import block_usage, statistics_of
from pymc_austerity.diagnostics.decisions import audit_table, contradicts
from pymc_austerity.diagnostics.run_info import RunInfo
from pymc_austerity.errors import SettingError, SettingTypeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_audit", "plot_block_usage", "plot_data_usage", "plot_decision_errors"]

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Colors that color-blind readers can distinguish (Okabe and Ito, 2008)."""


def axes_or_new(ax: Any, size: tuple[float, float] = (6.0, 4.0)) -> "Axes":
    """The axes to draw into: the given ones, or those of a new figure of a given size in inches."""
    if ax is None:
        import matplotlib.pyplot as plt

        return plt.subplots(figsize=size, layout="constrained")[1]
    if not hasattr(ax, "plot"):
        raise SettingTypeError(f"ax must be a matplotlib Axes, not {type(ax).__name__}.")
    return ax


def color(number: int) -> str:
    """Color of the n-th element of a plot."""
    return COLORS[number % len(COLORS)]


def percent(share: float, _position: Any = None) -> str:
    """A share, as labels of an axis show it.

    Examples
    --------
    >>> percent(0.05), percent(0.001)
    ('5%', '0.1%')
    """
    return f"{100 * share:.3g}%"


def finished(ax: "Axes", *, shares: str = "", handles: Any = None, **properties: Any) -> "Axes":
    """Add labels and limits to a plot, and a legend that covers no part of it.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The plot, with a label for everything that the legend should name.
    shares : {"", "x", "y", "xy"}
        Axes that show shares, in percent.
    handles : list of artists, optional
        Entries of the legend; by default everything that has a label.
    **properties
        Passed on to ``ax.set``.
    """
    ax.set(**properties)
    for axis in shares:
        getattr(ax, f"{axis}axis").set_major_formatter(percent)
    place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    named = {} if handles is None else {"handles": handles}
    figure: Any = ax.figure.canvas.figure
    for n_columns in (3, 2, 1):  # as many as the figure is wide
        legend = ax.legend(frameon=False, fontsize="small", ncols=n_columns, **place, **named)
        legend.set_in_layout(False)
        figure.draw_without_rendering()
        if legend.get_window_extent().x1 <= figure.bbox.x1:
            break
    legend.set_in_layout(True)
    return ax


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
        import matplotlib.pyplot as plt

        ax = plt.subplots(1, 2, **options)[1]
    if np.size(ax) != 2:
        raise SettingTypeError("ax must be a pair of matplotlib Axes.")
    left, right = ax
    return axes_or_new(left), axes_or_new(right)


def _checked_window(window: Any, n_draws: int) -> int:
    if window is None:
        return max(1, n_draws // 50)
    window = checked_count("window", window, what="a number of draws")
    if window > n_draws:
        raise SettingError(
            f"window must be from 1 to {n_draws}, the draws of a chain, not {window}."
        )
    return window


def _moving_mean(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Mean over `window` draws and step methods around every draw, ignoring unknown values."""
    each = pd.DataFrame(
        {"sum": np.nansum(values, axis=1), "count": np.isfinite(values).sum(axis=1)}
    )
    both = each.rolling(window, center=True, min_periods=1).sum()
    return (both["sum"] / both["count"]).to_numpy()


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


_NEAR = 5.0
_FAR = 50.0
"""Distance up to which the x axis is about linear, and beyond which it is logarithmic."""


def plot_decision_errors(
    idata: Any,
    *,
    mu_std: ArrayLike | None = None,
    error: ArrayLike | None = None,
    step_method: int | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    r"""Draw the distances of a run's decisions from the threshold, and an error curve over them.

    The distribution is that of ``standardized_mean``, the estimate of :math:`\mu_\mathrm{std}` at
    the last look (the mean of these if a draw has several decisions). If decisions lie far from the
    threshold, as with control variates, the x axis is linear near it and logarithmic beyond. The
    curve, on a second y axis (the last of ``ax.figure.axes``), is the given error of a decision at
    each distance: many decisions are wrong where the curve is high and the run has many decisions.

    Parameters
    ----------
    idata : InferenceData, DataTree or Dataset
        A run of AusterityMH or AusterityGibbs.
    mu_std, error : array_like, shape (n,), optional
        Distances, in increasing order, and the probabilities of a wrong decision there.
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
        `idata` is not such a run, or an argument cannot be used.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, section 5.1 and figure 1.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from pymc_austerity.plots import plot_decision_errors
    >>> dims, rng = ("chain", "draw"), np.random.default_rng(1)
    >>> run = xr.Dataset(
    ...     {
    ...         "n_rows_used": (dims, np.full((2, 500), 100)),
    ...         "standardized_mean": (dims, rng.normal(0.0, 3.0, size=(2, 500))),
    ...     }
    ... )
    >>> grid = np.linspace(-8, 8, 101)
    >>> ax = plot_decision_errors(run, mu_std=grid, error=0.3 * np.exp(-np.abs(grid)))
    >>> ax.get_ylabel()
    'share of the decisions'
    """
    statistics = statistics_of(idata, ["standardized_mean"], step_method=step_method)
    info = RunInfo(statistics)
    if info.is_poisson:
        raise SettingError(
            "Every decision of the run is exact, and none has a distance from a threshold: there "
            "is nothing to draw."
        )
    distances = statistics["standardized_mean"].values
    distances = distances[np.isfinite(distances)]
    if not distances.size:
        raise SettingError("The run has no finite values of standardized_mean to draw.")
    curve = _checked_curve(mu_std, error)
    ax = axes_or_new(ax)
    low, high = _range(distances, curve)
    inside = distances[(distances >= low) & (distances <= high)]
    beyond = 1.0 - inside.size / distances.size
    label = f"{info.unit} of the run" + (f" ({beyond:.1%} lie beyond)" if beyond > 0.0 else "")
    weights = np.full(inside.size, 1.0 / distances.size)
    bins = np.linspace(low, high, 41)
    if curve is None and high > _FAR:
        bins = _NEAR * np.sinh(np.linspace(np.arcsinh(low / _NEAR), np.arcsinh(high / _NEAR), 41))
        ax.set_xscale("asinh", linear_width=_NEAR)
    ax.hist(inside, bins=bins.tolist(), weights=weights, color="0.8", label=label)
    ax.axvline(0.0, color="0.4", linewidth=0.8, linestyle=":")
    return finished(
        ax,
        shares="y",
        handles=[ax.patches[0], *([] if curve is None else _draw_curve(ax, *curve))],
        xlim=(low, high),
        xlabel=r"distance from the threshold, $\mu_\mathrm{std}$ (standard errors)",
        ylabel=f"share of the {info.unit}",
    )


def _draw_curve(ax: "Axes", mu_std: NDArray[np.float64], error: NDArray[np.float64]) -> list[Any]:
    twin = ax.twinx()
    what = "probability of a wrong decision"
    lines = twin.plot(mu_std, error, color=COLORS[1], linewidth=2.0, label=what)
    twin.set(ylim=(0.0, max(1.05 * float(error.max()), 1e-12)))
    twin.set_ylabel(what, color=COLORS[1])
    twin.tick_params(axis="y", colors=COLORS[1])
    twin.yaxis.set_major_formatter(percent)
    return list(lines)


def _range(distances: NDArray[np.float64], curve: Any) -> tuple[float, float]:
    """Range of the curve, else a symmetric one that contains 98 % of the decisions."""
    if curve is not None:
        return float(curve[0][0]), float(curve[0][-1])
    reach = float(np.quantile(np.abs(distances), 0.98)) or 1.0
    return -reach, reach


def _checked_curve(mu_std: Any, error: Any) -> Any:
    if mu_std is None and error is None:
        return None
    if mu_std is None or error is None:
        raise SettingError("mu_std and error make a curve together: pass both or neither.")
    try:
        x, y = np.asarray(mu_std, dtype=float), np.asarray(error, dtype=float)
    except (TypeError, ValueError):
        raise SettingTypeError("mu_std and error must be arrays of numbers.") from None
    if x.ndim != 1 or x.shape != y.shape or x.size < 2 or not (np.diff(x) > 0).all():
        raise SettingError(
            "mu_std and error must have the same length, at least 2, and mu_std must increase."
        )
    if not ((y >= 0.0) & (y <= 1.0)).all():
        raise SettingError("error must hold probabilities, between 0 and 1.")
    return x, y


def plot_audit(
    idata: Any,
    *,
    limit: float | None = None,
    prob: float = 0.95,
    step_method: int | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw audited shares of wrong decisions, with intervals, next to the limit.

    There is a line for each chain and one for all chains together or, with several runs, a line for
    each run; labels give the number of audited decisions. An interval that lies entirely above the
    limit has another color and another marker.

    Parameters
    ----------
    idata : InferenceData, DataTree, Dataset, or dict of these
        A run with audited decisions, or several of them by name.
    limit : float, optional
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
    table = _table(idata, limit, prob, step_method)
    if not table["n_audited"].any():
        raise SettingError(_why_not(idata, step_method))
    ax = axes_or_new(ax, (6.5, 1.4 + 0.4 * len(table)))
    broken = table.apply(contradicts, axis=1)
    _draw_intervals(ax, table, ~broken, "o", COLORS[0], f"audited, {percent(prob)} interval")
    _draw_intervals(ax, table, broken, "D", COLORS[1], "audited, above the limit")
    ax.plot(
        table["limit"],
        range(len(table)),
        linestyle="",
        marker="|",
        markersize=16.0,
        markeredgewidth=2.0,
        color=COLORS[-1],
        label="limit",
    )
    labels = [f"{name} ({n:,} audited)" for name, n in table["n_audited"].items()]
    ax.set_yticks(range(len(table)), labels)
    known = table[table["n_audited"] > 0]
    end = min(1.0, 1.1 * max(known["wrong_rate_high"].max(), known["limit"].max()))
    limits = {"xlim": (0.0, end), "ylim": (len(table) - 0.5, -0.5)}
    return finished(ax, shares="x", xlabel="share of wrong decisions", **limits)


def _why_not(idata: Any, step_method: int | None) -> str:
    runs = idata.values() if isinstance(idata, dict) else [idata]
    infos = [RunInfo(statistics_of(run, step_method=step_method)) for run in runs]
    reasons = [info.nothing_to_audit for info in infos]
    if all(reasons):
        return reasons[0]
    return f"No decision was audited: pass audit=0.1 to {infos[0].sampler}."


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


def _table(idata: Any, limit: float | None, prob: float, step_method: int | None) -> pd.DataFrame:
    settings = limit, prob, step_method
    # A Dataset and a DataTree are mappings, too: only a plain dictionary is several runs.
    if not isinstance(idata, dict):
        return audit_table(idata, *settings).rename(lambda x: x if x == "all" else f"chain {x}")
    if not idata:
        raise SettingError("idata names no run.")
    rows = {str(name): audit_table(run, *settings).loc["all"] for name, run in idata.items()}
    return pd.DataFrame(rows).T.astype({"n_audited": int, "n_wrong": int})
