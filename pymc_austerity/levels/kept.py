"""A function of a point with a block at its anchor, which keeps its values at a few points."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["KeptAtAnchor"]

_MOST_KEPT = 3
"""Number of values: at the current point, at a proposed one, and at the anchor."""


class KeptAtAnchor:
    """Evaluate a function with some entries at the anchor, unless the value is known.

    Parameters
    ----------
    function : callable
        Of a point, shape (d,).
    given : int array
        Other entries that the value depends on.
    entries : int array
        Entries that are set to the anchor.
    anchor : float array, shape (d,)

    Examples
    --------
    >>> kept = KeptAtAnchor(np.sum, np.array([1]), np.array([0]), np.zeros(2))
    >>> float(kept(np.array([5.0, 3.0])))
    3.0
    """

    def __init__(
        self,
        function: Callable[[NDArray], Any],
        given: NDArray[np.int64],
        entries: NDArray[np.int64],
        anchor: NDArray[np.float64],
    ) -> None:
        self._function = function
        self._given = given
        self._entries = entries
        self._anchor = anchor[entries]
        self._known: dict[bytes, Any] = {}

    def __call__(self, point: NDArray[np.float64]) -> Any:
        """Value at a point, shape (d,)."""
        key = point[self._given].tobytes()
        if key in self._known:
            value = self._known.pop(key)
        else:
            there = point.copy()
            there[self._entries] = self._anchor
            value = self._function(there)
            if len(self._known) >= _MOST_KEPT:
                del self._known[next(iter(self._known))]
        self._known[key] = value  # those that were used last are kept
        return value
