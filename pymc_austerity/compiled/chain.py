"""Transitions of one chain, made in compiled code and handed to Python as arrays."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled.block import CompiledPosterior, transitions
from pymc_austerity.compiled.decision import STATISTICS, CompiledTest
from pymc_austerity.compiled.proposals import CompiledProposals
from pymc_austerity.compiled.survey import CompiledRows, new_survey
from pymc_austerity.strata import Strata

__all__ = ["CompiledChain", "CompiledTarget", "Transitions"]


@dataclass(frozen=True, eq=False)
class CompiledTarget:
    """What compiled code knows of a posterior.

    Attributes
    ----------
    posterior : CompiledPosterior
    rows : CompiledRows
    strata : Strata
    alive : tuple
        What has to live as long as the addresses in the others are in use.
    """

    posterior: CompiledPosterior
    rows: CompiledRows
    strata: Strata
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
    proposals : CompiledProposals
    test : CompiledTest

    Attributes
    ----------
    proposals : CompiledProposals
    """

    def __init__(
        self, target: CompiledTarget, proposals: CompiledProposals, test: CompiledTest
    ) -> None:
        self._target = target
        self.proposals = proposals
        self._fixed = (proposals, target.posterior, target.rows, test)
        self._survey = new_survey(target.strata, target.rows.entries.size)
        self._work = np.zeros((3, proposals.mean.size))

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
        """
        self._work[0] = start
        made = Transitions(
            np.empty((n_transitions, start.size)), np.empty((n_transitions, len(STATISTICS)))
        )
        transitions(*self._fixed, self._survey, self._work, rng, audits, *made)
        return made
