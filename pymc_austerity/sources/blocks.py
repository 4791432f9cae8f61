"""Corresponding blocks of several sources, read one ahead."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from numpy.typing import NDArray

from pymc_austerity.errors import DataError
from pymc_austerity.sources.protocols import Source

__all__ = ["Piece", "block_ranges", "blocks_of_sources", "read_ahead", "refuse_unequal_lengths"]

Piece: TypeAlias = tuple[int, int, dict[str, NDArray]]
"""Rows that are read together: the first one, the end, and the rows of every source."""


def refuse_unequal_lengths(sources: Mapping[str, Source]) -> None:
    """Reject sources of a model with different numbers of rows.

    Raises
    ------
    DataError
        Two sources differ.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.sources import open_source
    >>> x, y = open_source(np.zeros((5, 2)), "x"), open_source(np.zeros(4), "y")
    >>> refuse_unequal_lengths({"x": x, "y": y})
    Traceback (most recent call last):
        ...
    pymc_austerity.errors.DataError: data['x'] has 5 rows and data['y'] has 4: give the same rows
    for both.
    """
    (first, expected), *others = [(name, source.n_rows) for name, source in sources.items()]
    for name, n_rows in others:
        if n_rows != expected:
            raise DataError(
                f"data[{first!r}] has {expected:,} rows and data[{name!r}] has {n_rows:,}: give "
                "the same rows for both."
            )


def block_ranges(sources: Mapping[str, Source], block_rows: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows, of limited length, that cover all rows in order.

    If all sources that have their own blocks have blocks of the same length, the ranges are whole
    blocks, or equal parts of one.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.sources import open_source
    >>> list(block_ranges({"y": open_source(np.zeros(10), "y")}, 4))
    [(0, 4), (4, 8), (8, 10)]
    """
    n_rows = next(iter(sources.values())).n_rows
    lengths = {source.block_length for source in sources.values()} - {None}
    length = lengths.pop() if len(lengths) == 1 else None
    if length is None:
        length = block_rows
    elif length <= block_rows:
        length = block_rows - block_rows % length
    step = -(-length // -(-length // block_rows))
    for begin in range(0, n_rows, length):
        end = min(begin + length, n_rows)
        for start in range(begin, end, step):
            yield start, min(start + step, end)


def blocks_of_sources(sources: Mapping[str, Source], block_rows: int) -> Iterator[Piece]:
    """All rows in order, in blocks of the same rows of every source, read as by `read_ahead`.

    Parameters
    ----------
    sources : mapping from str to Source
        At least one, all with the same number of rows.
    block_rows : int
        Largest number of rows in a block.

    Raises
    ------
    DataError
        The numbers of rows differ.
    StorageError
        A store was changed or removed, or cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.sources import open_source
    >>> sources = {"y": open_source(np.arange(5.0), "y")}
    >>> for start, stop, block in blocks_of_sources(sources, 3):
    ...     print(start, stop, block["y"])
    0 3 [0. 1. 2.]
    3 5 [3. 4.]
    """
    refuse_unequal_lengths(sources)
    yield from read_ahead(sources, list(block_ranges(sources, block_rows)))


def read_ahead(sources: Mapping[str, Source], ranges: Sequence[tuple[int, int]]) -> Iterator[Piece]:
    """Read some ranges of rows, one after the other.

    A thread reads the next range while the caller works on the current one, so that at most two
    are in memory besides what the sources keep. The thread ends with the iterator, even if it is
    closed early. Errors in the thread are raised here.

    Parameters
    ----------
    sources : mapping from str to Source
    ranges : sequence of (start, stop)
        At least one.

    Yields
    ------
    start, stop : int
    block : dict from str to array, shape (stop - start, ...)
    """

    def read(rows: tuple[int, int]) -> dict[str, NDArray]:
        return {name: source.read(*rows) for name, source in sources.items()}

    with ThreadPoolExecutor(1, thread_name_prefix="rows-ahead") as ahead:
        waiting = ahead.submit(read, ranges[0])
        for rows, following in zip(ranges, [*ranges[1:], None], strict=True):
            block = waiting.result()
            if following is not None:
                waiting = ahead.submit(read, following)
            yield *rows, block
            del block
