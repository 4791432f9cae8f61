"""Rows that are already in memory."""

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import DataError
from pymc_austerity.sources.checks import (
    checked_indices,
    checked_range,
    native_dtype,
    refuse_no_rows,
)

__all__ = ["ArraySource"]


class ArraySource:
    """Rows of an array, which are part of the pickled source.

    Parameters
    ----------
    array : array, shape (n_rows, ...)
        The array, which is not copied.
    what : str
        Name for messages.

    Examples
    --------
    >>> import numpy as np
    >>> source = ArraySource(np.arange(6.0).reshape(3, 2), "data['x']")
    >>> source.n_rows, source.row_shape
    (3, (2,))
    >>> source.take(np.array([2, 0]))
    array([[4., 5.],
           [0., 1.]])
    """

    block_length = None
    reads_any_row = True

    def __init__(self, array: NDArray, what: str) -> None:
        if isinstance(array, np.ma.MaskedArray):
            raise DataError(
                f"{what} is a masked array, and rows have no missing values: drop them, and give "
                "the array of the others."
            )
        self.dtype = native_dtype(what, array.dtype)
        refuse_no_rows(what, array.shape)
        self.n_rows = int(array.shape[0])
        self.row_shape = tuple(array.shape[1:])
        self._array = array

    def read(self, start: int, stop: int) -> NDArray:
        """Rows ``start`` to ``stop``."""
        checked_range(start, stop, self.n_rows)
        return np.array(self._array[start:stop], dtype=self.dtype, order="C", subok=False)

    def take(self, indices: NDArray[np.intp]) -> NDArray:
        """Rows at the given positions."""
        # any mode but the default writes straight into the result, twice as fast
        taken = self._array.take(checked_indices(indices, self.n_rows), 0, mode="clip")
        return np.require(np.asarray(taken), self.dtype, ["C", "W"])

    def refuse_if_changed(self) -> None:
        """Nothing to check for an array in memory."""

    def close(self) -> None:
        """Nothing to release."""
