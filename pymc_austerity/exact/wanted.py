"""Rows that are picked out of groups during a pass over all rows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Picked", "WantedRows"]


class Picked(NamedTuple):
    """Rows of a block that are wanted.

    Attributes
    ----------
    rows : int array
        Their numbers in the block; a row that is wanted twice is there twice.
    wishes : int array
        Number of the wish of each of them.
    seen : int array, shape (G,)
        Rows of each group up to the end of the block.
    """

    rows: NDArray[np.int64]
    wishes: NDArray[np.int64]
    seen: NDArray[np.int64]


class WantedRows:
    """Ranks of rows within their groups, in the order of the data.

    Parameters
    ----------
    sizes : int array, shape (G,)
        Rows of each group.
    groups, ranks : int arrays, shape (W,)
        The wishes: the rows of these ranks in these groups, from 0.

    Examples
    --------
    >>> wanted = WantedRows(np.array([2, 3]), np.array([1, 0, 1]), np.array([2, 0, 0]))
    >>> wanted.pick(np.array([1, 0, 1]), seen=np.array([0, 0]))
    Picked(rows=array([1, 0]), wishes=array([1, 2]), seen=array([1, 2]))
    >>> wanted.pick(np.array([0, 1]), seen=np.array([1, 2]))
    Picked(rows=array([1]), wishes=array([0]), seen=array([2, 3]))
    """

    def __init__(
        self, sizes: NDArray[np.int64], groups: NDArray[np.int64], ranks: NDArray[np.int64]
    ) -> None:
        self._starts = np.cumsum(sizes) - sizes
        places = self._starts[groups] + ranks
        self._order = np.argsort(places, kind="stable")
        self._places = places[self._order]

    def pick(self, groups: NDArray[np.int64], seen: NDArray[np.int64]) -> Picked:
        """The wanted rows of a block.

        Parameters
        ----------
        groups : int array, shape (m,)
            The group of each row of the block.
        seen : int array, shape (G,)
            Rows of each group before the block.
        """
        counts = np.bincount(groups, minlength=seen.size)
        here = np.flatnonzero(counts)
        lows = self._starts[here] + seen[here]
        first = np.searchsorted(self._places, lows)
        n_wanted = np.searchsorted(self._places, lows + counts[here]) - first
        wishes = np.repeat(first - np.cumsum(n_wanted) + n_wanted, n_wanted)
        wishes += np.arange(wishes.size)
        ranks = self._places[wishes] - np.repeat(lows, n_wanted)
        ranks += np.repeat(np.cumsum(counts[here]) - counts[here], n_wanted)
        return Picked(_by_group(groups)[ranks], self._order[wishes], seen + counts)


def _by_group(groups: NDArray[np.int64]) -> NDArray[np.intp]:
    """Rows group by group; short integers are sorted in time proportional to their number."""
    is_short = groups.max(initial=0) < 2**16
    return np.argsort(groups.astype(np.uint16) if is_short else groups, kind="stable")
