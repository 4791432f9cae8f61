"""Common parts of all plots: import of matplotlib, colors and scales."""

from typing import TYPE_CHECKING, Any

from pymc_austerity.errors import SettingTypeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Colors that color-blind readers can distinguish (Okabe and Ito, 2008)."""


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
    """The axes to draw into: the given ones, or those of a new figure of a given size in inches."""
    plt = pyplot()
    if ax is None:
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
