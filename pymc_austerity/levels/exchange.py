"""Moves that change no predictor of any row, such as an intercept up and all levels down."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels.decide import Moved
from pymc_austerity.levels.posterior import GroupedPosterior
from pymc_austerity.proposals.adaptation import ScaleSearch

__all__ = ["Exchange"]

_STEPS = 5
_TARGET = 0.4
"""Steps of a move, and the share of them to accept."""


@dataclass(frozen=True, eq=False)
class Exchange:
    """Directions along which the predictors of all rows do not change.

    If rows read the sum of an intercept and a level, the intercept can rise and all levels of
    the factor fall. Only priors determine the posterior along such a direction.

    Attributes
    ----------
    directions : float array, shape (k, d)
        In units of the spread that the priors allow at the anchor.
    """

    directions: NDArray[np.float64]

    def moves(self, entries: NDArray[np.int64]) -> bool:
        """Whether each of these entries changes along some direction."""
        return bool(self.directions[:, entries].any(axis=0).all())

    def move(
        self,
        posterior: GroupedPosterior,
        theta: NDArray[np.float64],
        search: ScaleSearch,
        rng: np.random.Generator,
        *,
        tuning: bool,
    ) -> tuple[Moved, ScaleSearch]:
        """A few steps of a random walk, decided by the priors alone, without reading rows."""
        k, n_accepted = len(self.directions), 0
        for _ in range(_STEPS):
            step = search.scale / math.sqrt(k) * rng.standard_normal(k)
            proposed = theta + step @ self.directions
            accept = -rng.standard_exponential() < posterior.exact_part(proposed, theta)
            theta = proposed if accept else theta
            n_accepted += accept
            search = search.step(accept, _TARGET) if tuning else search
        return Moved(theta, n_accepted / _STEPS, 0), search
