"""Rows in sources, grouped by their bounds in passes over all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import Anchor
from pymc_austerity.deciding.pool import StoredDraws
from pymc_austerity.errors import StorageError
from pymc_austerity.exact import Grid, GridTotals, Groups, RowsOfCells, WantedRows
from pymc_austerity.model import DesignFunction
from pymc_austerity.model.any_thread import OneAtATime
from pymc_austerity.model.bounds import (
    CellBounds,
    NoBoundError,
    ScalarFunction,
    third_derivative_constants,
)
from pymc_austerity.rows import LARGEST_BLOCK, Block, SharedRows
from pymc_austerity.setup.source_rows import SourceRows
from pymc_austerity.setup.whitened import WhitenedRows, whitened_block

__all__ = ["BoundsOfRows", "GroupedSources", "counted"]

_BLOCK = 2 * LARGEST_BLOCK
"""Rows that are bounded together."""


@dataclass(frozen=True, eq=False)
class BoundsOfRows:
    """Bounds of any rows about an anchor.

    Attributes
    ----------
    designs : callable
        Evaluates the predictors.
    function : ScalarFunction
        Of the predictors.
    anchor : Anchor
    radii : float array, shape (R,)
    cells : CellBounds
        Filled as blocks need it.
    """

    designs: DesignFunction
    function: ScalarFunction
    anchor: Anchor
    radii: NDArray[np.float64]
    cells: CellBounds

    def of(
        self, block: Sequence[NDArray], radii: Sequence[int] | None = None
    ) -> tuple[NDArray[np.float64], WhitenedRows]:
        """Constants of the rows of a block, and their whitened predictors.

        Parameters
        ----------
        block : sequence of arrays
            Data of m rows.
        radii : sequence of int, optional
            Numbers of those radii that are needed, the smallest among them; by default all.

        Returns
        -------
        constants : float array, shape (number of radii, m)
        rows : WhitenedRows

        Raises
        ------
        NoBoundError
            Most of them have none.
        """
        rows = whitened_block(self.designs, block, self.anchor)
        chosen = self.radii if radii is None else self.radii[list(radii)]
        known = (self.function, block, rows.center, rows.gram, chosen.tolist())
        return third_derivative_constants(*known, cells=self.cells), rows

    def or_none(
        self, block: Sequence[NDArray], radii: Sequence[int] | None = None
    ) -> tuple[NDArray[np.float64], WhitenedRows]:
        """The same, infinite for a block in which most rows have no bound."""
        try:
            return self.of(block, radii)
        except NoBoundError:
            n_radii = self.radii.size if radii is None else len(radii)
            rows = whitened_block(self.designs, block, self.anchor)
            return np.full((n_radii, len(block[0])), np.inf), rows


class _Grouped(NamedTuple):
    """A block of rows with the group of each."""

    first: int
    block: Block
    groups: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GroupedSources:
    """All rows, of which passes know the groups.

    Attributes
    ----------
    rows : SourceRows
    bounds : BoundsOfRows
    grid : Grid
    number : int array
        The group of each cell of the grid.
    sizes : int array, shape (G,)
        Rows of each group.
    block_of : callable
        From the data of rows to what the row function takes.
    """

    rows: SourceRows
    bounds: BoundsOfRows
    grid: Grid
    number: NDArray[np.int64]
    sizes: NDArray[np.int64]
    block_of: Callable[[Block], Block]

    def draw(self, counts: NDArray[np.int64], seed: tuple[int, ...]) -> StoredDraws:
        """So many uniform draws with replacement from each group; one pass."""
        return self.stored(*self.drawn(counts, seed))

    def drawn(
        self, counts: NDArray[np.int64], seed: tuple[int, ...]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Groups and ranks of such draws, in the order in which they are to be used."""
        groups = np.repeat(np.arange(counts.size), counts)
        uniform = np.random.default_rng(seed).random(groups.size)
        return groups, (uniform * self.sizes[groups]).astype(np.int64)

    def stored(self, groups: NDArray[np.int64], ranks: NDArray[np.int64]) -> StoredDraws:
        """Rows of the given ranks in their groups, stored in this order; one pass.

        Raises
        ------
        StorageError
            Sources have changed since the groups were counted.
        """
        wanted = WantedRows(self.sizes, groups, ranks)
        numbers, arrays = np.empty(groups.size, dtype=np.int64), None
        for first, block, own in self.rows.mapped_with_numbers(self._grouped, _BLOCK):
            rows, wishes = wanted.pick(own)
            if arrays is None:
                empty = self.block_of(tuple(array[:1] for array in block))
                arrays = [np.empty((groups.size, *a.shape[1:]), dtype=a.dtype) for a in empty]
            if rows.size:
                numbers[wishes] = first + rows
                chosen = self.block_of(tuple(array[rows] for array in block))
                for array, values in zip(arrays, chosen, strict=True):
                    array[wishes] = values
        self.rows.refuse_if_changed()
        if arrays is None or not np.array_equal(wanted.seen, self.sizes):
            raise StorageError(
                "the rows of data= were changed while they were read: construct the step method "
                "again, and leave them as they are until sampling has ended."
            )
        order = np.arange(groups.size)
        return StoredDraws(SharedRows(arrays, order), SharedRows([numbers], order))

    def sum_over(
        self, function: Callable[..., NDArray], groups: NDArray[np.bool_]
    ) -> tuple[float, int]:
        """Sum of a function of blocks of rows over all rows of some groups; one pass."""
        one_at_a_time = OneAtATime(function)

        def chosen_sum(first: int, block: Block) -> tuple[float, int]:
            chosen = np.flatnonzero(groups[self._grouped(first, block).groups])
            if not chosen.size:
                return 0.0, 0
            data = self.block_of(tuple(array[chosen] for array in block))
            return float(one_at_a_time(*data).sum()), chosen.size

        total, n_rows = 0.0, 0
        for part, n_chosen in self.rows.mapped_with_numbers(chosen_sum, _BLOCK):
            total, n_rows = total + part, n_rows + n_chosen
        return total, n_rows

    def _grouped(self, first: int, block: Block) -> _Grouped:
        """The group of each row, by the same numbers as when the groups were counted."""
        constants, rows = self.bounds.or_none(block, (0, self.grid.usual))
        whitened = rows.gradients() if self.grid.by_direction else None
        cells, _ = self.grid.cells_of(constants[-1], whitened)
        return _Grouped(first, block, self.number[cells])


def counted(
    rows: SourceRows, bounds: BoundsOfRows, grid: Grid, block_of: Callable[[Block], Block]
) -> tuple[Groups, GroupedSources]:
    """Count the rows of each group, and find what bounds them; one pass."""

    def of_block(_: int, block: Block) -> RowsOfCells:
        constants, whitened = bounds.or_none(block)
        gradients = whitened.gradients() if grid.by_direction else None
        return grid.rows_of_cells(constants, gradients)

    totals = GridTotals(grid)
    for part in rows.mapped_with_numbers(of_block, _BLOCK):
        totals.add(part)
    groups = totals.groups()
    sizes = np.diff(groups.starts)
    return groups, GroupedSources(rows, bounds, grid, totals.number, sizes, block_of)
