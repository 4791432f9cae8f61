"""A short chain on the surrogate, which runs before the chains and reads no rows."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.control_variates import NoAnchorError
from pymc_austerity.proposals import DualAveraging
from pymc_austerity.proposals.adaptation import covariance_estimate
from pymc_austerity.proposals.protocols import root_of
from pymc_austerity.setup.surrogate import SurrogatePosterior
from pymc_austerity.time_limit import uncounted

__all__ = ["Explored", "explored"]

_WINDOWS = (50, 50, 100, 200, 400)
"""Steps between two estimates of the metric."""

_TRAJECTORIES, _TIME, _TARGET = 2, 2.0, 0.8
_FEWEST_ACCEPTED = 0.3
_PAIRS, _APART = 8, 5
"""Pilot pairs, and moves on the surrogate between their points."""
_GROWING = 8.0
"""Growth of a standard deviation between windows that indicates an improper density."""


class Explored(NamedTuple):
    """Results of a chain on the surrogate.

    Attributes
    ----------
    surrogate : SurrogatePosterior
        With the tuned metric and step size.
    mean, root : float arrays, shapes (d,) and (d, d)
        Mean of the points of the chain, and a lower triangular root of their covariance.
    last : float array, shape (d,)
        Where the chain ended.
    """

    surrogate: SurrogatePosterior
    mean: NDArray[np.float64]
    root: NDArray[np.float64]
    last: NDArray[np.float64]

    def pairs(self, rng: np.random.Generator, dtype: Any) -> list[tuple[NDArray, NDArray]]:
        """Pairs of points of a chain on the surrogate, each of shape (d,)."""
        its, found = self.surrogate, np.empty((2 * _PAIRS, self.last.size), dtype=dtype)
        place, move = its.coordinates(self.last), (its.root, its.step_size, _TIME, _APART)
        for number in range(len(found)):
            place, _, _ = its.walk(place, *move, rng)
            found[number] = its.point(place)
        return list(zip(found[:_PAIRS], found[_PAIRS:], strict=True))


def explored(
    surrogate: SurrogatePosterior,
    start: NDArray,
    rng: np.random.Generator,
    *,
    is_informed: bool = False,
) -> Explored:
    """Tune the moves on the surrogate as the No-U-Turn sampler is tuned.

    Parameters
    ----------
    surrogate : SurrogatePosterior
    start : float array, shape (d,)
    rng : numpy.random.Generator
    is_informed : bool
        Whether the metric of the surrogate is that of a normal approximation, towards which those
        of short windows are shrunk.

    Raises
    ------
    NoAnchorError
        Trajectories are not accepted, the chain does not move, or the surrogate has no finite
        width in some direction.
    """
    root = before = surrogate.root
    with uncounted():
        x = surrogate.coordinates(start)
        surrogate.walk(x, root, surrogate.step_size, _TIME, 0, np.random.default_rng(0))
    shrinking: dict[str, Any] = {"known": root @ root.T, "per_entry": 2.0} if is_informed else {}
    averaging = DualAveraging.begin(surrogate.step_size)
    for length in _WINDOWS:
        places, n_accepted = np.empty((length, x.size)), 0
        averaging = DualAveraging.begin(averaging.end().size)
        for i in range(length):
            x, acceptance, n = surrogate.walk(x, root, averaging.size, _TIME, _TRAJECTORIES, rng)
            averaging = averaging.after(acceptance, _TARGET)
            places[i], n_accepted = x, n_accepted + n
        covariance = covariance_estimate(places, full=True, **shrinking)
        if covariance is not None and np.isfinite(covariance).all():
            before, root = root, root_of(covariance)
    points = np.array([surrogate.point(place) for place in places])
    covariance = covariance_estimate(points, full=True)
    enough = n_accepted > _FEWEST_ACCEPTED * _TRAJECTORIES * len(places)
    if covariance is None or not enough or not np.isfinite(covariance).all():
        raise NoAnchorError("trajectories on the surrogate are not accepted")
    if np.linalg.norm(np.linalg.solve(before, root), ord=2) > _GROWING:
        raise NoAnchorError("the surrogate has no finite width in some direction")
    tuned = replace(surrogate, mean=places.mean(axis=0), root=root, step_size=averaging.end().size)
    return Explored(tuned, points.mean(axis=0), root_of(covariance), points[-1])
