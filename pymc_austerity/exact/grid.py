"""Groups of rows on a fixed grid, so that rows can be grouped block by block."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.exact.directions import directions_of
from pymc_austerity.exact.groups import Groups

__all__ = ["Grid", "GridTotals"]

_LEVEL = 2.0
_SHELLS = 6
_ABOVE, _BELOW = 20, 44
"""Levels above the top of the grid and below; one more each for what is infinite and for zero."""

_LEVELS = _ABOVE + _BELOW + 2


class RowsOfCells(NamedTuple):
    """Counts and bounds of some rows, cell by cell.

    Attributes
    ----------
    cells : int array, shape (K,)
        Cells that have some of the rows.
    counts : int array, shape (K,)
    largest : float array, shape (R, K)
        The largest constants.
    angles : float array, shape (K,)
        The largest angle.
    """

    cells: NDArray[np.int64]
    counts: NDArray[np.int64]
    largest: NDArray[np.float64]
    angles: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Grid:
    """A grid of constants and directions that does not depend on the rows.

    Attributes
    ----------
    radii : float array, shape (R,)
        Radii of the balls on which the constants hold, ascending.
    top : float
        A constant, of the largest in a sample.
    vectors : float array, shape (C, d), or None
        Unit vectors in whitened coordinates; None where rows have several predictors.
    by_direction : bool
        Whether rows are grouped by direction; otherwise the rows of a cell may have any.
    """

    radii: NDArray[np.float64]
    top: float
    vectors: NDArray[np.float64] | None
    by_direction: bool

    @property
    def n_cells(self) -> int:
        """Number of cells, most of them empty."""
        if self.vectors is None or not self.by_direction:
            return _LEVELS
        return len(self.vectors) * _SHELLS * _LEVELS

    @property
    def usual(self) -> int:
        """Number of the radius whose constants rows are grouped by."""
        return len(self.radii) // 2

    def cells_of(
        self, usual: NDArray[np.float64], whitened: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The cell of each row, and its angle to the direction of the cell.

        Parameters
        ----------
        usual : float array, shape (m,)
            Constants for the usual radius.
        whitened : float array, shape (m, d), or None
            Gradients of the rows' predictors, where rows are grouped by direction.
        """
        with np.errstate(divide="ignore"):
            levels = np.floor(np.log(self.top / usual) / np.log(_LEVEL))
        inside = np.clip(levels, -_ABOVE, _BELOW - 1)
        levels = np.where(np.isfinite(usual), np.where(usual > 0.0, inside, _BELOW), -_ABOVE - 1)
        cells = levels.astype(np.int64) + _ABOVE + 1
        if not self.by_direction:
            return cells, np.full(cells.size, np.pi / 2)
        assert whitened is not None and self.vectors is not None
        found = directions_of(whitened, self.vectors)
        shells = np.minimum(found.angles / (np.pi / 2) * _SHELLS, _SHELLS - 1).astype(np.int64)
        return (found.nearest * _SHELLS + shells) * _LEVELS + cells, found.angles

    def rows_of_cells(
        self, constants: NDArray[np.float64], whitened: NDArray[np.float64] | None
    ) -> RowsOfCells:
        """What is known of the rows of a block, from their constants for all radii, shape (R, m).

        `whitened` is that of `cells_of`.
        """
        cells, angles = self.cells_of(constants[self.usual], whitened)
        counts = np.bincount(cells, minlength=self.n_cells)
        present = np.flatnonzero(counts)
        largest = np.zeros((len(constants) + 1, self.n_cells))
        for total, values in zip(largest, [*constants, angles], strict=True):
            np.maximum.at(total, cells, values)
        return RowsOfCells(present, counts[present], largest[:-1, present], largest[-1, present])


class GridTotals:
    """Counts and bounds of the rows of each cell, added up block by block.

    Parameters
    ----------
    grid : Grid

    Attributes
    ----------
    counts : int array, shape (K,)
        Rows of each cell.

    Examples
    --------
    >>> grid = Grid(np.array([3.0]), 9.0, None, by_direction=False)
    >>> totals = GridTotals(grid)
    >>> for constants in ([[1.0, 9.0]], [[1.1, np.inf]]):
    ...     totals.add(grid.rows_of_cells(np.array(constants), None))
    >>> groups = totals.groups()
    >>> groups.starts, groups.largest
    (array([0, 1, 2, 4]), array([[inf, 9. , 1.1]]))
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.counts = np.zeros(grid.n_cells, dtype=np.int64)
        self._largest = np.zeros((grid.radii.size, grid.n_cells))
        self._angles = np.zeros(grid.n_cells)

    def add(self, part: RowsOfCells) -> None:
        """Add rows."""
        self.counts[part.cells] += part.counts
        self._largest[:, part.cells] = np.maximum(self._largest[:, part.cells], part.largest)
        self._angles[part.cells] = np.maximum(self._angles[part.cells], part.angles)

    def rows_of_cells(self) -> RowsOfCells:
        """What is known of the rows so far, without empty cells."""
        cells = np.flatnonzero(self.counts)
        largest, angles = self._largest[:, cells], self._angles[cells]
        return RowsOfCells(cells, self.counts[cells], largest, angles)

    @cached_property
    def number(self) -> NDArray[np.int64]:
        """Number of the group of each cell; valid when all rows were added."""
        return np.cumsum(self.counts > 0) - 1

    def groups(self) -> Groups:
        """The groups: cells with rows in them."""
        cells = np.flatnonzero(self.counts)
        starts = np.concatenate([[0], np.cumsum(self.counts[cells])])
        direction = cells // (_SHELLS * _LEVELS) if self.grid.by_direction else 0 * cells
        angles, vectors = self._angles[cells], self.grid.vectors
        return Groups(
            starts,
            self.grid.radii,
            np.ascontiguousarray(self._largest[:, cells]),
            np.empty((0, 0)) if vectors is None else vectors,
            direction,
            np.zeros(cells.size) if vectors is None else np.cos(angles),
            np.ones(cells.size) if vectors is None else np.sin(angles),
        )
