"""Moves of entries together with the levels of a factor, which leave the posterior invariant."""

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import call_of_prior
from pymc_austerity.levels.factor import fill_normals, fill_quadratic, fill_values
from pymc_austerity.levels.moves import Moved, decided
from pymc_austerity.levels.posterior import GroupedPosterior
from pymc_austerity.levels.terms import RowFreeTerms, TermsByAddress, difference_of_terms
from pymc_austerity.proposals import RandomWalkState


class FollowingLevels(NamedTuple):
    """Levels that follow their normal approximation.

    Attributes
    ----------
    entries : int array, shape (G, q)
    anchor, hessians, slopes : float arrays, shapes (G, q), (G, q, q) and (G, q)
        Where the rows are expanded, and the expansion there given the others.
    kept : float array, shape (G, q)
        Standardized position of the levels in their normal approximation.
    prior, table : int
        Addresses of the function of the prior's derivatives, and of the table of its arrays.
    """

    entries: NDArray[np.int64]
    anchor: NDArray[np.float64]
    hessians: NDArray[np.float64]
    slopes: NDArray[np.float64]
    kept: NDArray[np.float64]
    prior: int
    table: int


class Steps(NamedTuple):
    """Steps of some entries, with the random numbers of their decisions.

    Attributes
    ----------
    entries : int array, shape (h,)
    moves : float array, shape (n, h)
    thresholds : float array, shape (n,)
        A step is accepted where its log-ratio is larger.
    tilt : float array, shape (h,)
        Gradient that decisions add to the log-density.
    """

    entries: NDArray[np.int64]
    moves: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    tilt: NDArray[np.float64]


class Work(NamedTuple):
    """Working space, filled at every step.

    Attributes
    ----------
    proposed : float array, shape (d,)
        A copy of the point where the walk begins.
    prior : float array, shape (G (1 + q + q q),)
        Terms of levels, their gradients and Hessians.
    precision, root : float array, shape (G, q, q)
    slope, mean, old, new : float array, shape (G, q)
    changes : float array, shape (G,)
    """

    proposed: NDArray[np.float64]
    prior: NDArray[np.float64]
    precision: NDArray[np.float64]
    root: NDArray[np.float64]
    slope: NDArray[np.float64]
    mean: NDArray[np.float64]
    old: NDArray[np.float64]
    new: NDArray[np.float64]
    changes: NDArray[np.float64]

    @classmethod
    def of(cls, theta: NDArray[np.float64], n_levels: int, q: int) -> "Work":
        """For a walk that begins at a point."""
        precision, root = np.empty((2, n_levels, q, q))
        slope, mean, old, new = np.empty((4, n_levels, q))
        prior, changes = np.empty(n_levels * (1 + q + q * q)), np.empty(n_levels)
        return cls(theta.copy(), prior, precision, root, slope, mean, old, new, changes)


@numba.njit(cache=True, error_model="numpy", no_cfunc_wrapper=True)
def walk_with_levels(
    levels: FollowingLevels,
    exact: TermsByAddress,
    steps: Steps,
    theta: NDArray[np.float64],
    work: Work,
    volume: float,
) -> tuple[int, int, float]:
    """Make the steps of `PartlyNonCentered.move`, one after the other.

    Parameters
    ----------
    levels : FollowingLevels
    exact : TermsByAddress
    steps : Steps
    theta : float array, shape (d,)
        Where to begin; it is changed in place.
    work : Work
    volume : float
        Log-volume of the levels there.

    Returns
    -------
    n_made, n_accepted : int
        Steps; fewer were made than requested if the precision of a level is not positive definite
        at the next one.
    volume : float
        Log-volume of the levels where the walk ends.
    """
    n_levels, q = levels.kept.shape
    own, anchor, hessians, slopes = levels.entries, levels.anchor, levels.hessians, levels.slopes
    proposed, prior, old, new = work.proposed, work.prior, work.old, work.new
    n_accepted = 0
    for step in range(steps.thresholds.size):
        log_ratio = 0.0
        for i in range(steps.entries.size):
            entry = steps.entries[i]
            proposed[entry] = theta[entry] + steps.moves[step, i]
            log_ratio += steps.tilt[i] * (proposed[entry] - theta[entry])
        for g in range(n_levels):
            for i in range(q):
                proposed[own[g, i]] = anchor[g, i]
        call_of_prior(levels.prior, proposed.ctypes.data, prior.ctypes.data, levels.table)
        for g in range(n_levels):
            for i in range(q):
                place = g * q + i
                old[g, i] = theta[own[g, i]] - anchor[g, i]
                work.slope[g, i] = slopes[g, i] + prior[n_levels + place]
                for j in range(q):
                    curvature = prior[n_levels * (1 + q) + place * q + j]
                    work.precision[g, i, j] = -hessians[g, i, j] - curvature
        volume_there = fill_normals(work.precision, work.slope, work.mean, work.root)
        if q > 1 and math.isnan(volume_there):
            return step, n_accepted, volume
        fill_values(work.mean, work.root, levels.kept, new)
        for g in range(n_levels):
            for i in range(q):
                proposed[own[g, i]] = anchor[g, i] + new[g, i]
        log_ratio += volume_there - volume + difference_of_terms(exact, proposed, theta)
        fill_quadratic(slopes, hessians, new, old, work.changes)
        for g in range(n_levels):
            log_ratio += work.changes[g]
        if steps.thresholds[step] < log_ratio:  # False if it is not a number
            n_accepted += 1
            volume = volume_there
            for i in range(steps.entries.size):
                theta[steps.entries[i]] = proposed[steps.entries[i]]
            for g in range(n_levels):
                for i in range(q):
                    theta[own[g, i]] = proposed[own[g, i]]
    return steps.thresholds.size, n_accepted, volume


class PartlyNonCentered:
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
            n_made, n_accepted, self._volume = walk_with_levels(
                *known, steps, theta, work, self._volume
            )
            self.theta = theta if n_accepted else self.theta
        for step in range(n_made, n_steps):
            self._move(self.theta[self.entries] + moves[step], 0.0, thresholds[step])

    def _by_address(self) -> tuple[FollowingLevels, TermsByAddress] | None:
        """Levels and row-free part for compiled code, if available."""
        levels, exact = self._posterior.factors[self._factor], self._posterior.row_free_part
        prior = levels.prior.by_address
        if self._slopes is None or prior is None or not isinstance(exact, RowFreeTerms):
            return None
        its = (levels.entries, levels.anchor, levels.hessians, self._slopes, self._kept)
        return FollowingLevels(*its, prior.address, prior.table.ctypes.data), exact.by_address

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
        log_ratio += float(its.row_free_part(proposed, self.theta))
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
        where = (self._posterior, self._factor, (proposed, theta))
        return decided(*where, log_ratio, rng, self._inflation)
