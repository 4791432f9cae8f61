"""Rows in sources, grouped by their bounds in passes over all of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import Anchor
from pymc_austerity.deciding.pool_draws import StoredDraws
from pymc_austerity.errors import StorageError
from pymc_austerity.exact import Grid, GridTotals, Groups, RowsOfCells, WantedRows
from pymc_austerity.model import DesignFunction, OneAtATime
from pymc_austerity.model.bounds import (
    CellBounds,
    NoBoundError,
    ScalarFunction,
    third_derivative_constants,
)
from pymc_austerity.rows import LARGEST_BLOCK, Block, SharedRows
from pymc_austerity.setup.leaves import NumberedBlocks
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
        Filled as blocks need them.
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
            Indices of the radii that are needed, that of the smallest included; by default all.

        Returns
        -------
        constants : float array, shape (number of radii, m)
        rows : WhitenedRows

        Raises
        ------
        NoBoundError
            Most of the rows have no bound.
        """
        rows = whitened_block(self.designs, block, self.anchor)
        chosen = self.radii if radii is None else self.radii[list(radii)]
        known = (self.function, block, rows.center, rows.gram, chosen.tolist())
        return third_derivative_constants(*known, cells=self.cells), rows

    def or_none(
        self, block: Sequence[NDArray], radii: Sequence[int] | None = None
    ) -> tuple[NDArray[np.float64], WhitenedRows]:
        """Like `of`, but with infinite constants for a block in which most rows have no bound."""
        try:
            return self.of(block, radii)
        except NoBoundError:
            n_radii = self.radii.size if radii is None else len(radii)
            rows = whitened_block(self.designs, block, self.anchor)
            return np.full((n_radii, len(block[0])), np.inf), rows


@dataclass(frozen=True, eq=False)
class _GroupsOfBlocks:
    """The group of each row of a block, numbered as when the groups were counted."""

    bounds: BoundsOfRows
    grid: Grid
    number: NDArray[np.int64]

    def __call__(self, block: Block) -> NDArray[np.int64]:
        constants, rows = self.bounds.or_none(block, (0, self.grid.usual))
        whitened = rows.gradients() if self.grid.by_direction else None
        cells, _ = self.grid.cells_of(constants[-1], whitened)
        return self.number[cells]


class _Chosen(NamedTuple):
    """Rows of a piece that were requested.

    Attributes
    ----------
    wishes : int array, shape (m,)
        Positions of these rows in the list of all rows that are wanted.
    numbers : int array, shape (m,)
        Of the rows in the data.
    block : Block or None
        Input of the row function; None for no row.
    counts : int array, shape (G,)
        Rows of each group in the piece.
    """

    wishes: NDArray[np.int64]
    numbers: NDArray[np.int64]
    block: Block | None
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GroupedSources:
    """All rows, whose groups are computed during passes.

    Attributes
    ----------
    rows : SourceRows
    groups_of : callable
        From a block to the group of each row.
    counts : int32 array, shape (number of pieces, G)
        Rows of each group in each piece that is read at once.
    block_of : callable
        From the data of rows to the input of the row function.
    """

    rows: SourceRows
    groups_of: Callable[[Block], NDArray[np.int64]]
    counts: NDArray[np.int32]
    block_of: Callable[[Block], Block]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each group, shape (G,)."""
        return self.counts.sum(axis=0, dtype=np.int64)

    def draw(self, counts: NDArray[np.int64], seed: tuple[int, ...]) -> StoredDraws:
        """Draw given numbers of rows of each group, uniformly with replacement; one pass."""
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
        numbers = np.empty(groups.size, dtype=np.int64)
        example = self.block_of(self.rows.window(0, 1))
        arrays = [np.empty((groups.size, *a.shape[1:]), dtype=a.dtype) for a in example]
        arguments = ("rows", groups, ranks, self.counts, example)
        pieces = self.rows.in_pieces(self._picking(groups, ranks), _BLOCK, arguments=arguments)
        for chosen, expected in zip(pieces, self.counts, strict=True):
            if not np.array_equal(chosen.counts, expected):
                raise StorageError(
                    "the rows of data= were changed while they were read: construct the step "
                    "method again, and leave them as they are until sampling has ended."
                )
            if chosen.block is None:
                continue
            numbers[chosen.wishes] = chosen.numbers
            for array, values in zip(arrays, chosen.block, strict=True):
                array[chosen.wishes] = values
        self.rows.refuse_if_changed()
        order = np.arange(groups.size)
        return StoredDraws(SharedRows(arrays, order), SharedRows([numbers], order))

    def _picking(
        self, groups: NDArray[np.int64], ranks: NDArray[np.int64]
    ) -> Callable[[NumberedBlocks], _Chosen]:
        """A function that finds rows of the given ranks in a piece, from the counts before it."""
        groups_of, block_of = self.groups_of, self.block_of
        wanted = WantedRows(self.sizes, groups, ranks)
        before = np.cumsum(self.counts, axis=0, dtype=np.int64) - self.counts
        firsts = np.array([start for start, _ in self.rows.pieces(_BLOCK)])

        def picked(blocks: NumberedBlocks) -> _Chosen:
            found: list[tuple[NDArray[np.int64], NDArray[np.int64], Block]] = []
            begin = seen = np.zeros(0, dtype=np.int64)
            for first, block in blocks:
                if not found:
                    begin = seen = before[np.searchsorted(firsts, first)]
                rows, wishes, seen = wanted.pick(groups_of(block), seen)
                found.append((wishes, first + rows, tuple(array[rows] for array in block)))
            each_wishes, each_numbers, chosen = zip(*found, strict=True)
            wishes, numbers = np.concatenate(each_wishes), np.concatenate(each_numbers)
            together = tuple(np.concatenate(arrays) for arrays in zip(*chosen, strict=True))
            return _Chosen(
                wishes, numbers, block_of(together) if wishes.size else None, seen - begin
            )

        return picked

    def sum_over(
        self, function: Callable[..., NDArray], groups: NDArray[np.bool_]
    ) -> tuple[float, int]:
        """Sum of a function of blocks of rows over all rows of some groups; one pass."""
        one_at_a_time = OneAtATime(function)
        groups_of, block_of = self.groups_of, self.block_of

        def chosen_sum(_: int, block: Block) -> tuple[float, int]:
            chosen = np.flatnonzero(groups[groups_of(block)])
            if not chosen.size:
                return 0.0, 0
            data = block_of(tuple(array[chosen] for array in block))
            return float(one_at_a_time(*data).sum()), chosen.size

        total, n_rows = 0.0, 0
        for part, n_chosen in self.rows.mapped_with_numbers(chosen_sum, _BLOCK):
            total, n_rows = total + part, n_rows + n_chosen
        return total, n_rows


def counted(
    rows: SourceRows, bounds: BoundsOfRows, grid: Grid, block_of: Callable[[Block], Block]
) -> tuple[Groups, GroupedSources]:
    """Count the rows of each group, and find their bounds; one pass."""

    def of_piece(blocks: NumberedBlocks) -> RowsOfCells:
        own = GridTotals(grid)
        for _, block in blocks:
            constants, whitened = bounds.or_none(block)
            gradients = whitened.gradients() if grid.by_direction else None
            own.add(grid.rows_of_cells(constants, gradients))
        return own.rows_of_cells()

    totals, found = GridTotals(grid), []
    arguments = ("groups", bounds.anchor.point, bounds.anchor.root, bounds.radii, grid)
    for part in rows.in_pieces(of_piece, _BLOCK, arguments=arguments):
        totals.add(part)
        found.append((part.cells, part.counts))
    groups = totals.groups()
    counts = np.zeros((len(found), groups.n_groups), dtype=np.int32)
    for row, (cells, own) in zip(counts, found, strict=True):
        row[totals.number[cells]] = own
    groups_of = _GroupsOfBlocks(bounds, grid, totals.number)
    return groups, GroupedSources(rows, groups_of, counts, block_of)
