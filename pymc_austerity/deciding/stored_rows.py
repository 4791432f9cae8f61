"""Residuals of rows by their positions in storage, and errors that name a row above its bound."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.sampling import RowFunction
from pymc_austerity.exact import BoundViolatedError
from pymc_austerity.rows import LARGEST_BLOCK, RowSource


class RowBoundError(ArithmeticError):
    """A row changed by more than its bound, so that decisions would not be exact."""


@dataclass(frozen=True)
class StoredResiduals:
    """Residuals of rows by their positions in storage.

    Attributes
    ----------
    function : callable
        Residuals of a block of rows between two points, nats.
    source : RowSource
    """

    function: RowFunction
    source: RowSource

    def __call__(
        self, proposed: NDArray, current: NDArray, rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Residuals between two points, shape (n,), nats."""
        if not rows.size:
            return np.empty(0)
        if rows.size <= LARGEST_BLOCK:
            return self.function(proposed, current, *self.source.take(rows))
        starts = range(0, rows.size, LARGEST_BLOCK)
        parts = (self.source.take(rows[k : k + LARGEST_BLOCK]) for k in starts)
        return np.concatenate([self.function(proposed, current, *part) for part in parts])


@contextmanager
def rows_named(numbers: RowSource) -> Iterator[None]:
    """Name rows by their numbers in the user's data where they violate a bound.

    Parameters
    ----------
    numbers : RowSource
        Of the rows in the order of storage: one array.

    Raises
    ------
    RowBoundError
        In place of a `BoundViolatedError`.
    """
    try:
        yield
    except BoundViolatedError as error:
        (number,) = numbers.take(np.array([error.row]))
        raise RowBoundError(
            f"row {number[0]} of the data changed by {error.residual:.3g} nats between two "
            f"points, more than its bound of {error.bound:.3g}, so that decisions are not "
            "exact: use AusterityMH(epsilon=0.05) for a sequential test."
        ) from None
