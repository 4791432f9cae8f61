"""Moves of entries together with levels of factors, which leave the posterior invariant."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import call
from pymc_austerity.levels.factor import (
    LevelNormals,
    LevelsOfFactor,
    fill_normals,
    fill_quadratic,
    fill_values,
    normals_of,
)
from pymc_austerity.levels.moves import Moved, decided
from pymc_austerity.levels.posterior import GroupedPosterior
from pymc_austerity.levels.terms import RowFreeTerms, TermsByAddress, difference_of_terms
from pymc_austerity.parts import compiled_once
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


@compiled_once
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
        call(levels.prior, (proposed.ctypes.data, prior.ctypes.data, levels.table))
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
    for the residuals between the last point and that where a jump, or nothing, had led.

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
    ) -> None:
        self.entries = entries
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
        self,
        values: NDArray[np.float64],
        log_ratio: float,
        rng: np.random.Generator,
        inflation: float = 1.0,
    ) -> Moved:
        """One move with its decision, for which bounds are inflated; otherwise as `move`."""
        proposed, volume, log_ratio = self._proposed(values, log_ratio)
        moved = self._decided(proposed, self.theta, log_ratio, rng, inflation)
        if moved.point is proposed:  # where levels have kept their standardized position
            self.theta = self._begun = proposed
            self._volume = volume
        return moved

    def move(self, values: NDArray[np.float64], log_ratio: float, threshold: float) -> bool:
        """Propose values of the entries; return whether they were accepted.

        Parameters
        ----------
        values : float array
            New values of the entries.
        log_ratio : float
            Density of the proposal backwards to that forwards, in nats.
        threshold : float
            Log of a uniform number, which the log-ratio of an accepted move exceeds.
        """
        log_ratio += float(self._tilt.dot(values - self.theta[self.entries]))
        proposed, volume, log_ratio = self._proposed(values, log_ratio)
        accept = bool(threshold < log_ratio)  # False if it is not a number
        if accept:
            self.theta, self._volume = proposed, volume
        return accept

    def walk(self, state: RandomWalkState, n_steps: int, rng: np.random.Generator) -> None:
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
            self.move(self.theta[self.entries] + moves[step], 0.0, thresholds[step])

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

    def decide(self, rng: np.random.Generator, inflation: float = 1.0) -> Moved:
        """Keep all accepted moves, or return to the first point; bounds of rows are inflated."""
        if self.theta is self._begun:
            return Moved(self.theta, 0.0, 0)
        moved = self.theta[self.entries] - self._begun[self.entries]
        log_ratio = -float(self._tilt.dot(moved))
        return self._decided(self.theta, self._begun, log_ratio, rng, inflation)

    def _decided(
        self,
        proposed: NDArray[np.float64],
        theta: NDArray[np.float64],
        log_ratio: float,
        rng: np.random.Generator,
        inflation: float,
    ) -> Moved:
        where = (self._posterior, self._factor, (proposed, theta))
        return decided(*where, log_ratio, rng, inflation)


_MOST_WORK = 1e8
"""Most multiplications in a sweep, on average."""

_LEAST = 0.1
"""Smallest share of the sweeps."""

_OF_LEVELS = 0.9
"""Quantile, over the levels of a factor, of the prior's share of the precision."""


@dataclass(frozen=True, eq=False)
class JointBlock:
    r"""Directions along which blocks depend on each other, and the normal approximation there.

    Levels of crossed factors and common entries depend on each other: if every row reads one of
    each, one can rise and the other fall. Moves of one block at a time are slow in few such
    directions, whatever the number of levels. The columns of :math:`W` are these directions, and
    the entries are :math:`u = u^* + W t + r`, with coordinates :math:`t = V' (u - u^*)`.

    Attributes
    ----------
    entries : int array, shape (s,)
        Common entries, if any, and levels of all factors but the first.
    directions, duals : float array, shape (s, k)
        W and V, with :math:`V' W = I`.
    precision : float array, shape (s, k)
        Product of the precision of the entries at the anchor, without the priors of levels, and
        the directions.
    between : float array, shape (G, q, k)
        The same with the precision between the levels of the first factor and the entries.
    gradient, shift : float array, shape (k,)
        Gradient of the rows at the anchor along the directions, and its average change due to the
        uncertainty of levels.
    common : int array, shape (p,)
        Which of `entries` are common.
    factors : sequence of (int, int array of shape (G, q))
        Numbers of the factors, and which of `entries` are their levels.
    stays : float
        Autocorrelation of a Gibbs sampler of the blocks in the slowest direction.
    """

    entries: NDArray[np.int64]
    directions: NDArray[np.float64]
    duals: NDArray[np.float64]
    precision: NDArray[np.float64]
    between: NDArray[np.float64]
    gradient: NDArray[np.float64]
    shift: NDArray[np.float64]
    common: NDArray[np.int64]
    factors: Sequence[tuple[int, NDArray[np.int64]]]
    stays: float

    @property
    def affordable(self) -> float:
        """Share of the sweeps that can include this move, which is slow with many levels."""
        k = self.gradient.size
        return min(1.0, _MOST_WORK / ((self.between.size + self.directions.size + k * k) * k))

    def split(
        self, posterior: GroupedPosterior, theta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Coordinates along the directions, shape (k,), and what is left of the entries, (s,)."""
        moved = theta[self.entries] - posterior.anchor[self.entries]
        along = self.duals.T @ moved
        return along, moved - self.directions @ along

    def normal(
        self, posterior: GroupedPosterior, theta: NDArray[np.float64], left: NDArray[np.float64]
    ) -> LevelNormals:
        """Distribution of the coordinates given what is left of the entries, and other blocks.

        The levels of the first factor are integrated out.
        """
        k, there = self.gradient.size, theta.copy()
        there[self.entries] = posterior.anchor[self.entries]
        there[posterior.factors[0].entries] = posterior.factors[0].anchor
        slope = self.gradient + self.shift - left @ self.precision
        precision = self.directions.T @ self.precision
        for number, own in self.factors:
            gradients, curvatures = posterior.factors[number].prior_derivatives(there)
            along = self.directions[own]
            curved = np.matmul(curvatures, along).reshape(-1, k)
            along = along.reshape(-1, k)
            slope += gradients.ravel() @ along + left[own].ravel() @ curved
            precision -= along.T @ curved
        if posterior.common is not None:
            slope += posterior.common.given(there).gradient @ self.directions[self.common]
        there[self.entries] += left
        _, levels = posterior.level_normals(0, there)
        half = np.matmul(levels.inverse_root, self.between).reshape(-1, k)
        precision -= half.T @ half
        slope -= levels.mean.ravel() @ self.between.reshape(-1, k)
        return normals_of(precision[None], slope[None])


def move_jointly(
    posterior: GroupedPosterior,
    block: JointBlock,
    theta: NDArray[np.float64],
    correlation: float,
    rng: np.random.Generator,
    inflation: float = 1.0,
    offset: NDArray[np.float64] | float = 0.0,
) -> Moved:
    r"""Move common entries and levels of smaller factors at once, together with the largest factor.

    Parameters
    ----------
    posterior : GroupedPosterior
    block : JointBlock
    theta : float array, shape (d,)
    correlation : float
        Correlation of the proposal with the current position, in coordinates in which the normal
        approximation is standard.
    rng : numpy.random.Generator
    inflation : float
        Factor of the bounds of rows.
    offset : float array, shape (k,)
        Added to the mean of the normal approximation, standardized.
    """
    coordinates, left = block.split(posterior, theta)
    normal = block.normal(posterior, theta, left)
    distance = normal.standard(coordinates[None])
    there, log_ratio = _crank_nicolson(distance - offset, correlation, rng)
    values = left + block.directions @ normal.values(there + offset)[0]
    along = PartlyNonCentered(posterior, 0, theta, block.entries)
    there = posterior.anchor[block.entries] + values
    moved = along.jump(there, float(log_ratio[0]), rng, inflation)
    return moved._replace(distance=distance[0])


def _crank_nicolson(
    z: NDArray[np.float64], correlation: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A move that leaves the standard normal distribution of the last axis invariant.

    Parameters
    ----------
    z : float array
        Starting values.
    correlation : float
        Correlation of the new values with the starting values, in (-1, 1).
    rng : numpy.random.Generator

    Returns
    -------
    there : float array, of the shape of `z`
    log_ratio : float array, of that shape without its last axis
        Density of the proposal backwards to that forwards, in nats.
    """
    noise = rng.standard_normal(z.shape)
    there = correlation * z + math.sqrt(1.0 - correlation * correlation) * noise
    return there, 0.5 * (there * there - z * z).sum(axis=-1)


class Shares(NamedTuple):
    """Shares of the sweeps that make a move.

    Attributes
    ----------
    along : tuple of float
        For moves of the hyperparameters of each factor together with its levels.
    joint : float
        For the move of the joint block.
    """

    along: tuple[float, ...]
    joint: float


def shares_of_sweeps(posterior: GroupedPosterior, joint: JointBlock | None) -> Shares:
    r"""Shares equal to the autocorrelation of a Gibbs sampler without these moves.

    The autocorrelation is that from one sweep to the next in the normal approximation at the
    anchor. For a level with the share :math:`\lambda` of its precision from the prior it is
    :math:`\lambda` for the mean and :math:`1 - (1 - \lambda)^2` for the spread of the prior; for
    the joint block it is that of its slowest direction.

    Parameters
    ----------
    posterior : GroupedPosterior
    joint : JointBlock or None

    References
    ----------
    Papaspiliopoulos, O., Roberts, G. O. and Sköld, M. (2007). A general framework for the
    parametrization of hierarchical models. Statistical Science 22(1), 59-73.
    """
    along = tuple(
        max(_stays_with_prior(levels, posterior.anchor), _LEAST) for levels in posterior.factors
    )
    if joint is None:
        return Shares(along, 1.0)
    return Shares(along, min(max(joint.stays, _LEAST), joint.affordable))


def _stays_with_prior(levels: LevelsOfFactor, anchor: NDArray[np.float64]) -> float:
    """Autocorrelation of the spread of the prior; 1 where the prior of a level is not normal."""
    if not levels.prior.is_quadratic:
        return 1.0
    _, curvatures = levels.prior_derivatives(anchor)
    try:
        of_prior = np.linalg.solve(levels.hessians + curvatures, curvatures)
    except np.linalg.LinAlgError:
        return 1.0
    shares = np.trace(of_prior, axis1=1, axis2=2) / levels.entries.shape[1]
    share = float(np.quantile(np.clip(shares, 0.0, 1.0), _OF_LEVELS))
    return 1.0 - (1.0 - share) ** 2
