"""The one frozen target of a step method, and what it is made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import Anchor
from pymc_austerity.deciding.exact import PoissonSampling
from pymc_austerity.deciding.sampling import RowFunction, Sampling
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.proposals import GaussianApproximation, Layout
from pymc_austerity.rows import RowSource, StoredRows, blocks_of
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.row_functions import Residuals
from pymc_austerity.setup.setup_progress import Say
from pymc_austerity.setup.surrogate import SurrogatePosterior

_PILOT_PAIRS = 8


@dataclass(frozen=True, eq=False)
class Target:
    """The posterior for a step method; it never changes.

    A log-ratio has a row-free part, an expansion, and rows to sample.

    Attributes
    ----------
    layout : Layout
        Kinds of the entries of a point.
    start : array, shape (d,)
        The raveled point at which the model was verified.
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
    approximation : GaussianApproximation or None
        Normal approximation of the posterior; None where no mode is known.
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

    layout: Layout
    start: NDArray
    row_free_difference: Callable[..., Any]
    row_function: RowFunction
    source: RowSource
    sampling: Sampling | PoissonSampling
    anchor: Anchor | None
    details: tuple[str, ...]
    compiled_as: str
    modes: tuple[GaussianApproximation, ...] = ()
    approximation: GaussianApproximation | None = None
    surrogate: SurrogatePosterior | None = None
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


class NoPlan(NamedTuple):
    """Why there are no control variates, and a remedy, as clauses; also the modes found."""

    reason: str
    remedy: str = ""
    modes: tuple[GaussianApproximation, ...] = ()


class May(NamedTuple):
    """What a plan may do.

    Attributes
    ----------
    keep_rows : bool
        Know influential rows as they are.
    decide_together : bool
        Evaluate proposals on all rows before the chain is where they are decided.
    """

    keep_rows: bool = True
    decide_together: bool = True


ANYTHING, NOTHING = May(), May(keep_rows=False, decide_together=False)


class About(NamedTuple):
    """Parts of a plan: rows, expanded about an anchor, and a description of the anchor.

    The normal approximation has the mean of the posterior. `pairs` are points of a chain on the
    surrogate, and `kept` the numbers of rows that it knows as they are; `n_standing` rows stand for
    all in it.
    """

    residuals: Residuals
    anchor: Anchor
    approximation: GaussianApproximation
    surrogate: SurrogatePosterior | None
    where: str
    problem: Problem
    settings: Settings
    say: Say
    may: May
    pairs: list[tuple[NDArray, NDArray]] | None = None
    kept: NDArray[np.intp] | None = None
    n_standing: int = 0

    def target(
        self,
        function: RowFunction,
        source: RowSource,
        sampling: Sampling | PoissonSampling,
        *details: str,
    ) -> Target:
        """The target for rows that are stored and sampled in some way."""
        details = (
            f"Control variates of order {self.anchor.order} about {self.where}.",
            *details,
        )
        if (rows := self.problem.prepared.from_sources) and isinstance(source, StoredRows):
            details += (
                "The rows were stored on this machine in sampling order "
                f"({source.n_bytes / 1e9:,.2g} GB), in {rows.n_passes} passes over all of them.",
            )
        n_kept = 0 if self.kept is None else self.kept.size
        if n_kept:
            which, reason = "with the most influence", "the posterior is far from normal"
            if not self.anchor.is_smooth:
                which, reason = "with a kink near the mode", "draws may cross the kink"
            details += (
                f"The {n_kept:,} rows {which} are evaluated as they are, at every decision and by "
                f"proposals, because {reason}.",
            )
        normal, surrogate = self.approximation, self.surrogate
        n_known = n_kept + self.n_standing
        known = surrogate if surrogate is not None and n_known else self.problem
        if self.n_standing:
            details += (
                f"{self.n_standing} rows with weights stand for all, and rows are sampled for what "
                "these do not tell, because the posterior is far from normal.",
            )
        return Target(
            self.problem.layout,
            self.problem.start,
            known.row_free_difference,
            function,
            source,
            sampling,
            self.anchor,
            details,
            self.residuals.compiled_as,
            (normal,),
            normal,
            self.surrogate,
            n_kept,
        )

    def pilot_pairs(self, most: int = _PILOT_PAIRS) -> list[tuple[NDArray, NDArray]]:
        """Pairs of points of the surrogate, or else so many of the normal approximation."""
        if self.pairs is not None:
            return self.pairs
        anchor, rng, dtype = self.anchor, self.problem.prepared.rng, self.problem.start.dtype
        return [
            (anchor.draw(rng).astype(dtype), anchor.draw(rng).astype(dtype)) for _ in range(most)
        ]
