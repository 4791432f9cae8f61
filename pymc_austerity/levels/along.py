"""Moves of entries together with the levels of a factor, which leave the posterior invariant."""

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels.decide import Moved, decided
from pymc_austerity.levels.exact_terms import ExactTerms, TermsByAddress
from pymc_austerity.levels.posterior import GroupedPosterior
from pymc_austerity.levels.walk import FollowingLevels, Steps, Work, walk
from pymc_austerity.proposals import RandomWalkState

__all__ = ["AlongWithLevels"]


class AlongWithLevels:
    r"""Some entries move, and the levels of a factor move along with them.

    Levels keep their standardized position in their conditional normal approximation
    :math:`N(m_g, C_g^{-T} C_g^{-1})`, which depends on the entries:
    :math:`a_g' = m_g' + C_g'^{-T} C_g^T (a_g - m_g)`. If it were exact, the decision would
    be that of the entries alone, with the levels integrated out. A level with informative rows
    hardly moves (a centered parametrization); a level with uninformative rows moves with its prior
    (a non-centered one).

    `jump` is one such move, with one decision. `move` decides without reading rows, as if their
    expansion were exact. After any number of moves of the latter kind, `decide` reads rows once,
    for the residuals between the first and the last point.

    Parameters
    ----------
    posterior : GroupedPosterior
    factor : int
        The factor whose levels move along.
    theta : float array, shape (d,)
    entries : int array
        Entries of other blocks, which move.
    tilt : float array, shape (n_entries,), optional
        Estimated gradient of the remainder of the expansion, which `move` adds to its decisions.
    inflation : float
        Factor of the bounds of rows.

    References
    ----------
    Yu, Y. and Meng, X.-L. (2011). To center or not to center: that is not the question.
    Journal of Computational and Graphical Statistics 20(3), 531-570.

    Liu, J. S. (2001). Monte Carlo Strategies in Scientific Computing, section 9.4.3 (the surrogate
    transition method). Springer.
    """

    def __init__(
        self,
        posterior: GroupedPosterior,
        factor: int,
        theta: NDArray[np.float64],
        entries: NDArray[np.int64],
        tilt: NDArray[np.float64] | None = None,
        inflation: float = 1.0,
    ) -> None:
        self.entries = entries
        self._inflation = inflation
        self._tilt = np.zeros(entries.size) if tilt is None else tilt
        self.theta = theta
        self._posterior = posterior
        self._factor = factor
        self._begun = theta
        levels = posterior.factors[factor]
        slopes, normals = posterior.level_normals(factor, theta)
        self._slopes = None if posterior.expansion.depends_on(entries) else slopes
        self._kept = normals.standard(theta[levels.entries] - levels.anchor)
        self._volume = normals.log_volume

    def led_to(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The point with new values of the entries, and the levels moved along; shape (d,)."""
        point, _, _ = self._proposed(values, 0.0)
        return point

    def jump(
        self, values: NDArray[np.float64], log_ratio: float, rng: np.random.Generator
    ) -> Moved:
        """One move with its decision; the parameters are those of `move`."""
        proposed, _, log_ratio = self._proposed(values, log_ratio)
        return self._decided(proposed, self.theta, log_ratio, rng)

    def move(self, values: NDArray[np.float64], log_ratio: float, rng: np.random.Generator) -> bool:
        """Propose values of the entries; return whether they were accepted.

        Parameters
        ----------
        values : float array
            New values of the entries.
        log_ratio : float
            Density of the proposal backwards to that forwards, in nats.
        rng : numpy.random.Generator
        """
        return self._move(values, log_ratio, -rng.standard_exponential())

    def _move(self, values: NDArray[np.float64], log_ratio: float, threshold: float) -> bool:
        log_ratio += float(self._tilt.dot(values - self.theta[self.entries]))
        proposed, volume, log_ratio = self._proposed(values, log_ratio)
        accept = bool(threshold < log_ratio)  # False if it is not a number
        if accept:
            self.theta, self._volume = proposed, volume
        return accept

    def walk(
        self,
        state: RandomWalkState,
        n_steps: int,
        rng: np.random.Generator,
    ) -> None:
        """Moves with proposals of a random walk, in compiled code if possible.

        Parameters
        ----------
        state : RandomWalkState
            State of the random walk, of real numbers.
        n_steps : int
        rng : numpy.random.Generator
        """
        h = self.entries.size
        noise, thresholds = np.empty((n_steps, h)), np.empty(n_steps)
        for step in range(n_steps):
            noise[step] = rng.standard_normal(h)
            thresholds[step] = -rng.standard_exponential()
        root = state.root if state.root.ndim == 2 else np.diag(state.root)
        moves = noise @ root.T * state.search.scale
        n_made = 0
        if (known := self._by_address()) is not None:
            theta, work = self.theta.copy(), Work.of(self.theta, *self._kept.shape)
            steps = Steps(self.entries, moves, thresholds, self._tilt)
            n_made, n_accepted, self._volume = walk(*known, steps, theta, work, self._volume)
            self.theta = theta if n_accepted else self.theta
        for step in range(n_made, n_steps):
            self._move(self.theta[self.entries] + moves[step], 0.0, thresholds[step])

    def _by_address(self) -> tuple[FollowingLevels, TermsByAddress] | None:
        """Levels and exact part for compiled code, if available."""
        levels, exact = self._posterior.factors[self._factor], self._posterior.exact_part
        prior = levels.prior.by_address
        if self._slopes is None or prior is None or not isinstance(exact, ExactTerms):
            return None
        if (address := prior.address) is None:
            return None
        its = (levels.entries, levels.anchor, levels.hessians, self._slopes, self._kept)
        return FollowingLevels(*its, address, prior.table.ctypes.data), exact.by_address

    def _proposed(
        self, values: NDArray[np.float64], log_ratio: float
    ) -> tuple[NDArray[np.float64], float, float]:
        """The point, its volume, and the log-ratio of everything but the residuals of rows."""
        its = self._posterior
        levels = its.factors[self._factor]
        proposed = self.theta.copy()
        proposed[self.entries] = values
        slopes = self._slopes
        if slopes is None:
            slopes = levels.slopes(proposed - its.anchor)
        normals = levels.normals(proposed, slopes)
        old, new = self.theta[levels.entries] - levels.anchor, normals.values(self._kept)
        proposed[levels.entries] = levels.anchor + new
        volume = normals.log_volume
        log_ratio += volume - self._volume
        log_ratio += float(its.exact_part(proposed, self.theta))
        if self._slopes is None:
            log_ratio += its.expansion.difference(proposed, self.theta)
        else:  # only the levels change the expansion
            log_ratio += float(levels.expansion(slopes, new, old).sum())
        return proposed, volume, log_ratio

    def decide(self, rng: np.random.Generator) -> Moved:
        """Keep all accepted moves, or return to the first point."""
        if self.theta is self._begun:
            return Moved(self.theta, 0.0, 0)
        moved = self.theta[self.entries] - self._begun[self.entries]
        log_ratio = -float(self._tilt.dot(moved))
        return self._decided(self.theta, self._begun, log_ratio, rng)

    def _decided(
        self,
        proposed: NDArray[np.float64],
        theta: NDArray[np.float64],
        log_ratio: float,
        rng: np.random.Generator,
    ) -> Moved:
        where = (self._posterior, self._factor, proposed, theta)
        return decided(*where, log_ratio, rng, self._inflation)
