"""How far decisions are from the threshold, and how often such decisions are wrong."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymc_austerity.diagnostics import statistics_of
from pymc_austerity.diagnostics.run_info import RunInfo
from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.plots.drawing import COLORS, axes_or_new, finished, finite_values, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_decision_errors"]

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
    idata : InferenceData, DataTree, Dataset or path
        A run of AusterityMH or AusterityGibbs, or a netCDF file of one.
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
    distances = finite_values("standardized_mean", statistics["standardized_mean"].values)
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
