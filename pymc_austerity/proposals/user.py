"""A user's own function as a proposal."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.errors import SettingTypeError
from pymc_austerity.proposals.gaussian import GaussianApproximation
from pymc_austerity.proposals.layout import Layout
from pymc_austerity.proposals.protocols import Outcome, ProposalFunction

__all__ = ["UserProposal"]


@dataclass(frozen=True)
class UserProposal:
    """A function ``(point, rng) -> (new point, log-ratio)`` behind the contract of a proposal.

    Parameters
    ----------
    function : callable
        See `ProposalFunction`. It has to be picklable for chains in several processes.
    """

    function: ProposalFunction

    def init(self, layout: Layout, approximation: GaussianApproximation | None = None) -> None:
        """No state."""
        return None

    def propose(
        self, state: None, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float]:
        """What the function returns, checked."""
        new, log_ratio = self.function(point.copy(), rng)
        new = np.asarray(new)
        if new.shape != point.shape:
            raise SettingTypeError(
                f"the proposal returned a point of shape {new.shape} for one of shape "
                f"{point.shape}: return an array of the same shape."
            )
        return new.astype(point.dtype, copy=False), float(log_ratio)

    def tune(self, state: None, outcome: Outcome) -> None:
        """Nothing to learn."""
        return None

    def freeze(self, state: None) -> None:
        """Nothing to freeze."""
        return None

    def current_scaling(self, state: None) -> float:
        """Unknown."""
        return math.nan
