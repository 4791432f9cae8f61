"""Pictures of the errors of decisions: estimated and audited."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from pymc_austerity.diagnostics import statistics_of
from pymc_austerity.diagnostics.decisions import audit_table, contradicts
from pymc_austerity.diagnostics.run_info import RunInfo
from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.plots.drawing import (
    COLORS,
    axes_or_new,
    finished,
    percent,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    ImportError
        matplotlib is not installed.

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
    if RunInfo(statistics).is_poisson:
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
    unit = RunInfo(statistics).unit
    label = f"{unit} of the run" + (f" ({beyond:.1%} lie beyond)" if beyond > 0.0 else "")
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
        ylabel=f"share of the {unit}",
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
    idata : InferenceData, DataTree, Dataset, or dict of these
        A run with audited decisions, or several of them by name.
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
