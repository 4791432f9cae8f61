"""Plans for the rows of decisions, and what they are made of."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import Anchor
from pymc_austerity.deciding.poisson import PoissonSampling
from pymc_austerity.deciding.sampling import RowFunction, Sampling
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.errors import SettingError
from pymc_austerity.proposals import GaussianApproximation
from pymc_austerity.rows import RowSource, StoredRows
from pymc_austerity.setup.checked_bounds import NotExactError
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.row_functions import Residuals
from pymc_austerity.setup.setup_progress import Say
from pymc_austerity.setup.surrogate import SurrogatePosterior

_PILOT_PAIRS = 8


class Plan(NamedTuple):
    """How decisions get their rows: a `PosteriorRatio` without the row-free part."""

    row_function: RowFunction
    source: RowSource
    sampling: Sampling | PoissonSampling
    anchor: Anchor | None
    details: tuple[str, ...]
    compiled_as: str
    modes: tuple[GaussianApproximation, ...]
    surrogate: SurrogatePosterior | None = None
    n_kept: int = 0


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


ANYTHING = May()


class About(NamedTuple):
    """Parts of a plan: rows, expanded about an anchor, and a description of the anchor.

    The normal approximation has the mean of the posterior. The difference of the row-free part is
    there where the package chooses proposals. `pairs` are points of a chain on the surrogate, and
    `kept` the numbers of rows that it knows as they are.
    """

    residuals: Residuals
    anchor: Anchor
    approximation: GaussianApproximation
    surrogate: SurrogatePosterior | None
    where: str
    problem: Problem
    settings: Settings
    say: Say
    row_free_difference: Callable[..., Any] | None = None
    may: May = ANYTHING
    pairs: list[tuple[NDArray, NDArray]] | None = None
    kept: NDArray[np.intp] | None = None

    def plan(
        self,
        function: RowFunction,
        source: RowSource,
        sampling: Sampling | PoissonSampling,
        *details: str,
    ) -> Plan:
        """The plan for rows that are stored and sampled in some way."""
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
            details += (
                f"The {n_kept:,} rows with the most influence are evaluated as they are, at every "
                "decision and by proposals, because the posterior is far from normal.",
            )
        as_what, modes = self.residuals.compiled_as, (self.approximation,)
        known = self.surrogate, n_kept
        return Plan(function, source, sampling, self.anchor, details, as_what, modes, *known)

    def pilot_pairs(self, most: int = _PILOT_PAIRS) -> list[tuple[NDArray, NDArray]]:
        """Pairs of points of the surrogate, or else so many of the normal approximation."""
        if self.pairs is not None:
            return self.pairs
        anchor, rng, dtype = self.anchor, self.problem.prepared.rng, self.problem.start.dtype
        return [
            (anchor.draw(rng).astype(dtype), anchor.draw(rng).astype(dtype)) for _ in range(most)
        ]


def not_exact(plan: Plan, reason: str) -> Plan:
    """The plan of a sequential test, with the reason why decisions are not exact."""
    return plan._replace(details=(*plan.details, f"No exact decisions because {reason}."))


def not_possible(settings: Settings, reason: NotExactError) -> SettingError:
    """The error where the user requests exact decisions that are not possible."""
    return SettingError(
        f"{settings.who_decides_exactly} is not possible because {reason}: use AusterityMH(), "
        "which uses a sequential test there."
    )


def refuse_too_few_for_strata(settings: Settings) -> None:
    """Raise SettingError where the user requests strata and a first look too small for them."""
    if settings.sampling == "strata":
        raise SettingError(
            f"sampling='strata' is not possible with batch_size={settings.batch_size}, too few "
            "rows for strata: choose a larger batch_size, or leave one of them out."
        )
