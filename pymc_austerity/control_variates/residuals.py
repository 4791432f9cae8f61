"""Row differences minus their Taylor expansion, called like plain row differences."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ResidualFunction"]


@dataclass(frozen=True, eq=False)
class ResidualFunction:
    """Wrapper that gives a compiled residual function its anchor.

    Parameters
    ----------
    function : callable
        ``f(proposed, current, anchor, *block)``; see `pymc_austerity.model.compile_residuals`.
    anchor : float array, shape (d,)
        Point of the expansion.
    """

    function: Callable[..., NDArray]
    anchor: NDArray

    def __call__(self, proposed: NDArray, current: NDArray, *block: NDArray) -> NDArray[np.float64]:
        """Residuals of the rows in the block, float64 array, shape (rows,), nats."""
        return self.function(proposed, current, self.anchor, *block)
