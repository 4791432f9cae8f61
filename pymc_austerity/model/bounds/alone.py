"""Bounds of single rows, where their group has none."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.model.bounds.cells import at_points
from pymc_austerity.model.bounds.chunk import Chunk, is_bound, norm, parts, smallest_taylor_form
from pymc_austerity.model.bounds.enclosure import enclose

__all__ = ["bounded_alone"]


def bounded_alone(
    chunk: Chunk,
    constants: NDArray[np.float64],
    radii: Sequence[float],
    order: int,
    rows: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Bounds of all rows, with those of some rows computed alone where they have none.

    Parameters
    ----------
    chunk : Chunk
    constants : float array, shape (number of radii, m)
        Bounds on the third derivatives of its rows.
    radii : sequence of float
    order : int
        Highest order of derivatives.
    rows : int array
        Which rows.

    Returns
    -------
    float array, shape (number of radii, m)
    """
    found = constants.copy()
    for some in parts(rows):
        data, lengths, spread = chunk.part(some), chunk.lengths[some], chunk.spread[some]
        jet = enclose(chunk.function, at_points(chunk.center[some], data), order - 1).center
        here = [norm(jet, q, lengths, spread) for q in range(3, order)]
        for r, radius in enumerate(radii):
            jet = enclose(chunk.function, chunk.boxes(radius, some), order).box
            inside = [norm(jet, q, lengths, spread) for q in range(3, order + 1)]
            form = smallest_taylor_form(here, inside, radius)
            alone = np.where(is_bound(form, here[0]), form, np.inf)
            found[r, some] = np.fmin(found[r, some], alone)
    return found
