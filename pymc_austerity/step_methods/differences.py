"""Rows drawn for one decision, turned into log-likelihood differences."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.rows import RowDraw, RowStream

__all__ = ["RowDifferences"]

RowFunction = Callable[..., NDArray]
"""``f(proposed, current, *block)``: float64 array, shape (rows in the block,), nats."""


@dataclass(frozen=True)
class RowDifferences:
    """Where the sequential test gets its numbers from.

    Parameters
    ----------
    function : callable
        Compiled row differences.
    draw : RowDraw
        Way of sampling rows.
    """

    function: RowFunction
    draw: RowDraw

    def begin(
        self, proposed: NDArray, current: NDArray, rng: np.random.Generator
    ) -> "_DifferenceStream":
        """Start the differences between two points on a new sample of rows."""
        return _DifferenceStream(self.function, proposed, current, self.draw.begin(rng))


class _DifferenceStream:
    __slots__ = ("current", "function", "proposed", "rows")

    def __init__(
        self, function: RowFunction, proposed: NDArray, current: NDArray, rows: RowStream
    ) -> None:
        self.function = function
        self.proposed = proposed
        self.current = current
        self.rows = rows

    def read(self, n_rows: int) -> Iterator[NDArray]:
        for block in self.rows.read(n_rows):
            yield self.function(self.proposed, self.current, *block)
