"""The draws that a chain has used of a pool of rows, and further ones when these run out."""

import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.rows import RowSource

__all__ = ["DrawnAhead", "PoolDraws", "StoredDraws"]

_NEARLY = 0.6
"""Share of the draws of a group that are used when further ones are drawn."""


class StoredDraws(NamedTuple):
    """Rows of some groups, stored.

    Attributes
    ----------
    rows : RowSource
        What the row function takes.
    numbers : RowSource
        Their numbers in the data: one array.
    """

    rows: RowSource
    numbers: RowSource


class DrawnAhead:
    """Draws that a thread makes while the chain goes on.

    Parameters
    ----------
    draw : callable
        From numbers of draws and a seed to the draws; a pass over all rows.
    lengths : int array, shape (G,)
    seed : tuple of int
    """

    def __init__(
        self,
        draw: Callable[[NDArray[np.int64], tuple[int, ...]], StoredDraws],
        lengths: NDArray[np.int64],
        seed: tuple[int, ...],
    ) -> None:
        self._asked = lengths, seed
        self._draw = draw
        self._found: StoredDraws | Exception | None = None
        # settings such as numpy.errstate are those of the chain
        run = contextvars.copy_context().run
        self._thread = threading.Thread(
            target=run, args=(self._run,), name="rows-drawn-ahead", daemon=True
        )
        self._thread.start()

    def result(self, lengths: NDArray[np.int64], seed: tuple[int, ...]) -> StoredDraws | None:
        """The draws; None if others are asked for. Errors in the thread are raised."""
        if seed != self._asked[1] or not np.array_equal(lengths, self._asked[0]):
            return None
        self._thread.join()
        if isinstance(self._found, Exception):
            raise self._found
        return self._found

    def _run(self) -> None:
        try:
            self._found = self._draw(*self._asked)
        except Exception as error:  # noqa: BLE001 - it is raised where the draws are needed
            self._found = error


@dataclass
class PoolDraws:
    """The draws that a chain has used of its part of a pool.

    Attributes
    ----------
    part : int
    used : int array, shape (G,)
        Draws of each group.
    lengths : int array, shape (G,)
        Draws there are.
    following : int array, shape (G,)
        Number of draws after these have run out, unless a decision needs more. It is known from
        the beginning, so that the draws can be made before or at that time.
    n_refills : int
        Passes for further draws.
    own : StoredDraws or None
        Further draws, of this chain alone. Not part of what is pickled: they are drawn again.
    ahead : DrawnAhead or None
        Those that follow, if they are being drawn; not pickled either.
    """

    part: int
    used: NDArray[np.int64]
    lengths: NDArray[np.int64]
    following: NDArray[np.int64]
    n_refills: int = 0
    own: StoredDraws | None = field(default=None, repr=False, compare=False)
    ahead: DrawnAhead | None = field(default=None, repr=False, compare=False)

    @property
    def run_low(self) -> bool:
        """Whether most draws of some group are used."""
        return bool((self.used > _NEARLY * self.lengths).any())

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "own": None, "ahead": None}
