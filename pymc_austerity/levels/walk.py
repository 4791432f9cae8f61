"""Steps of entries that no row reads, together with levels, in compiled code."""

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from pymc_austerity.compiled import call_of_prior
from pymc_austerity.levels.exact_terms import TermsByAddress, exact_difference
from pymc_austerity.levels.factor import fill_quadratic
from pymc_austerity.levels.normals import fill_normals, fill_values

__all__ = ["FollowingLevels", "Steps", "Work", "walk"]


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
def walk(
    levels: FollowingLevels,
    exact: TermsByAddress,
    steps: Steps,
    theta: NDArray[np.float64],
    work: Work,
    volume: float,
) -> tuple[int, int, float]:
    """Make the steps of `AlongWithLevels.move`, one after the other.

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
        log_ratio += volume_there - volume + exact_difference(exact, proposed, theta)
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
