"""Share of the rows that decisions read."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.diagnostics import statistics_of
from pymc_austerity.diagnostics.run_info import RunInfo
from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.plots.drawing import COLORS, axes_or_new, color, finished, percent, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_data_usage"]

_WIDE = 10.0


def plot_data_usage(
    idata: Any,
    *,
    window: int | None = None,
    step_method: int | None = None,
    ax: "tuple[Axes, Axes] | None" = None,
) -> "NDArray[np.object_]":
    """Draw the share of the rows that a decision reads, over the draws and as a distribution.

    The left plot has a line for each chain, averaged over neighboring draws; the right one has the
    distribution over all decisions, with the mean. Decisions that need no rows are left out.

    Parameters
    ----------
    idata : InferenceData, DataTree, Dataset or path
        A run of AusterityMH or AusterityGibbs, or a netCDF file of one.
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
    ...     {
    ...         "n_rows_used": (dims, 100 * n_looks),
    ...         "n_looks": (dims, n_looks),
    ...         "data_fraction": (dims, n_looks / 100),
    ...     }
    ... )
    >>> over_draws, distribution = plot_data_usage(run)
    >>> len(over_draws.lines), over_draws.get_xlabel()
    (2, 'draw (lines: mean of 10 draws)')
    """
    statistics = statistics_of(idata, ["data_fraction", "n_looks"], step_method=step_method)
    shares = statistics["data_fraction"].where(statistics["n_looks"] > 0)
    draws, seen = shares["draw"].values, shares.values[np.isfinite(shares.values)]
    if not seen.size:
        raise SettingError("No decision of this run has read any rows: there is nothing to draw.")
    window = _checked_window(window, draws.size)
    left, right = _pair(ax)
    for number, values in enumerate(shares.values):
        averaged = _moving_mean(values, window)
        label = f"chain {shares['chain'].values[number]}"
        left.plot(draws, averaged, color=color(number), linewidth=1.2, label=label)
    bins, scale = _bins(seen)
    right.hist(
        seen, bins=bins.tolist(), orientation="horizontal", color="0.75", weights=_weights(seen)
    )
    mean = float(seen.mean())
    right.axhline(mean, color=COLORS[-1], linewidth=1.2, label=f"mean {percent(mean)}")
    read = "share of all rows read per decision"
    for axes in (left, right):
        _scale(axes, scale, (bins[0], bins[-1]))
    draw = "draw" + (f" (lines: mean of {window} draws)" if window > 1 else "")
    finished(left, shares="y", xlabel=draw, ylabel=read)
    finished(right, shares="xy", xlabel=f"share of the {RunInfo(statistics).unit}", ylabel=read)
    return np.array([left, right], dtype=object)


def _scale(axes: "Axes", scale: str, limits: tuple[float, float]) -> None:
    from matplotlib.ticker import LogLocator

    low, high = limits
    if scale == "log":
        margin = (high / low) ** 0.03
        axes.set_yscale("log", subs=())
        axes.set_ylim(low / margin, high * margin)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    else:
        axes.set_ylim(low, high + 0.03 * (high - low))


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


def _bins(seen: NDArray[np.float64]) -> tuple[NDArray[np.float64], str]:
    """Edges of about thirty bins, on a log scale where shares differ by a factor of ten."""
    low, high = float(seen.min()), float(seen.max())
    if low > 0.0 and high > _WIDE * low:
        return np.geomspace(low, high * (1 + 1e-9), 31), "log"
    margin = 0.02 * high if high > low else 0.2 * high or 0.01
    return np.linspace(max(0.0, low - margin), min(1.0, high + margin), 31), "linear"


def _weights(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.full(values.size, 1.0 / values.size)
