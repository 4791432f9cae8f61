"""Residuals of the rows of levels, for compiled code."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from pymc_austerity.levels import ResidualsByAddress
from pymc_austerity.model import Kernel
from pymc_austerity.rows import SharedRows
from pymc_austerity.setup.compiled_target import places_of, table_of

__all__ = ["KernelOnRows"]


@dataclass(frozen=True, eq=False)
class KernelOnRows:
    """A kernel, and the stored rows that it reads.

    Attributes
    ----------
    kernel : Kernel
    source : SharedRows
        Addresses are valid as long as the source is open.
    """

    kernel: Kernel
    source: SharedRows

    def __call__(self, proposed: NDArray, current: NDArray) -> ResidualsByAddress:
        """Between two points, float arrays of shape (d,)."""
        kernel, (function, starts, table, places) = self.kernel, self._addresses
        new, old = kernel.ordered(proposed), kernel.ordered(current)
        return ResidualsByAddress(new, old, function, starts, table.ctypes.data, places)

    @cached_property
    def _addresses(self) -> tuple[int, int, NDArray, NDArray]:
        arrays, kernel = self.source.window(0, self.source.n_rows), self.kernel
        return kernel.address, kernel.starts.ctypes.data, table_of(arrays), places_of(arrays)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but addresses."""
        return {"kernel": self.kernel, "source": self.source}
