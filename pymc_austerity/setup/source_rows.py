"""All rows of a model that holds a few of them: read from sources, block by block."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import DataError, SettingError
from pymc_austerity.model import Examples, LeafRecipes
from pymc_austerity.model.cut import array_of
from pymc_austerity.model.row_likelihood import fingerprint
from pymc_austerity.rows import LARGEST_BLOCK, ArrayRows, Block, StoredRows, store_by_label
from pymc_austerity.setup.pass_cache import PassCache
from pymc_austerity.setup.setup_progress import rows_done
from pymc_austerity.sources import (
    Piece,
    Source,
    block_ranges,
    open_source,
    pass_over,
    refuse_unequal_lengths,
    take,
)

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


Labeled: TypeAlias = tuple[NDArray[np.int64], Block]
"""Labels of some rows, and what is stored of them."""

_AT_ONCE = 8 * LARGEST_BLOCK
"""Rows that are read from a source at once."""

_WINDOWS, _LENGTH = 16, 64
"""Number and length of the windows of rows that tell sources of the same size apart."""


def open_sources(data: Mapping[str, Any], examples: Examples) -> dict[str, Source]:
    """Open the sources that the user named, and compare them with the rows that the model holds.

    Parameters
    ----------
    data : dict of str to anything that holds rows
    examples : Examples

    Raises
    ------
    SettingError
        Rows differ in shape from those of the example, or sources in length.
    """
    sources = {
        name: given if _is_source(given) else open_source(given, name)
        for name, given in data.items()
    }
    refuse_unequal_lengths(sources)
    for name, source in sources.items():
        shape = array_of(examples.variables[name]).shape[1:]
        if (found := tuple(source.row_shape)) != shape:
            remedy = "build the model on some rows of the source"
            if found == (1,) and shape == ():
                remedy = "give the name of a column, as in Columns(path, 'x'), for a vector"
            raise SettingError(
                f"data={{{name!r}: ...}} has rows of shape {found}, and those of {name!r} in the "
                f"model have shape {shape}: {remedy}."
            )
    return sources


def _is_source(given: Any) -> bool:
    """Whether this is a `Source` of the user's own."""
    members = ("n_rows", "row_shape", "dtype", "block_length", "read", "refuse_if_changed")
    return all(hasattr(given, member) for member in members)


class FromExample(Protocol):
    """A graph that was cut to rows on an example of them."""

    @property
    def examples(self) -> Examples:
        """Data that hold the example."""
        ...

    @property
    def recipes(self) -> LeafRecipes | None:
        """The graphs from which its leaves are computed."""
        ...


@dataclass(eq=False)
class SourceRows:
    """Rows that stay where they are, as the leaves of a row likelihood.

    Attributes
    ----------
    sources : dict of str to Source
    leaves : Leaves
        From these to arrays.
    n_passes : int
        Passes over all rows so far.
    sample : ArrayRows or None
        Rows drawn at random without replacement, after the first pass.
    kept : PassCache or None
        Results of passes, during set-up, if the user named a folder for them.
    """

    sources: dict[str, Source]
    leaves: Leaves
    n_passes: int = 0
    sample: ArrayRows | None = None
    kept: PassCache | None = None

    @classmethod
    def of(cls, sources: Mapping[str, Source], cut: FromExample) -> "SourceRows":
        """The rows of a likelihood that was cut on an example."""
        assert cut.recipes is not None
        variables = cut.examples.variables
        dtypes = {name: array_of(v).dtype for name, v in variables.items()}
        return cls(dict(sources), Leaves(cut.recipes, dtypes))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return next(iter(self.sources.values())).n_rows

    def window(self, start: int, stop: int) -> Block:
        """Consecutive rows."""
        return self.leaves.of(self._read(start, stop), start)

    def take(self, indices: NDArray[np.intp]) -> Block:
        """Rows at the given positions; slow where storage reads whole blocks."""
        raw = {name: take(source, indices) for name, source in self.sources.items()}
        return self.leaves.of(raw, indices)

    def data(self, start: int, stop: int) -> dict[str, NDArray]:
        """Consecutive rows of the named data, in the dtypes of the example."""
        return self.leaves.cast(self._read(start, stop), start)

    def blocks(self) -> Iterator[Block]:
        """All rows in order, in blocks that fit the cache: one pass, in this process."""
        for blocks in self.in_pieces(list, here=True):
            for _, block in blocks:
                yield block

    def summed(
        self,
        function: Callable[[Block], NDArray[np.float64]],
        arguments: Sequence[Any] | None = None,
    ) -> NDArray[np.float64]:
        """Sum of a function of each block, piece by piece: one pass.

        Parameters
        ----------
        function, arguments
            As for `in_pieces`.
        """

        def of_piece(blocks: NumberedBlocks) -> NDArray[np.float64]:
            return reduce(np.add, (function(block) for _, block in blocks))

        return reduce(np.add, self.in_pieces(of_piece, arguments=arguments))

    def mapped_with_numbers(
        self,
        function: Callable[[int, Block], Result],
        n_rows: int = LARGEST_BLOCK,
        arguments: Sequence[Any] | None = None,
        *,
        here: bool = False,
    ) -> Iterator[Result]:
        """Results of a function of the number of a block's first row and of the block: one pass.

        Parameters
        ----------
        function, n_rows, arguments, here
            As for `in_pieces`.
        """

        def of_piece(blocks: NumberedBlocks) -> list[Result]:
            return [function(*block) for block in blocks]

        for found in self.in_pieces(of_piece, n_rows, arguments=arguments, here=here):
            yield from found

    def in_pieces(
        self,
        function: Callable[[NumberedBlocks], Result],
        n_rows: int = LARGEST_BLOCK,
        *,
        arguments: Sequence[Any] | None = None,
        here: bool = False,
    ) -> Iterator[Result]:
        """Results of a function for the blocks of each piece that is read at once, in order.

        Results are the same for any number of threads, and on a cluster: see `pass_over`.

        Parameters
        ----------
        function : callable
            Called by several threads or processes at a time; it must not change anything, and the
            objects that it refers to are sent to processes.
        n_rows : int
            Largest number of rows of a block.
        arguments : sequence, optional
            Name of the pass, and what the function depends on besides the rows and the model: text,
            numbers and arrays. Without it, results are not kept in case set-up is killed.
        here : bool
            Whether to stay in this process, as where the blocks themselves are returned.
        """
        self.n_passes += 1
        of_piece, ranges = partial(on_piece, function, self.leaves, n_rows), self.pieces(n_rows)

        def run(some: Sequence[tuple[int, int]]) -> Iterator[Result]:
            return pass_over(of_piece, self.sources, some, here=here)

        if arguments is None or self.kept is None:
            results = run(ranges)
        else:
            results = self.kept.results(arguments, ranges, run)
        with rows_done(self.n_rows) as tell:
            for found, (start, stop) in zip(results, ranges, strict=True):
                yield found
                tell(stop - start)

    def stored(
        self, labeled: Iterable[Labeled], shares: NDArray[np.float64], rng: np.random.Generator
    ) -> tuple[StoredRows, NDArray[np.int64]]:
        """Store all rows by their labels; see `store_by_label`. Leaves come first in each block.

        Raises
        ------
        StorageError
            There is no room for the rows, or they were changed while they were read.
        """
        types = self.leaves.types(self.sources)
        source, sizes = store_by_label(
            labeled, n_rows=self.n_rows, shares=shares, rng=rng, types=types
        )
        self.refuse_if_changed()
        return source, sizes

    def shuffled(
        self, rng: np.random.Generator, block_of: Callable[[Block], Block] = tuple
    ) -> StoredRows:
        """Store all rows in random order, in one pass; `block_of` makes what is stored."""

        def labeled(_: int, block: Block) -> Labeled:
            return np.zeros(len(block[0]), dtype=np.int64), block_of(block)

        return self.stored(self.mapped_with_numbers(labeled, here=True), np.ones(1), rng)[0]

    def numbers(self, first: int, n_rows: int) -> NDArray[np.unsignedinteger]:
        """Numbers of consecutive rows, in the shortest type."""
        return np.arange(first, first + n_rows, dtype=np.min_scalar_type(self.n_rows))

    def pieces(self, n_rows: int = LARGEST_BLOCK) -> list[tuple[int, int]]:
        """Ranges of rows that are read at once, each in blocks of `n_rows`."""
        return list(block_ranges(self.sources, max(n_rows, _AT_ONCE // n_rows * n_rows)))

    def some(self, n_rows: int, rng: np.random.Generator) -> ArrayRows:
        """Some of the rows that were drawn at random, or all of them if there are too few."""
        assert self.sample is not None
        if n_rows >= self.sample.n_rows:
            return self.sample
        drawn = rng.choice(self.sample.n_rows, n_rows, replace=False)
        return ArrayRows(self.sample.take(np.sort(drawn)))

    @cached_property
    def fingerprint(self) -> str:
        """Identifies these rows; they are read once for it."""
        length = min(_LENGTH, self.n_rows)
        starts = np.linspace(0, self.n_rows - length, _WINDOWS).astype(int)
        windows = [self.data(int(start), int(start) + length) for start in starts]
        arrays = [np.concatenate([w[name] for w in windows]) for name in self.sources]
        return f"{fingerprint(arrays)}-{self.n_rows}"

    def refuse_if_changed(self) -> None:
        """Raise StorageError where a source was changed or removed since it was opened."""
        for source in self.sources.values():
            source.refuse_if_changed()

    def _read(self, start: int, stop: int) -> dict[str, NDArray]:
        return {name: source.read(start, stop) for name, source in self.sources.items()}
