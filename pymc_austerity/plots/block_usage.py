"""Plot of the cost of the blocks of a model with groups."""

from typing import TYPE_CHECKING, Any

from pymc_austerity.diagnostics import block_usage
from pymc_austerity.plots.drawing import axes_or_new, color, finished

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_block_usage"]


def plot_block_usage(idata: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Draw the rows that a sweep read for each block, with the block's acceptance rate.

    Parameters
    ----------
    idata : InferenceData, DataTree, Dataset or path
        A run of GroupedMH, or a netCDF file of one.
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
