"""Which rows of an inner variable the rows of the batch come from."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.model.cut.refusal import CannotCut

__all__ = ["WHOLE", "Selection", "Selections"]


@dataclass(frozen=True, eq=False)
class Selection:
    """Row ``i`` of the log-likelihood reads row ``rows[i]`` of an inner variable.

    Compared by identity, so that selections are cheap keys of a memo.

    Parameters
    ----------
    rows : int array, shape (n_rows,), or None
        None means ``rows[i] == i``.
    """

    rows: NDArray[np.int64] | None


WHOLE = Selection(None)
"""Every row reads the row of the same number."""


class Selections:
    """Selections made so far: the same one is made once.

    Parameters
    ----------
    n_rows : int
        Rows there are.
    of_examples : bool
        Whether these are a few rows of many: then every row reads the row of the same number.
    """

    def __init__(self, n_rows: int, *, of_examples: bool = False) -> None:
        self.n_rows = n_rows
        self._of_examples = of_examples
        self._made: dict[Hashable, Selection] = {}

    def rows(self, selection: Selection) -> NDArray[np.int64]:
        """Rows read, spelled out, shape (n_rows,)."""
        return np.arange(self.n_rows) if selection.rows is None else selection.rows

    def new(self, rows: NDArray, key: Hashable) -> Selection:
        """Return the selection of these rows; the same for the same key."""
        if self._of_examples:
            raise CannotCut("it picks, joins or repeats rows by their numbers in the example")
        if key not in self._made:
            self._made[key] = Selection(np.ascontiguousarray(rows, dtype=np.int64))
        return self._made[key]

    def through(self, selection: Selection, rows: NDArray | None, key: Hashable) -> Selection:
        """Return the selection of the rows of x that are read as rows of ``x[rows]``."""
        if rows is None or (self._of_examples and np.array_equal(rows, np.arange(self.n_rows))):
            return selection
        read = rows if selection.rows is None else np.asarray(rows)[selection.rows]
        return self.new(read, (selection, key))
