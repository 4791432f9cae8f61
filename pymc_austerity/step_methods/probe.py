"""Short chains at the end of set-up: do they move, and do they forget where they began?"""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.diagnostics.convergence import effective_draws, r_hat_of_entries
from pymc_austerity.step_methods.interrupts import restore_interrupts

_N_CHAINS = 4
_FIRST_STEPS = 3
"""Steps that compile what is left to compile, before time counts."""
FEWEST_STEPS = 40
"""With fewer steps of a chain, nothing is known but the time of a step."""
_PATIENCE = 10
"""Times the given time in which a chain must have made these."""
_FEWEST_MOVES = 3
"""Points that a chain visits in its second half, at least."""
_LARGEST_R_HAT = 2.0
"""Chains that differ by more have not forgotten where they began: 200 steps with ten effective
draws each give less in the worst of 1,000 entries."""
IN_TAILS = 0.005
"""Share of the entries of a variable that may differ by more."""
_FEWEST_EFFECTIVE = 20
"""Effective draws of all chains: of so few draws, five are the fewest that can be seen."""
_MOST_ENTRIES = 2_000
_SEED = 20_140_622


class Probe(NamedTuple):
    """What short chains showed.

    Attributes
    ----------
    wrong : str
        Why the step method should not be used, as a clause; empty if there is no reason.
    seconds_per_effective_draw : float
        Of the entry that mixes worst; that of a step where too little was seen.
    share_effective : float
        Effective draws of a draw; NaN where too little was seen.
    share_of_rows : float
        Rows that a step reads, as a share of all, on average.
    n_steps : int
        Of the shortest chain.
    """

    wrong: str
    seconds_per_effective_draw: float
    share_effective: float
    share_of_rows: float = 0.0
    n_steps: int = 0

    @property
    def is_vague(self) -> bool:
        """Whether chains may mix worse than they show: few of their draws were effective."""
        return self.share_effective * _N_CHAINS * (self.n_steps // 2) < _FEWEST_EFFECTIVE

    @property
    def seconds_per_step(self) -> float:
        """Processor time; NaN where chains showed that the step method should not be used."""
        known = not np.isnan(self.share_effective)
        return self.seconds_per_effective_draw * (self.share_effective if known else 1.0)

    @property
    def seconds(self) -> float:
        """Processor time of the chains."""
        return self.seconds_per_step * _N_CHAINS * self.n_steps


NOTHING_KNOWN = Probe("", np.nan, np.nan)


def probe(step: Any, point: dict[str, NDArray], most_seconds: float, n_steps: int) -> Probe:
    """Let a step method make short chains while it tunes, from dispersed starts.

    Parameters
    ----------
    step : step method
        It begins its own chains anew when ``pm.sample`` runs.
    point : dict
        The model's initial point, from which chains disperse.
    most_seconds : float
        Processor time of the chains, more where they have made few steps.
    n_steps : int
        Steps of a chain, at most.
    """
    names = [variable.name for variable in step.vars]
    first, *others = np.random.default_rng(_SEED).spawn(1 + _N_CHAINS)
    try:
        list(_chain(step, point, names, first, np.inf, _FIRST_STEPS))
        started = time.process_time()
        seconds = most_seconds / _N_CHAINS
        chains = [list(_chain(step, point, names, rng, seconds, n_steps)) for rng in others]
    finally:  # as if no chain had begun
        step.reset_tuning()
        restore_interrupts()
    per_step = (time.process_time() - started) / sum(map(len, chains))
    n_made = min(map(len, chains))
    cost = float(np.mean([share for chain in chains for _, share in chain])), n_made
    n_kept = n_made // 2
    if n_kept < FEWEST_STEPS // 2:
        return Probe("", per_step, np.nan, *cost)
    kept = np.stack([[place for place, _ in chain[-n_kept:]] for chain in chains])
    n_points = min(len(np.unique(chain, axis=0)) for chain in kept)
    if n_points < _FEWEST_MOVES:
        return Probe("short chains from dispersed starts did not move", np.inf, 0.0, *cost)
    ends = np.cumsum([_seen(point[name]).size for name in names])[:-1]
    if any(_worst(own) > _LARGEST_R_HAT for own in np.split(r_hat_of_entries(kept), ends)):
        return Probe("short chains did not forget where they began", np.inf, 0.0, *cost)
    n_effective = min(effective_draws(own, IN_TAILS) for own in np.split(kept, ends, axis=2))
    share = n_effective / kept[..., 0].size
    return Probe("", per_step / share, share, *cost)


def _seen(value: NDArray) -> NDArray:
    """Entries of a variable that are looked at, evenly spread where there are many."""
    entries = np.ravel(value)
    return entries[:: -(-entries.size // _MOST_ENTRIES) or 1]


def _worst(r_hat: NDArray[np.float64]) -> float:
    """Of a variable; a few of many levels may stay in a tail for some steps."""
    return float(np.quantile(r_hat, 1.0 - IN_TAILS, method="higher"))


def _chain(
    step: Any,
    point: dict[str, NDArray],
    names: list[str],
    rng: np.random.Generator,
    seconds: float,
    n_steps: int,
) -> Iterator[tuple[NDArray[np.float64], float]]:
    """Where each step leads, and the share of the rows that it reads."""
    step.set_rng(rng)
    current = dict(point)
    started = time.process_time()
    for n_made in range(1, n_steps + 1):
        current, statistics = step.step(current)
        place = np.concatenate([_seen(current[name]) for name in names])
        yield place, sum(stats["data_fraction"] for stats in statistics)
        spent = time.process_time() - started
        if spent > (seconds if n_made >= FEWEST_STEPS else _PATIENCE * seconds):
            return
