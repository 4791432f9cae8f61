"""The posterior at two points: the known part of the log-ratio, and samples of the rest."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import Anchor
from pymc_austerity.deciding.poisson import PoissonSampling
from pymc_austerity.deciding.sampling import RowFunction, Sampling
from pymc_austerity.proposals import GaussianApproximation
from pymc_austerity.rows import RowSource, blocks_of
from pymc_austerity.setup.surrogate import SurrogatePosterior


@dataclass(frozen=True, eq=False)
class PosteriorRatio:
    """Log-ratio of the posterior at two points: a row-free part, an expansion, and rows to sample.

    Attributes
    ----------
    row_free_difference : callable
        ``f(proposed, current)``: difference of the row-free part, nats.
    row_function : callable
        Differences of rows, or their residuals about the expansion.
    source : RowSource
        All rows, for passes over them.
    sampling : Sampling or PoissonSampling
        Samples of values of the row function.
    anchor : Anchor or None
        Where the row differences are expanded; None if they are not.
    details : tuple of str
        What was chosen and why, in sentences.
    compiled_as : str
        How rows are evaluated and why, as the end of a sentence.
    modes : tuple of GaussianApproximation
        The posterior about each of its modes, the best first; empty where none is known.
    surrogate : SurrogatePosterior or None
        The row-free part and the expansion, tuned for moves, where the posterior is not normal.
    n_kept : int
        Rows that are part of what is known, and not of the source.
    without : str
        Why there are no control variates, and a remedy, as a sentence; empty where there are some
        or none are requested.
    no_control_variates : str
        The reason alone, as a clause.
    """

    row_free_difference: Callable[..., Any]
    row_function: RowFunction
    source: RowSource
    sampling: Sampling | PoissonSampling
    anchor: Anchor | None
    details: tuple[str, ...]
    compiled_as: str
    modes: tuple[GaussianApproximation, ...]
    surrogate: SurrogatePosterior | None
    n_kept: int = 0
    without: str = ""
    no_control_variates: str = ""

    @property
    def n_rows(self) -> int:
        """Number of all rows."""
        return self.source.n_rows + self.n_kept

    def row_free_part(self, proposed: NDArray, current: NDArray) -> float:
        """Difference of the row-free part, nats."""
        return float(self.row_free_difference(proposed, current))

    def expansion(self, proposed: NDArray, current: NDArray) -> float:
        """Sum of the control variates of all rows, nats; 0 without any."""
        return 0.0 if self.anchor is None else self.anchor.expansion(proposed, current)

    def is_possible(self, candidate: NDArray, start: NDArray) -> bool:
        """Whether the log-density at a point is finite, as at the start; may read all rows."""
        if not np.isfinite(self.row_free_difference(candidate, start)):
            return False
        if isinstance(self.sampling, PoissonSampling) and self.sampling.is_bounded_at(candidate):
            return True
        return all(
            np.isfinite(self.row_function(candidate, start, *block)).all()
            for block in blocks_of(self.source)
        )
