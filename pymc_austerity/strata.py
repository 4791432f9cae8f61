"""Strata: stretches of stored rows that are sampled separately."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Strata:
    """Sizes of the strata, and the number of rows that a decision first reads from each.

    Parameters
    ----------
    sizes : int array, shape (H,)
        Number of rows in each stratum, in storage order, :math:`N_h`.
    first_counts : int array, shape (H,)
        Number of rows of each that the first look reads: at least two, or all (a take-all stratum).

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.strata import Strata
    >>> strata = Strata(np.array([10, 990]), np.array([10, 90]))
    >>> strata.n_rows, strata.n_first, strata.offsets.tolist()
    (1000, 100, [0, 10])
    """

    sizes: NDArray[np.int64]
    first_counts: NDArray[np.int64]

    @classmethod
    def single(cls, n_rows: int, batch_size: int) -> "Strata":
        """One stratum: uniform samples."""
        return cls(np.array([n_rows]), np.array([batch_size]))

    def with_first_look(self, n_rows: int) -> "Strata":
        """The same strata with a first look of `n_rows` rows or more, at most all of them.

        As many times as many rows of each stratum, a power of two; small strata are read
        completely first.
        """
        counts = self.first_counts
        while counts.sum() < min(n_rows, self.n_rows):
            counts = np.minimum(2 * counts, self.sizes)
        return Strata(self.sizes, counts)

    @cached_property
    def n_rows(self) -> int:
        """Number of rows in all strata."""
        return int(self.sizes.sum())

    @cached_property
    def n_first(self) -> int:
        """Number of rows of the first look."""
        return int(self.first_counts.sum())

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Position of the first row of each stratum, shape (H,)."""
        return np.cumsum(self.sizes) - self.sizes
