"""Bounds of third derivatives on cells of the line of a predictor, for each kind of row."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable
from pymc_austerity.model.bounds.enclosure import (
    about_rows,
    at_points,
    enclose,
    is_by_row,
    norms,
    of_rows,
    smallest_taylor_form,
)
from pymc_austerity.model.bounds.scalar_function import ScalarFunction

_ORDER = 5
_NEAR = 4.0
_STEP, _SLACK = 0.02, 5e-8
"""Boxes are 0.08 wide near the usual predictor, and in proportion to the distance beyond 4."""

_PAGE, _PAGES_AT_ONCE = 64, 32
"""Boxes are bounded in pages, so that numbers do not depend on which others are bounded with them:
vectors of processors begin with pages."""

_MOST_RUNS = 256


class CellBounds:
    """Bounds of the third derivative of a function of one predictor on cells of the line.

    Parameters
    ----------
    function : ScalarFunction
        Of one predictor.
    middle : float
        Where cells are narrowest: the usual predictor.
    """

    def __init__(self, function: ScalarFunction, middle: float) -> None:
        self._function, self._middle = function, middle
        self._pages: dict[tuple[bytes, int], NDArray[np.float64]] = {}
        self._lock = threading.Lock()
        self._runs: dict[Any, Runs] = {}

    def meeting(
        self, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first and the last cell that intervals meet, up to rounding."""
        ends = (np.arcsinh((end - self._middle) / _NEAR) / _STEP for end in (low, high))
        first, last = (end + slack for end, slack in zip(ends, (-_SLACK, _SLACK), strict=True))
        return np.floor(first).astype(np.int64), np.floor(last).astype(np.int64)

    def runs(self, kinds: Sequence[Mapping[Variable, NDArray]], first: int, last: int) -> "Runs":
        """Bounds on runs of the cells from the first to the last one.

        Parameters
        ----------
        kinds : sequence of dict
            Data of one row of each kind, and data that are the same for all rows.
        first, last : int
        """
        names = [b"".join(np.asarray(x).tobytes() for x in kind.values()) for kind in kinds]
        pages = range(first // _PAGE, last // _PAGE + 1)
        with self._lock:
            key = (tuple(names), pages.start, pages.stop)
            found = self._runs.get(key)
            if found is None:
                self._bound(kinds, names, pages)
                each = [np.concatenate([self._pages[name, p] for p in pages]) for name in names]
                found = Runs(pages.start * _PAGE, _largest_of_runs(np.stack(each)))
                if len(self._runs) >= _MOST_RUNS:
                    self._runs.clear()
                self._runs[key] = found
        return found

    def _bound(
        self, kinds: Sequence[Mapping[Variable, NDArray]], names: Sequence[bytes], pages: range
    ) -> None:
        """Bound the cells of those pages that are missing."""
        missing = [
            (which, page)
            for which, name in enumerate(names)
            for page in pages
            if (name, page) not in self._pages
        ]
        for start in range(0, len(missing), _PAGES_AT_ONCE):
            part = missing[start : start + _PAGES_AT_ONCE]
            which = np.repeat([k for k, _ in part], _PAGE)
            cells = np.concatenate([np.arange(_PAGE) + _PAGE * page for _, page in part])
            own = {v: _of_kinds([kind[v] for kind in kinds], which) for v in kinds[0]}
            for (k, page), bounds in zip(
                part, self._of(own, cells).reshape(-1, _PAGE), strict=True
            ):
                self._pages[names[k], page] = bounds

    def _of(self, own: Mapping[Variable, NDArray], cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """Bounds on cells; infinite for none."""
        low, high = (self._middle + _NEAR * np.sinh(_STEP * (cells + k)) for k in (0, 1))
        center, width = 0.5 * (high + low), 0.5 * (high - low) * (1.0 + 1e-12)
        here = enclose(self._function, at_points(center[:, None], own), _ORDER - 1).center
        boxes = about_rows(center[:, None], width[:, None], own)
        inside = enclose(self._function, boxes, _ORDER).box
        unit = np.ones((len(cells), 1)), np.ones(len(cells))
        at_center, over = (
            norms(here, range(3, _ORDER), *unit),
            norms(inside, range(3, _ORDER + 1), *unit),
        )
        found = smallest_taylor_form(at_center, over, width)
        return np.where(np.isfinite(found), found, np.inf)

    def __reduce__(self) -> tuple:
        return CellBounds, (self._function, self._middle), {"_pages": self._pages}


@dataclass(frozen=True, eq=False)
class Runs:
    """Largest bounds of runs of 1, 2, 4, ... cells.

    Attributes
    ----------
    begin : int
        The first cell.
    table : float array, shape (levels, kinds, cells)
        Of the run that begins with each cell.
    """

    begin: int
    table: NDArray[np.float64]

    def largest(
        self, kind: NDArray[np.int8], first: NDArray[np.int64], last: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Largest bound over the cells from the first to the last one, for rows of each kind."""
        # the exponent of a float is the logarithm to base 2, rounded down
        level = np.frexp(last - first + 1)[1] - 1
        low, high = first - self.begin, last - self.begin + 1
        runs: NDArray[np.float64] = np.maximum(
            self.table[level, kind, low], self.table[level, kind, high - (1 << level)]
        )
        return runs


def _of_kinds(values: Sequence[NDArray], which: NDArray[np.intp]) -> NDArray:
    """Data of rows of several kinds; data that are the same for all rows stay as they are."""
    return np.concatenate(values)[which] if is_by_row(values[0], 1) else values[0]


def _largest_of_runs(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Largest entry of the 1, 2, 4, ... cells from each on; shape (levels, kinds, cells)."""
    levels = [table]
    while 2 ** len(levels) <= table.shape[1]:
        last, step = levels[-1], 2 ** (len(levels) - 1)
        following = np.full_like(last, 0.0)
        following[:, :-step] = last[:, step:]
        levels.append(np.maximum(last, following))
    return np.stack(levels)


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
    kinds, n_kinds = np.zeros(n_rows, dtype=np.int64), 1
    for values in data.values():
        if not is_by_row(values, n_rows):
            continue
        for column in np.reshape(values, (n_rows, -1)).T:
            if np.unique(column[:_FEW]).size > _MOST_KINDS:
                return None
            codes, own = pd.factorize(column, use_na_sentinel=False)
            if len(own) > _MOST_KINDS:
                return None
            kinds, found = pd.factorize(codes + len(own) * kinds)
            n_kinds = len(found)
            if n_kinds > _MOST_KINDS:
                return None
    first = np.array([np.argmax(kinds == kind) for kind in range(n_kinds)], dtype=np.intp)
    return first, kinds.astype(np.int8)


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
    own = [of_rows(data, row, len(center)) for row in first[:, None]]
    constants = np.empty((len(radii), len(center)))
    for start in range(0, len(center), _ROWS):
        rows = slice(start, start + _ROWS)
        cubes = lengths[rows] ** 3
        for r, radius in enumerate(radii):
            reach = radius * lengths[rows]
            low, high = cells.meeting(center[rows] - reach, center[rows] + reach)
            runs = cells.runs(own, int(low.min()), int(high.max()))
            constants[r, rows] = runs.largest(kind[rows], low, high) * cubes
    constants[:, lengths == 0.0] = 0.0
    constants[:, ~known] = np.inf
    return constants
