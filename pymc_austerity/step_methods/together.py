"""Transitions of a chain whose proposals do not depend on where it is, evaluated many at once."""

import math

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import STATISTICS, Transitions
from pymc_austerity.deciding.sampling import AT_ONCE, AllRowsTogether
from pymc_austerity.proposals import CrankNicolsonProposal, Proposal
from pymc_austerity.sequential import log_uniform
from pymc_austerity.setup.target import Target

_SIZE_OF_MOVES = CrankNicolsonProposal().b
_USUAL = {"n_looks": 1.0, "standardized_mean": math.nan}


def is_independent(target: Target, proposal: Proposal) -> bool:
    """Whether proposals are independent draws that decisions evaluate together."""
    is_for_all = isinstance(target.sampling, AllRowsTogether)
    return is_for_all and proposal == CrankNicolsonProposal(_SIZE_OF_MOVES)


class IndependentChain:
    r"""Makes transitions of an independence sampler; each decision uses all rows.

    .. math:: \log u < \log w(\theta') - \log w(\theta), \qquad
        \log w(\theta) = \log p(\theta | x) - \log N(\theta; m, R R')

    Random numbers are used in the same order as by one decision after the other.

    Parameters
    ----------
    target : Target
        With `AllRowsTogether` as its sampling.
    audit : float
        Share of decisions that are recorded as checked.

    Attributes
    ----------
    at_once : int
        Transitions that are best made in one call.
    sizes : float array, shape (1,)
        Size of the moves.
    """

    at_once = AT_ONCE

    def __init__(self, target: Target, audit: float) -> None:
        assert isinstance(target.sampling, AllRowsTogether) and target.approximation is not None
        self._target, self._totals = target, target.sampling.totals
        self._normal, self._audit = target.approximation, audit
        self._known: dict[bytes, float] = {}
        self.sizes = np.array([_SIZE_OF_MOVES])

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
            Fewer where the prior excludes a proposal: the next one is for Python to reject.
        """
        size = start.size
        proposed = np.empty((n_transitions, size), dtype=start.dtype)
        log_thresholds = np.empty(n_transitions)
        for t in range(n_transitions):  # a product of matrices would round as their shapes have it
            proposed[t] = self._normal.mean + self._normal.root.dot(rng.standard_normal(size))
            log_thresholds[t] = log_uniform(rng)
        log_weights = self._log_weights(np.vstack([start[None], proposed]))
        excluded = np.flatnonzero(np.isneginf(log_weights[1:]))
        n_made = int(excluded[0]) if excluded.size else n_transitions
        points = np.empty((n_made, size))
        statistics = np.zeros((n_made, len(STATISTICS)))
        current, here = start, log_weights[0]
        for t in range(n_made):
            if log_weights[1 + t] - here > log_thresholds[t]:
                current, here = proposed[t], log_weights[1 + t]
                statistics[t, STATISTICS.index("accepted")] = 1.0
            points[t] = current
            if self._audit > 0.0 and audits.random() < self._audit:
                statistics[t, STATISTICS.index("audited")] = 1.0
        statistics[:, STATISTICS.index("n_rows_used")] = self._target.n_rows
        for name, value in _USUAL.items():
            statistics[:, STATISTICS.index(name)] = value
        return Transitions(points, statistics)

    def _log_weights(self, points: NDArray) -> NDArray[np.float64]:
        """At points, nats; NaN where a row excludes one, minus infinity where the prior does.

        They are kept until the next call, which may be for some of the same points.
        """
        keys = [point.tobytes() for point in points]
        new = [k for k, key in enumerate(keys) if key not in self._known]
        if new:
            found = self._computed(points[new])
            self._known = {key: self._known[key] for key in keys if key in self._known}
            self._known |= {keys[k]: float(value) for k, value in zip(new, found, strict=True)}
        return np.array([self._known[key] for key in keys])

    def _computed(self, points: NDArray) -> NDArray[np.float64]:
        start = self._target.start
        exact = np.array([self._target.row_free_part(point, start) for point in points])
        exact = np.where(np.isfinite(exact), exact, -np.inf)
        return exact + self._totals(points) - self._normal.log_densities(points)
