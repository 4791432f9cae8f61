"""Pictures of the assumption behind t-tests, and of the risk of an estimate against its cost."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.plots.drawing import (
    COLORS,
    axes_or_new,
    color,
    finished,
    finite_values,
    percent,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_risk", "plot_t_statistic"]

_SHOWN = 1e-4
_TAIL = 0.05
_LINES = ("-", "--", "-.", ":")


def plot_t_statistic(
    statistics: ArrayLike, *, degrees_of_freedom: float, ax: "Axes | None" = None
) -> "Axes":
    r"""Draw the distribution of a t statistic under resampling next to Student's t.

    The test assumes that :math:`t = (\bar l - \mu) / s` follows Student's t. If single rows
    have a large weight, it does not, which first shows in the tails: the legend gives the share of
    the statistics in the tails that have 5 % under Student's t.

    Parameters
    ----------
    statistics : array_like
        Values of the statistic for many samples of the same rows, centered at the mean of all rows.
    degrees_of_freedom : float
        Degrees of freedom of Student's t: rows of a sample minus one, for uniform samples.
    ax : matplotlib.axes.Axes, optional
        Where to draw, by default in a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    SettingError, SettingTypeError
        An argument cannot be used.
    ImportError
        matplotlib is not installed.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. arXiv:1304.5299, figure 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.plots import plot_t_statistic
    >>> t = np.random.default_rng(1).standard_t(99, size=5_000)
    >>> ax = plot_t_statistic(t, degrees_of_freedom=99)
    >>> ax.get_xlabel()
    't statistic'
    """
    values = finite_values("statistics", statistics)
    student = stats.t(_checked_statistics(degrees_of_freedom))
    ax = axes_or_new(ax)
    reach = max(float(student.isf(_SHOWN)), float(np.quantile(np.abs(values), 0.995)))
    inside = values[np.abs(values) <= reach]
    # Bins share the density of all the values, also of those beyond the ends.
    edges = np.linspace(-reach, reach, 61)
    weights = np.full(inside.size, 1.0 / (values.size * (edges[1] - edges[0])))
    tail = np.mean(np.abs(values) > student.isf(_TAIL / 2))
    label = f"resampled ({tail:.1%} where Student's t has {percent(_TAIL)})"
    ax.hist(inside, bins=edges.tolist(), weights=weights, color="0.8", label=label)
    grid = np.linspace(-reach, reach, 401)
    label = f"Student's t, {degrees_of_freedom:g} degrees of freedom"
    ax.plot(grid, student.pdf(grid), color=COLORS[0], linewidth=2.0, label=label)
    return finished(ax, xlim=(-reach, reach), xlabel="t statistic", ylabel="density")


def _checked_statistics(degrees_of_freedom: Any) -> float:
    try:
        number = float(degrees_of_freedom)
    except (TypeError, ValueError):
        raise SettingTypeError(
            f"degrees_of_freedom must be a number, not {type(degrees_of_freedom).__name__}."
        ) from None
    if not number > 0.0:
        raise SettingError(f"degrees_of_freedom must be positive, not {degrees_of_freedom}.")
    return number


def plot_risk(
    risks: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    of: str = "predictive mean",
    ax: "Axes | None" = None,
) -> "Axes":
    r"""Draw the risk of several samplers against the time they took.

    The risk is the mean squared error of an estimate, over repeated runs and all quantities that
    are estimated (section 6 of the paper). Where it falls like one over the time, it is Monte Carlo
    error; where it levels off, it is bias.

    Parameters
    ----------
    risks : mapping of str to (time, risk)
        Times in seconds and risks, each array_like of shape (n,), by name of the sampler. Points
        that a logarithmic scale cannot show are left out.
    of : str
        Estimated quantity, for the label: "predictive mean" or "parameter mean", for instance.
    ax : matplotlib.axes.Axes, optional
        Where to draw, by default in a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    SettingError, SettingTypeError
        An argument cannot be used.
    ImportError
        matplotlib is not installed.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, section 6 and figure 2.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.plots import plot_risk
    >>> seconds = np.geomspace(1, 100, 20)
    >>> ax = plot_risk({"exact": (seconds, 1 / seconds), "fast": (seconds, 0.1 / seconds + 0.01)})
    >>> [line.get_label() for line in ax.lines], ax.get_xlabel()
    (['exact', 'fast'], 'time (s)')
    """
    if not isinstance(risks, Mapping):
        raise SettingTypeError(
            f"risks must map names to pairs (time, risk), not be {type(risks).__name__}."
        )
    if not risks:
        raise SettingError("risks names no run.")
    curves = {str(name): _checked_risk(str(name), curve) for name, curve in risks.items()}
    ax = axes_or_new(ax)
    for number, (name, (time, risk)) in enumerate(curves.items()):
        style = _LINES[number % len(_LINES)]
        ax.plot(time, risk, style, color=color(number), linewidth=1.8, label=name)
    ax.grid(visible=True, which="major", color="0.9", linewidth=0.8)
    risk_of = f"risk: squared error of the {of}"
    return finished(ax, xscale="log", yscale="log", xlabel="time (s)", ylabel=risk_of)


def _checked_risk(name: str, curve: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    try:
        time, risk = (np.asarray(values, dtype=float) for values in curve)
    except (TypeError, ValueError):
        raise SettingTypeError(f"{name!r} must be a pair of arrays (time, risk).") from None
    if time.ndim != 1 or time.shape != risk.shape:
        raise SettingError(f"time and risk of {name!r} must be vectors of the same length.")
    shown = np.isfinite(time) & np.isfinite(risk) & (time > 0.0) & (risk > 0.0)
    if not shown.any():
        raise SettingError(f"{name!r} has no positive, finite time and risk to draw.")
    return time[shown], risk[shown]
