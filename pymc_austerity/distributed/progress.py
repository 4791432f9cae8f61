"""PyMC's progress bar for chains that report from time to time."""

import logging
import pickle
from typing import Any

from pymc_austerity.distributed.chain import Draws

__all__ = ["ChainProgress"]

_log = logging.getLogger("pymc.austerity")


class ChainProgress:
    """PyMC's progress bar.

    Parameters
    ----------
    bar : MCMCProgressBarManager
    tune, n_chains : int
    """

    def __init__(self, bar: Any, tune: int, n_chains: int) -> None:
        self._bar, self._tune = bar, tune
        self._shown = [0] * n_chains
        self._heard = [0] * n_chains

    def heard(self, beat: dict[str, Any]) -> None:
        """Show what a chain says; one that has begun again waits until it is as far as it was."""
        chain, n_draws = beat["chain"], beat["n_draws"]
        if n_draws < self._heard[chain]:
            _log.info("Chain %s begins again: the worker that ran it is gone.", chain)
        self._heard[chain] = n_draws
        self._show(chain, n_draws, pickle.loads(beat["statistics"]))

    def ended(self, chain: int, draws: Draws) -> None:
        """Show all draws of a chain."""
        if draws.statistics:
            last = draws.statistics[-1]
            self._show(chain, len(draws.statistics), last)
            self._bar.update(
                chain_idx=chain,
                is_last=True,
                draw=len(draws.statistics) - 1,
                tuning=False,
                stats=last,
            )

    def _show(self, chain: int, n_draws: int, statistics: list[dict[str, Any]]) -> None:
        for draw in range(self._shown[chain], n_draws):
            self._bar.update(
                chain_idx=chain,
                is_last=False,
                draw=draw,
                tuning=draw < self._tune,
                stats=statistics,
            )
        self._shown[chain] = max(n_draws, self._shown[chain])
