"""Bounds for rows with one predictor and few distinct data, from a table of cells."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable
from pymc_austerity.model.bounds.cell_bounds import CellBounds

__all__ = ["kinds_of_rows", "tabulated_constants"]

_MOST_KINDS = 64
_FEW = 4_096
_ROWS = 65_536
"""Rows that are looked up at once."""


def kinds_of_rows(
    data: Mapping[Variable, NDArray], n_rows: int
) -> tuple[NDArray[np.intp], NDArray[np.int8]] | None:
    """One row of each kind, and the kind of every row; None where there are many kinds.

    Rows are of one kind where all their data are the same.

    Examples
    --------
    >>> kinds_of_rows({"y": np.array([0, 1, 1, 0, 1])}, 5)
    (array([0, 1]), array([0, 1, 1, 0, 1], dtype=int8))
    """
    kinds, n_kinds = np.zeros(n_rows, dtype=np.int8), 1
    for values in data.values():
        if np.ndim(values) == 0 or len(values) != n_rows:
            continue
        for column in np.reshape(values, (n_rows, -1)).T:
            if np.unique(column[:_FEW]).size > _MOST_KINDS:
                return None
            n_own, codes = _codes_of(column)
            if n_own > _MOST_KINDS:
                return None
            codes = codes.astype(np.int16)
            codes += n_own * kinds.astype(np.int16)
            is_there = np.bincount(codes, minlength=n_kinds * n_own) > 0
            n_kinds = int(is_there.sum())
            if n_kinds > _MOST_KINDS:
                return None
            kinds = (np.cumsum(is_there) - 1).astype(np.int8)[codes]
    first = np.array([np.argmax(kinds == kind) for kind in range(n_kinds)], dtype=np.intp)
    return first, kinds


def _codes_of(column: NDArray) -> tuple[int, NDArray[np.integer]]:
    """How many different values there are, and the rank of each row's value among them."""
    if column.dtype.kind in "biu":
        whole = column.astype(np.int64)
        low, high = int(whole.min()), int(whole.max())
        if high - low < _FEW:
            whole -= low
            is_there = np.bincount(whole, minlength=high - low + 1) > 0
            return int(is_there.sum()), (np.cumsum(is_there) - 1).take(whole)
    own = np.unique(column)
    return own.size, np.searchsorted(own, column)


def tabulated_constants(
    cells: CellBounds,
    data: Mapping[Variable, NDArray],
    kinds: tuple[NDArray[np.intp], NDArray[np.int8]],
    center: NDArray[np.float64],
    lengths: NDArray[np.float64],
    radii: Sequence[float],
) -> NDArray[np.float64]:
    r"""Bounds on the third derivatives of rows on nested balls about the anchor.

    In each cell of the line of the predictor the third derivative is bounded once for every kind
    of row; the bound of a row is the largest one over the cells that its predictor may be in, times
    :math:`|z_i|^3`.

    Parameters
    ----------
    cells : CellBounds
        Of the function of one predictor; cells that are not bounded yet are added.
    data : dict of variable to array
        Data of all rows.
    kinds : pair of int arrays
        As from `kinds_of_rows`.
    center, lengths : float array, shape (N,)
        Predictors at the anchor, and :math:`|z_i|`.
    radii : sequence of float

    Returns
    -------
    float array, shape (number of radii, N)
        Not finite where a row has no bound. Those of a row depend on nothing but the row, the
        radius, and the middle of the cells.
    """
    first, kind = kinds
    known = np.isfinite(center) & np.isfinite(lengths)
    center, lengths = np.where(known, center, 0.0), np.where(known, lengths, 0.0)
    own = [{v: _of_rows(x, row, len(center)) for v, x in data.items()} for row in first[:, None]]
    constants = np.empty((len(radii), len(center)))
    for start in range(0, len(center), _ROWS):
        rows = slice(start, start + _ROWS)
        cubes = lengths[rows] ** 3
        for r, radius in enumerate(radii):
            reach = radius * lengths[rows]
            low, high = cells.around(center[rows] - reach), cells.around(center[rows] + reach)
            runs = cells.runs(own, int(low.first.min()), int(high.last.max()))
            constants[r, rows] = runs.largest(kind[rows], low.first, high.last) * cubes
    constants[:, lengths == 0.0] = 0.0
    constants[:, ~known] = np.inf
    return constants


def _of_rows(values: NDArray, rows: NDArray[np.intp], n_rows: int) -> NDArray:
    return values if np.ndim(values) == 0 or len(values) != n_rows else values[rows]
