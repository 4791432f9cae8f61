"""Bounds for rows with one predictor and few distinct data, from a table of cells."""

from collections.abc import Mapping, Sequence
from math import factorial

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable
from pymc_austerity.model.bounds.cells import about_rows, at_points
from pymc_austerity.model.bounds.enclosure import enclose
from pymc_austerity.model.bounds.jets import Jet
from pymc_austerity.model.bounds.scalar_function import ScalarFunction

__all__ = ["kinds_of_rows", "tabulated_constants"]

_MOST_KINDS = 64
_FEW = 4_096
_ORDER = 5
_PART = 2_048
_ROWS = 65_536
"""Rows that are looked up at once."""

_NEAR = 4.0
_STEP, _ROUNDING = 0.02, 1e-9
"""Cells are 0.08 wide near the usual predictor, and in proportion to the distance beyond 4."""


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
            own = np.unique(column)
            if own.size > _MOST_KINDS:
                return None
            codes = np.searchsorted(own, column).astype(np.int16)
            codes += own.size * kinds.astype(np.int16)
            is_there = np.bincount(codes, minlength=n_kinds * own.size) > 0
            n_kinds = int(is_there.sum())
            if n_kinds > _MOST_KINDS:
                return None
            kinds = (np.cumsum(is_there) - 1).astype(np.int8)[codes]
    first = np.array([np.argmax(kinds == kind) for kind in range(n_kinds)], dtype=np.intp)
    return first, kinds


def tabulated_constants(
    function: ScalarFunction,
    data: Mapping[Variable, NDArray],
    kinds: tuple[NDArray[np.intp], NDArray[np.int8]],
    center: NDArray[np.float64],
    lengths: NDArray[np.float64],
    radii: Sequence[float],
    outermost: float | None = None,
) -> NDArray[np.float64]:
    r"""Bounds on the third derivatives of rows on nested balls about the anchor.

    The line of the predictor is cut into cells. In each of them the third derivative is bounded
    once for every kind of row; the bound of a row is the largest one over the cells that its
    predictor may be in, times :math:`|z_i|^3`.

    Parameters
    ----------
    function : ScalarFunction
        Of one predictor.
    data : dict of variable to array
        Data of all rows.
    kinds : pair of int arrays
        As from `kinds_of_rows`.
    center, lengths : float array, shape (N,)
        Predictors at the anchor, and :math:`|z_i|`.
    radii : sequence of float
    outermost : float, optional
        Radius up to which cells are laid out, by default the largest one. Bounds depend on the
        cells, and not on the other radii.

    Returns
    -------
    float array, shape (number of radii, N)
        Not finite where a row has no bound.
    """
    first, kind = kinds
    reach = (outermost or max(radii)) * lengths
    edges = _edges(center, float((center - reach).min()), float((center + reach).max()))
    del reach
    table = _largest_of_runs(_of_cells(function, data, first, edges, len(center)))
    constants = np.empty((len(radii), len(center)))
    for start in range(0, len(center), _ROWS):
        rows = slice(start, start + _ROWS)
        for r, radius in enumerate(radii):
            runs = _largest_within(table, edges, kind[rows], center[rows], radius * lengths[rows])
            constants[r, rows] = runs * lengths[rows] ** 3
    constants[:, lengths == 0.0] = 0.0
    return constants


def _largest_within(
    table: NDArray[np.float64],
    edges: NDArray[np.float64],
    kind: NDArray[np.int8],
    center: NDArray[np.float64],
    reach: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Largest bound of the cells that the predictor of a row may be in."""
    last = edges.size - 2
    low = np.clip(np.searchsorted(edges, center - reach, side="right") - 1, 0, last)
    high = np.clip(np.searchsorted(edges, center + reach, side="left") - 1, low, last)
    level = np.log2(high - low + 1).astype(np.intp)
    runs: NDArray[np.float64] = np.maximum(
        table[level, kind, low], table[level, kind, high + 1 - 2**level]
    )
    return runs


def _edges(center: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Edges of cells from below to above what is needed, close about the usual predictor."""
    middle = float(np.median(center))
    first = np.arcsinh((low - middle) / _NEAR) - _ROUNDING
    last = np.arcsinh((high - middle) / _NEAR) + _ROUNDING
    n_cells = int(np.ceil((last - first) / _STEP))
    return middle + _NEAR * np.sinh(np.linspace(first, last, n_cells + 1))


def _of_cells(
    function: ScalarFunction,
    data: Mapping[Variable, NDArray],
    first: NDArray[np.intp],
    edges: NDArray[np.float64],
    n_rows: int,
) -> NDArray[np.float64]:
    """Bounds of the third derivatives, shape (kinds, cells); infinite for none."""
    middles, widths = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges) * (1.0 + 1e-12)
    n_cells = middles.size
    found = np.empty(first.size * n_cells)
    for start in range(0, found.size, _PART):
        which, cell = np.divmod(np.arange(start, min(start + _PART, found.size)), n_cells)
        own = {v: _of_rows(x, first[which], n_rows) for v, x in data.items()}
        center, width = middles[cell][:, None], widths[cell][:, None]
        here = enclose(function, at_points(center, own), _ORDER - 1).center
        inside = enclose(function, about_rows(center, width, own), _ORDER).box
        found[start : start + _PART] = _taylor(here, inside, width[:, 0])
    return np.where(np.isfinite(found), found, np.inf).reshape(first.size, n_cells)


def _of_rows(values: NDArray, rows: NDArray[np.intp], n_rows: int) -> NDArray:
    return values if np.ndim(values) == 0 or len(values) != n_rows else values[rows]


@np.errstate(invalid="ignore", over="ignore")
def _taylor(here: Jet, inside: Jet, width: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least of the bounds of order 3, 4, 5 about the middle of a cell; NaN for none."""
    unknown = sum(np.multiply(end, 0.0) for x in inside.values() for end in x)
    smallest, exact = _derivative(inside, 3), np.zeros(width.size)
    for n in range(_ORDER - 3):
        exact = exact + width**n / factorial(n) * _derivative(here, 3 + n)
        rest = width ** (n + 1) / factorial(n + 1) * _derivative(inside, 4 + n)
        smallest = np.fmin(smallest, exact + rest)
    return smallest + unknown


def _derivative(jet: Jet, q: int) -> NDArray:
    x = jet.get((q,))
    return np.zeros(1) if x is None else factorial(q) * np.maximum(abs(x.lower), abs(x.upper))


def _largest_of_runs(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Largest entry of the 1, 2, 4, ... cells from each on; shape (levels, kinds, cells)."""
    levels = [table]
    while 2 ** len(levels) <= table.shape[1]:
        last, step = levels[-1], 2 ** (len(levels) - 1)
        following = np.full_like(last, 0.0)
        following[:, :-step] = last[:, step:]
        levels.append(np.maximum(last, following))
    return np.stack(levels)
