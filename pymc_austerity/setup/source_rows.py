"""All rows of a model that holds a few of them: read from sources, block by block."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import DataError, SettingError
from pymc_austerity.model import Examples, LeafRecipes
from pymc_austerity.model.cut import array_of
from pymc_austerity.model.fingerprint import fingerprint
from pymc_austerity.rows import LARGEST_BLOCK, ArrayRows, Block
from pymc_austerity.setup.setup_progress import rows_done
from pymc_austerity.sources import (
    Source,
    blocks_of_sources,
    mapped_in_order,
    open_source,
    refuse_unequal_lengths,
    usual_threads,
)

__all__ = ["ExpandedSourceRows", "SourceRows", "open_sources"]

Result = TypeVar("Result")

_AT_ONCE = 8 * LARGEST_BLOCK
"""Rows that are read from a source at once."""

_WINDOWS, _LENGTH = 16, 64
"""Stretches of rows, and their length, that tell sources of the same size apart."""


def open_sources(data: Mapping[str, Any], examples: Examples) -> dict[str, Source]:
    """Open what the user named, and compare it with the rows that the model holds.

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
        if tuple(source.row_shape) != shape:
            raise SettingError(
                f"data={{{name!r}: ...}} has rows of shape {tuple(source.row_shape)}, and those of "
                f"{name!r} in the model have shape {shape}: build the model on some rows of the "
                "source."
            )
    return sources


def _is_source(given: Any) -> bool:
    """Whether it is a `Source` of the user's own."""
    members = ("n_rows", "row_shape", "dtype", "read", "take", "refuse_if_changed")
    return all(hasattr(given, member) for member in members)


class FromExample(Protocol):
    """A graph that was cut to rows on an example of them."""

    @property
    def examples(self) -> Examples:
        """Data that hold the example."""
        ...

    @property
    def recipes(self) -> LeafRecipes | None:
        """What its leaves are computed from."""
        ...


class SourceRows:
    """Rows that stay where they are, as the leaves of a row likelihood.

    Values are cast to the dtype that the model gave its example, as PyMC would cast the whole: what
    the model holds as integers must be whole numbers.

    Parameters
    ----------
    sources : dict of str to Source
    recipes : LeafRecipes
        From data to leaves.
    dtypes : dict of str to dtype
        Of the example.

    Attributes
    ----------
    sources : dict of str to Source
    n_passes : int
        Passes over all rows so far.
    sample : ArrayRows or None
        Rows drawn at random without replacement, once these are known.
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        recipes: LeafRecipes,
        dtypes: Mapping[str, np.dtype],
    ) -> None:
        self.sources = dict(sources)
        self.n_passes = 0
        self.sample: ArrayRows | None = None
        self._recipes = recipes
        self._dtypes = dict(dtypes)

    @classmethod
    def of(cls, sources: Mapping[str, Source], cut: FromExample) -> "SourceRows":
        """The rows of what was cut on an example."""
        assert cut.recipes is not None
        variables = cut.examples.variables
        dtypes = {name: array_of(v).dtype for name, v in variables.items()}
        return cls(sources, cut.recipes, dtypes)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return next(iter(self.sources.values())).n_rows

    def window(self, start: int, stop: int) -> Block:
        """Consecutive rows."""
        return self._recipes(self.data(start, stop))

    def take(self, indices: NDArray[np.intp]) -> Block:
        """Rows at the given positions; slow where storage reads whole blocks."""
        raw = {name: source.take(indices) for name, source in self.sources.items()}
        return self._recipes(self._cast(raw, indices))

    def data(self, start: int, stop: int) -> dict[str, NDArray]:
        """Consecutive rows of the named data, in the dtypes of the example."""
        raw = {name: source.read(start, stop) for name, source in self.sources.items()}
        return self._cast(raw, start)

    def blocks(self) -> Iterator[Block]:
        """All rows in order, in blocks that fit the cache: one pass."""
        return self.mapped(lambda block: block)

    def mapped(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """What a function makes of each block, in order: one pass."""
        return self.mapped_with_numbers(lambda _, block: function(block))

    def mapped_with_numbers(
        self, function: Callable[[int, Block], Result], n_rows: int = LARGEST_BLOCK
    ) -> Iterator[Result]:
        """The same for a function of the number of a block's first row and of the block.

        One thread reads, others evaluate. Results are the same for any number of threads: blocks
        are, and results come in the order of the rows.

        Parameters
        ----------
        function : callable
            Several threads call it at a time: it changes nothing.
        n_rows : int
            Most rows of a block.
        """
        self.n_passes += 1
        at_once = max(n_rows, _AT_ONCE // n_rows * n_rows)

        def evaluate(read: tuple[int, int, dict[str, NDArray]]) -> list[Result]:
            first, last, raw = read
            found = []
            for start in range(0, last - first, n_rows):
                part = {name: array[start : start + n_rows] for name, array in raw.items()}
                found.append(
                    function(first + start, self._recipes(self._cast(part, first + start)))
                )
            return found

        with rows_done(self.n_rows) as tell:
            blocks = blocks_of_sources(self.sources, at_once)
            for found in mapped_in_order(evaluate, blocks, usual_threads()):
                yield from found
                tell(n_rows * len(found))

    def some(self, n_rows: int, rng: np.random.Generator) -> ArrayRows:
        """Some of the rows that were drawn at random, all of them if there are not more."""
        assert self.sample is not None
        if n_rows >= self.sample.n_rows:
            return self.sample
        drawn = rng.choice(self.sample.n_rows, n_rows, replace=False)
        return ArrayRows(self.sample.take(np.sort(drawn)))

    @property
    def fingerprint(self) -> str:
        """What tells these rows from others."""
        length = min(_LENGTH, self.n_rows)
        starts = np.linspace(0, self.n_rows - length, _WINDOWS).astype(int)
        windows = [self.data(int(start), int(start) + length) for start in starts]
        arrays = [np.concatenate([w[name] for w in windows]) for name in self.sources]
        return f"{fingerprint(arrays)}-{self.n_rows}"

    def refuse_if_changed(self) -> None:
        """Raise StorageError where a source was changed or removed since it was opened."""
        for source in self.sources.values():
            source.refuse_if_changed()

    def _cast(
        self, raw: Mapping[str, NDArray], numbers: NDArray[np.intp] | int
    ) -> dict[str, NDArray]:
        """Copies in the dtypes of the example; `numbers` are those of the rows, or of the first."""
        return {
            name: _as_dtype(array, self._dtypes[name], name, numbers) for name, array in raw.items()
        }


@dataclass(frozen=True, eq=False)
class ExpandedSourceRows:
    """All rows with what is known of them at an anchor.

    Attributes
    ----------
    rows : SourceRows
    block_of : callable
        From the data of rows to what the residual function takes.
    """

    rows: SourceRows
    block_of: Callable[[Block], Block]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rows.n_rows

    def window(self, start: int, stop: int) -> Block:
        """Consecutive rows."""
        return self.block_of(self.rows.window(start, stop))

    def take(self, indices: NDArray[np.intp]) -> Block:
        """Rows at the given positions; slow where storage reads whole blocks."""
        return self.block_of(self.rows.take(indices))

    def blocks(self) -> Iterator[Block]:
        """All rows in order: one pass."""
        return map(self.block_of, self.rows.blocks())

    def mapped(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """What a function makes of each block, in order: one pass."""
        return self.rows.mapped(lambda block: function(self.block_of(block)))


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
                f"{name!r} is {array[row]} in row {number:,} of its source, which is not of "
                f"the type that the model has it in ({dtype}): change the source, or build the "
                f"model on {name!r} of another type."
            )
    return cast
