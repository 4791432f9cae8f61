"""Uniform samples of the rows."""

from pymc_austerity.deciding.sampling import RowFunction, UniformSampling
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.rows import AllRows, FreshRows, RowDraw, RowSource, Windows

_USUAL_BATCH = 500
"""Rows of a look, unless the user or the influence of the rows determines their number."""


def row_draw(source: RowSource, settings: Settings) -> RowDraw:
    """The user's way of drawing rows."""
    return (FreshRows if settings.sampling == "fresh" else Windows)(source)


def uniform_sampling(
    function: RowFunction, source: RowSource, settings: Settings, *, of_residuals: bool = False
) -> tuple[UniformSampling, str]:
    """Uniform samples by the user's settings, and their description."""
    n_rows, batch = source.n_rows, settings.batch_size or _USUAL_BATCH
    if settings.is_exact or batch >= n_rows:
        why = "epsilon=0" if settings.is_exact else f"a batch of {batch:,}"
        sampling = UniformSampling(function, AllRows(source), n_rows, n_rows)
        return sampling, f"All {n_rows:,} rows at every step ({why})"
    growth, draw = settings.growth, row_draw(source, settings)
    sampling = UniformSampling(function, draw, n_rows, batch, growth, of_residuals)
    fresh = " drawn anew" if settings.sampling == "fresh" else ""
    look = "a look" if growth == 1.0 else "the first look"
    return sampling, f"Uniform samples of {n_rows:,} rows{fresh}, {batch:,} at {look}"
