"""The test for a given error, designed on decisions of the tuning phase."""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.sampling import Sampling, StratifiedSampling
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.design import (
    TestDesign,
    average_design,
    stratified_looks,
    stratified_spread,
    worst_case_design,
)
from pymc_austerity.strata import Strata

_EVERY = 2
"""One in this many decisions of the tuning phase is also computed on all rows."""

_LAST = 1.0 / 3.0
"""Last part of the tuning phase, whose decisions are most like those to come."""

_ROOM = 0.75
"""Share of the error that a design may use: the decisions that it is made on are only a sample."""

_LOOSEST = 0.05
"""Largest tail probability, unless the user asks for larger errors: a rare decision unlike those of
the tuning phase must not be made on next to no evidence."""

_FEWEST = 30
_POCOCK = (0.5,)


class TrialDecision(NamedTuple):
    """A decision on all rows.

    Attributes
    ----------
    distance : float
        Sum of the differences minus the threshold, nats.
    deviations : float array, shape (H,)
        Standard deviation of the differences within each stratum, nats.
    """

    distance: float
    deviations: NDArray[np.float64]


class TrialPlan:
    """Choice of a test: before the run for the worst case, then for decisions like the actual ones.

    Parameters
    ----------
    max_error : float
        Largest share of wrong decisions.
    n_rows : int
        Number of all rows.
    strata : Strata, optional
        Strata and their first look, which are fixed; without them, the batch size is chosen too.
    deviations : float array, shape (H,), optional
        Usual standard deviation of the differences within each stratum, nats.
    batch_size : int, optional
        The user's batch size, which is fixed.
    """

    def __init__(
        self,
        max_error: float,
        n_rows: int,
        *,
        strata: Strata | None = None,
        deviations: NDArray[np.float64] | None = None,
        batch_size: int | None = None,
    ) -> None:
        self.max_error = max_error
        self.n_rows = n_rows
        self.strata = strata
        self.deviations = np.ones(1) if deviations is None else deviations
        self.batch_size = batch_size

    def worst_case(self) -> TestDesign:
        """The cheapest test whose error is small enough for every decision."""
        if self.strata is None:
            return worst_case_design(self.n_rows, self.max_error, batch_sizes=self._sizes)
        looks = stratified_looks(self.strata, self.deviations)
        return worst_case_design(
            self.n_rows,
            self.max_error,
            looks=lambda batch_size, n_rows: looks,
            batch_sizes=self._sizes,
            alphas=_POCOCK,
        )

    def wants(self, n_decisions: int) -> bool:
        """Whether to compute a decision of the tuning phase on all rows as well."""
        return n_decisions % _EVERY == 0

    def design(self, trial: Sequence[TrialDecision]) -> TestDesign | None:
        """The cheapest test for decisions like the last of these; None if there are too few."""
        last = [decision for decision in trial if self._is_known(decision)]
        last = last[-max(_FEWEST, round(_LAST * len(last))) :]
        if len(last) < _FEWEST:
            return None
        distances = np.array([decision.distance for decision in last])
        deviations = np.array([decision.deviations for decision in last])
        spreads = self._spreads(deviations)
        cheapest = partial(
            average_design,
            distances / spreads,
            self.n_rows,
            _ROOM * self.max_error,
            batch_sizes=self._sizes,
            loosest=max(_LOOSEST, self.max_error),
        )
        if self.strata is None:
            return cheapest()
        relative = deviations / spreads[:, None]
        looks = stratified_looks(self.strata, np.sqrt(np.mean(relative**2, axis=0)))
        return cheapest(looks=lambda batch_size, n_rows: looks, alphas=_POCOCK)

    @property
    def chooses_batch_size(self) -> bool:
        """Whether the design determines the size of the first look."""
        return self._sizes is None

    def _is_known(self, decision: TrialDecision) -> bool:
        """Whether the decision needed rows, and none of them was impossible."""
        spread = float(self._spreads(decision.deviations))
        return math.isfinite(decision.distance) and 0.0 < spread < math.inf

    def _spreads(self, deviations: NDArray[np.float64]) -> NDArray[np.float64]:
        """Unit of the distances of decisions, nats."""
        if self.strata is not None:
            return stratified_spread(self.strata, deviations)
        return self.n_rows / math.sqrt(self.n_rows - 1) * deviations[..., 0]

    @property
    def _sizes(self) -> list[int] | None:
        if self.strata is not None:
            return [self.strata.n_first]
        return None if self.batch_size is None else [self.batch_size]


def trial_plan(sampling: Sampling, settings: Settings) -> TrialPlan | None:
    """Plan for choosing the test, if the user gives an error and decisions can be wrong."""
    if settings.max_error is None or sampling.is_exact:
        return None
    strata = sampling.strata
    if isinstance(sampling, StratifiedSampling):
        deviations = sampling.deviations
        return TrialPlan(settings.max_error, strata.n_rows, strata=strata, deviations=deviations)
    return TrialPlan(settings.max_error, strata.n_rows, batch_size=settings.batch_size)
