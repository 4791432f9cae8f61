"""The risk of several samplers against the time they took (figure 2 of the paper)."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from pymc_austerity.plots import color, finished

_LINES = ("-", "--", "-.", ":")


def plot_risk(
    risks: Mapping[str, tuple[ArrayLike, ArrayLike]], *, of: str = "predictive mean", ax: Axes
) -> Axes:
    """Draw times in seconds and risks by name of the sampler, as far as logarithmic scales can.

    The risk is the mean squared error of an estimate, over repeated runs and all quantities that
    are estimated. Where it falls like one over the time, it is Monte Carlo error; where it levels
    off, it is bias.
    """
    for number, (name, curve) in enumerate(risks.items()):
        time, risk = (np.asarray(values, dtype=float) for values in curve)
        shown = np.isfinite(time) & np.isfinite(risk) & (time > 0.0) & (risk > 0.0)
        style = _LINES[number % len(_LINES)]
        ax.plot(time[shown], risk[shown], style, color=color(number), linewidth=1.8, label=name)
    ax.grid(visible=True, which="major", color="0.9", linewidth=0.8)
    risk_of = f"risk: squared error of the {of}"
    return finished(ax, xscale="log", yscale="log", xlabel="time (s)", ylabel=risk_of)
