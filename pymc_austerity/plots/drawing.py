"""What all plots share: matplotlib, if there is one, colours and scales."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymc_austerity.errors import SettingError, SettingTypeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "axes_or_new", "colour", "finite_values", "legend_above", "percent", "pyplot"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Colours that the colour-blind can tell apart (Okabe and Ito, 2008)."""


def pyplot() -> Any:
    """``matplotlib.pyplot``.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "The plots need matplotlib: pip install 'pymc-austerity[plots]'."
        ) from error
    return plt


def axes_or_new(ax: Any, size: tuple[float, float] = (6.0, 4.0)) -> "Axes":
    """The axes to draw into: those given, or those of a new figure of some size in inches."""
    plt = pyplot()
    if ax is None:
        return plt.subplots(figsize=size, layout="constrained")[1]
    if not hasattr(ax, "plot"):
        raise SettingTypeError(f"ax must be a matplotlib Axes, not {type(ax).__name__}.")
    return ax


def colour(number: int) -> str:
    """Colour of the n-th thing that is drawn."""
    return COLOURS[number % len(COLOURS)]


def percent(share: float, _position: Any = None) -> str:
    """A share as axes show it.

    Examples
    --------
    >>> percent(0.05), percent(0.001)
    ('5%', '0.1%')
    """
    return f"{100 * share:.3g}%"


def legend_above(ax: "Axes", **settings: Any) -> None:
    """A legend that covers nothing of what is drawn."""
    place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    ax.legend(frameon=False, fontsize="small", ncols=3, **place, **settings)


def finite_values(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return values as a flat array, without those that are not finite.

    Raises
    ------
    SettingError
        None is left.
    SettingTypeError
        They are no numbers.
    """
    try:
        flat = np.ravel(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        raise SettingTypeError(f"{name} must be an array of numbers.") from None
    finite = flat[np.isfinite(flat)]
    if not finite.size:
        raise SettingError(f"{name} has no finite values to draw.")
    return finite
