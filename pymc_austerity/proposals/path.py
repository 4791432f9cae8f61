"""The points of a chain, in order."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Path"]

_CHUNK = 64
"""Largest number of points that are copied when one is appended."""


class Path(NamedTuple):
    """An immutable sequence of points; appending cheaply makes a new one.

    Attributes
    ----------
    chunks : tuple of tuples of arrays, each of shape (d,)
        All points but the last few.
    latest : tuple of arrays, each of shape (d,)
        The last few.

    Examples
    --------
    >>> import numpy as np
    >>> path = Path().append(np.zeros(2)).append(np.ones(2))
    >>> path.to_array()
    array([[0., 0.],
           [1., 1.]])
    """

    chunks: tuple[tuple[NDArray, ...], ...] = ()
    latest: tuple[NDArray, ...] = ()

    def append(self, point: NDArray) -> "Path":
        """The path with one more point."""
        latest = (*self.latest, point)
        if len(latest) < _CHUNK:
            return Path(self.chunks, latest)
        return Path((*self.chunks, latest))

    def to_array(self) -> NDArray[np.float64]:
        """All points, shape (n, d)."""
        points = [point for chunk in (*self.chunks, self.latest) for point in chunk]
        return np.asarray(points, dtype=np.float64)
