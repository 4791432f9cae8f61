"""Which entries of a point are real, integer or categorical, and to which variable they belong."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Block", "Layout"]


@dataclass(frozen=True)
class Block:
    """The entries of one variable in a raveled point.

    Attributes
    ----------
    name : str
        Name of the variable, in unconstrained space.
    shape : tuple of int
        Shape of its value.
    first : int
        Position of its first entry in the point.
    orthonormal : bool
        Whether it is known to be a matrix with orthonormal columns, or an array of such matrices.
    """

    name: str
    shape: tuple[int, ...]
    first: int
    orthonormal: bool = False

    @property
    def entries(self) -> slice:
        """Positions of the entries of the variable in the point."""
        return slice(self.first, self.first + math.prod(self.shape))


@dataclass(frozen=True, eq=False)
class Layout:
    """The kinds of the entries of a raveled point.

    Attributes
    ----------
    n_categories : int array, shape (d,)
        0 for a real number, 1 for an integer without bounds, ``k >= 2`` for one of the categories
        ``0, ..., k - 1`` (2: binary).
    blocks : tuple of Block
        The variables, in the order of their entries; empty where they do not matter.

    Examples
    --------
    >>> Layout.continuous(3).n_entries
    3
    """

    n_categories: NDArray[np.int64]
    blocks: tuple[Block, ...] = ()

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
