"""How fast runs approach the correct result."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.plots.drawing import axes_or_new, color, finished

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_risk"]

_LINES = ("-", "--", "-.", ":")


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
    curves = {str(name): _checked(str(name), curve) for name, curve in risks.items()}
    ax = axes_or_new(ax)
    for number, (name, (time, risk)) in enumerate(curves.items()):
        style = _LINES[number % len(_LINES)]
        ax.plot(time, risk, style, color=color(number), linewidth=1.8, label=name)
    ax.grid(visible=True, which="major", color="0.9", linewidth=0.8)
    risk_of = f"risk: squared error of the {of}"
    return finished(ax, xscale="log", yscale="log", xlabel="time (s)", ylabel=risk_of)


def _checked(name: str, curve: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
