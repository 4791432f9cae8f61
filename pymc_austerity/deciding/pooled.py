"""Exact decisions of a chain that has a part of a pool of rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.exact import AnyLogRatio, ExactDecider, ExactState
from pymc_austerity.deciding.pool import SETUP, PooledSampling
from pymc_austerity.deciding.pool_draws import PoolDraws
from pymc_austerity.deciding.settings import Settings
from pymc_austerity.exact import ExactDecision
from pymc_austerity.exact.inflation import Inflation

__all__ = ["PoolDecider", "PoolState", "chain_number"]


@dataclass
class PoolState(ExactState):
    """What changes while a chain runs.

    Attributes
    ----------
    draws : PoolDraws or None
        What was used of the pool.
    """

    draws: PoolDraws | None = None


class PoolDecider(ExactDecider):
    """Exact decisions from rows that were drawn before the chains.

    Parameters
    ----------
    settings, target
        As for `ExactDecider`.
    sampling : PooledSampling
        That of the target.
    """

    state: PoolState

    def __init__(self, settings: Settings, target: AnyLogRatio, sampling: PooledSampling) -> None:
        super().__init__(settings, target, sampling)

    def begin_chain(self, rng: np.random.Generator) -> None:
        """Take the part of the pool that has the number of the chain."""
        assert isinstance(self.sampling, PooledSampling)
        self.state.draws = self.sampling.draws_of(chain_number(rng) + 1)

    @property
    def draws(self) -> PoolDraws:
        """Used draws of the pool: of the part of set-up before the first chain begins."""
        assert isinstance(self.sampling, PooledSampling)
        if self.state.draws is None:
            self.state.draws = self.sampling.draws_of(SETUP)
        return self.state.draws

    def draw_ahead(self) -> None:
        """Draw rows in the background if they will be needed; called regularly."""
        assert isinstance(self.sampling, PooledSampling)
        if self.state.draws is not None:
            self.sampling.draw_ahead(self.state.draws)

    def reset(self) -> None:
        """Forget what was learned; what was used of the pool stays so."""
        draws = self.state.draws if hasattr(self, "state") else None
        self.state = PoolState(Inflation.begin(self.sampling.inflation), draws)

    def stop_tuning(self) -> str:
        """End the tuning phase; what was chosen then, as a sentence."""
        draws = self.state.draws
        words = super().stop_tuning()
        self.state = PoolState(self.state.inflation, draws)
        return words

    def _from_rows(
        self,
        proposed: NDArray,
        current: NDArray,
        log_known: float,
        inflation: float,
        rng: np.random.Generator,
    ) -> ExactDecision:
        assert isinstance(self.sampling, PooledSampling)
        self.draw_ahead()
        return self.sampling.decide(proposed, current, log_known, inflation, rng, draws=self.draws)


def chain_number(rng: np.random.Generator) -> int:
    """The chain of a run that a generator belongs to: PyMC spawns one for each chain of a run.

    A generator that was spawned more often has a large number, which no other has.

    Examples
    --------
    >>> [chain_number(rng) for rng in np.random.default_rng(1).spawn(3)]
    [0, 1, 2]
    """
    key = getattr(rng.bit_generator.seed_seq, "spawn_key", ())
    if len(key) > 1:
        return int(np.random.SeedSequence(key).generate_state(1)[0])
    return int(key[0]) if key else 0
