"""Bounds of third derivatives on cells of the line of a predictor, for each kind of row."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable
from pymc_austerity.model.bounds.cells import about_rows, at_points
from pymc_austerity.model.bounds.enclosure import enclose
from pymc_austerity.model.bounds.scalar_function import ScalarFunction
from pymc_austerity.model.operations.jets import Jet

__all__ = ["CellBounds"]

_ORDER = 5
_NEAR = 4.0
_STEP, _ROUNDING = 0.02, 1e-9
"""Cells are 0.08 wide near the usual predictor, and in proportion to the distance beyond 4."""

_PAGE, _PAGES_AT_ONCE = 64, 32
"""Cells are bounded in pages, so that numbers do not depend on which others are bounded with them:
vectors of processors begin with pages."""

_MOST_RUNS = 256


class _Around(NamedTuple):
    """The first and the last cell that a point may be in, up to rounding."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]


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
        self._begin()

    def around(self, points: NDArray[np.float64]) -> _Around:
        """Cells that points are in, shape of the points."""
        places = np.arcsinh((points - self._middle) / _NEAR)
        scale, slack = 1.0 / _STEP, _ROUNDING / _STEP
        places *= scale
        first, last = np.floor(places - slack), np.floor(places + slack)
        return _Around(first.astype(np.int64), last.astype(np.int64))

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
        inside = enclose(self._function, about_rows(center[:, None], width[:, None], own), _ORDER)
        found = np.empty(len(cells))
        found[:] = _taylor(here, inside.box, width)
        return np.where(np.isfinite(found), found, np.inf)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[Any, Runs] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in {"_lock", "_runs"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()


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
    first = values[0]
    return first if np.ndim(first) == 0 or len(first) != 1 else np.concatenate(values)[which]


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
