"""From rows of sources to the leaves of a row likelihood."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import DataError
from pymc_austerity.model import LeafRecipes
from pymc_austerity.rows import Block
from pymc_austerity.sources import Piece, Source

Result = TypeVar("Result")

NumberedBlocks: TypeAlias = Iterator[tuple[int, Block]]
"""Consecutive blocks, each with the number of its first row."""


@dataclass(frozen=True, eq=False)
class Leaves:
    """Leaves of rows, with values in the dtype of the model's example, as PyMC would cast them.

    Data that are integers in the model must be whole numbers.

    Attributes
    ----------
    recipes : LeafRecipes
        From data to leaves.
    dtypes : dict of str to dtype
        Of the example.
    """

    recipes: LeafRecipes
    dtypes: Mapping[str, np.dtype]

    def of(self, raw: Mapping[str, NDArray], numbers: NDArray[np.intp] | int) -> Block:
        """Leaves of some rows; `numbers` are those of the rows, or that of the first."""
        return self.recipes(self.cast(raw, numbers))

    def cast(
        self, raw: Mapping[str, NDArray], numbers: NDArray[np.intp] | int
    ) -> dict[str, NDArray]:
        """Copies in the dtypes of the example."""
        return {
            name: _as_dtype(array, self.dtypes[name], name, numbers) for name, array in raw.items()
        }

    def types(self, sources: Mapping[str, Source]) -> list[np.dtype | None]:
        """Of each leaf, the type in which its source has it; None for leaves that are computed."""
        names = self.recipes.names
        return [None if k is None else sources[names[k]].dtype for k in self.recipes.leaves]

    def blocks_of(self, piece: Piece, n_rows: int) -> NumberedBlocks:
        """The rows of a piece in blocks of limited length."""
        first, last, raw = piece
        for start in range(0, last - first, n_rows):
            part = {name: array[start : start + n_rows] for name, array in raw.items()}
            yield first + start, self.of(part, first + start)


def on_piece(
    function: Callable[[NumberedBlocks], Result], leaves: Leaves, n_rows: int, piece: Piece
) -> Result:
    """What a function makes of the rows of a piece, in blocks of at most `n_rows`."""
    return function(leaves.blocks_of(piece, n_rows))


def _as_dtype(
    array: NDArray, dtype: np.dtype, name: str, numbers: NDArray[np.intp] | int
) -> NDArray:
    with np.errstate(invalid="ignore", over="ignore"):
        cast = array.astype(dtype, order="C")
    if dtype.kind != "f" and not np.can_cast(array.dtype, dtype):
        changed = (cast != array).reshape(len(array), -1).any(axis=1)
        if changed.any():
            row = int(np.argmax(changed))
            number = numbers + row if isinstance(numbers, int) else int(numbers[row])
            raise DataError(
                f"{name!r} is {array[row]} in row {number:,} of its source, which its type in the "
                f"model ({dtype}) cannot hold: change the source, or build the model on {name!r} "
                "of another type."
            )
    return cast
