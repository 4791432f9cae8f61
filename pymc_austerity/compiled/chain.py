"""Transitions of one chain, made in compiled code and handed to Python as arrays."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled.block import CompiledPosterior, transitions
from pymc_austerity.compiled.calls import addressed
from pymc_austerity.compiled.decision import STATISTICS, SequentialDecisions
from pymc_austerity.compiled.exact import ExactDecisions
from pymc_austerity.compiled.proposals import CompiledProposals
from pymc_austerity.compiled.trajectories import (
    CompiledTrajectories,
    transitions_by_trajectories,
)


@dataclass(frozen=True, eq=False)
class CompiledTarget:
    """What compiled code knows of a posterior, and how it decides.

    Attributes
    ----------
    posterior : CompiledPosterior or None
        None where only trajectories know it.
    decisions : SequentialDecisions or ExactDecisions
    refuse_unread : callable
        Raises an error if rows could not be read.
    alive : tuple
        What has to live as long as the addresses in the others are in use.
    """

    posterior: CompiledPosterior | None
    decisions: SequentialDecisions | ExactDecisions
    refuse_unread: Callable[[], None]
    alive: tuple[Any, ...]


class Transitions(NamedTuple):
    """A block of transitions.

    Attributes
    ----------
    points : float array, shape (n, d)
        Where the chain is after each.
    statistics : float array, shape (n, 8)
        What each took: see `pymc_austerity.compiled.decision.STATISTICS`.
    """

    points: NDArray[np.float64]
    statistics: NDArray[np.float64]


class CompiledChain:
    """Makes transitions that do not change what follows: proposal and test are frozen.

    Parameters
    ----------
    target : CompiledTarget
    proposals : CompiledProposals or CompiledTrajectories

    Attributes
    ----------
    proposals : CompiledProposals or CompiledTrajectories
    at_once : int
        Transitions that the first call should make.
    """

    at_once = 1

    def __init__(
        self, target: CompiledTarget, proposals: CompiledProposals | CompiledTrajectories
    ) -> None:
        self._target = target
        self.proposals = proposals
        self._decisions = addressed(target.decisions)
        self._known: tuple[Any, ...] = ()
        if not isinstance(proposals, CompiledTrajectories):
            self._known = addressed(proposals), addressed(target.posterior), self._decisions
        self._work = np.zeros((3, proposals.size))

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Size of the moves of each component."""
        return self.proposals.sizes

    def make(
        self,
        n_transitions: int,
        start: NDArray,
        rng: np.random.Generator,
        audits: np.random.Generator,
    ) -> Transitions:
        """Make transitions from a point.

        Parameters
        ----------
        n_transitions : int
        start : array, shape (d,)
        rng, audits : numpy.random.Generator
            Of the chain, and of what is checked.

        Returns
        -------
        Transitions
            Fewer where a row changes by more than its bound: the next one is for Python to refuse.

        Raises
        ------
        StorageError
            Rows could not be read.
        """
        self._work[0] = start
        made = Transitions(
            np.empty((n_transitions, start.size)), np.empty((n_transitions, len(STATISTICS)))
        )
        if isinstance(self.proposals, CompiledTrajectories):
            where = self._work[0], rng, audits
            n_made = transitions_by_trajectories(self.proposals, self._decisions, *where, *made)
        else:
            points, statistics = (array.ctypes.data for array in made)
            n_made = transitions(
                *self._known, self._work.ctypes.data, rng, audits, n_transitions, points, statistics
            )
        self._target.refuse_unread()
        return Transitions(made.points[:n_made], made.statistics[:n_made])
