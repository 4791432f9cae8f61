"""Which entries of a point are real, integer or categorical."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Layout"]


@dataclass(frozen=True, eq=False)
class Layout:
    """The kinds of the entries of a raveled point.

    Attributes
    ----------
    n_categories : int array, shape (d,)
        0 for a real number, 1 for an integer without bounds, ``k >= 2`` for one of the categories
        ``0, ..., k - 1`` (2: binary).

    Examples
    --------
    >>> Layout.continuous(3).n_entries
    3
    """

    n_categories: NDArray[np.int64]

    @classmethod
    def continuous(cls, n_entries: int) -> "Layout":
        """Layout of real numbers only."""
        return cls(np.zeros(n_entries, dtype=np.int64))

    @property
    def n_entries(self) -> int:
        """Length of a point."""
        return int(self.n_categories.size)

    @property
    def is_continuous(self) -> bool:
        """Whether all entries are real numbers."""
        return not self.n_categories.any()
