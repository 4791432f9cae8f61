"""The surrogate of a posterior, in coordinates that suit its hierarchy, for the moves on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pymc_austerity import compiled
from pymc_austerity.control_variates import NoAnchorError
from pymc_austerity.proposals import DualAveraging, hamiltonian
from pymc_austerity.proposals.adaptation import covariance_estimate
from pymc_austerity.proposals.protocols import root_of
from pymc_austerity.time_limit import end_if_late


class KnownGradient(Protocol):
    """A log-density that is known without sampling rows, and its gradient."""

    def __call__(self, point: NDArray[np.float64], /) -> Sequence[Any]:
        """Log-density, up to a constant, nats, and gradient, shape (d,)."""
        ...

    @property
    def address(self) -> "int | compiled.KnownByAddress | None":
        """What compiled code needs; None where it needs Python."""
        ...


class Expansion(NamedTuple):
    """Second-order expansion of all rows about a point, concave.

    Attributes
    ----------
    point, gradient : float arrays, shape (d,)
    hessian : float array, shape (d, d)
    """

    point: NDArray[np.float64]
    gradient: NDArray[np.float64]
    hessian: NDArray[np.float64]

    @classmethod
    def concave(
        cls, point: NDArray, gradient: NDArray, hessian: NDArray[np.float64]
    ) -> "Expansion":
        """An expansion without curvature in the directions in which the log-density is convex.

        Raises
        ------
        NoAnchorError
            Some derivatives are not finite.
        """
        if not np.isfinite(hessian).all():
            raise NoAnchorError("the rows have no finite derivatives there")
        values, vectors = np.linalg.eigh(hessian)
        if values[-1] > 0.0:
            hessian = (vectors * np.minimum(values, 0.0)) @ vectors.T
        arrays = (np.ascontiguousarray(a, dtype=np.float64) for a in (point, gradient, hessian))
        return cls(*arrays)

    def difference(self, proposed: NDArray, current: NDArray) -> float:
        """Difference between two points, nats."""
        moved = (proposed - current).astype(np.float64, copy=False)
        about = (proposed - self.point) + (current - self.point)
        return float(self.gradient.dot(moved) + 0.5 * moved.dot(self.hessian.dot(about)))


@dataclass(frozen=True, eq=False)
class SurrogatePosterior(hamiltonian.ScaledCoordinates):
    """A log-density that is close to that of the posterior and reads no rows.

    Attributes
    ----------
    exact : callable
        The row-free part with its gradient, and rows that are kept as they are, if any.
    row_free_difference : callable
        ``f(proposed, current)``: difference of the row-free part, nats.
    expansion : Expansion
        Of the rows.
    scaled : int array
        Entries in units of their conditional standard deviation.
    mean, root : float arrays, shapes (d,) and (d, d)
        Mean in these coordinates, and root of the covariance, lower triangular.
    step_size : float
        Step size for these coordinates.
    """

    exact: KnownGradient
    row_free_difference: Callable[..., Any]
    expansion: Expansion
    scaled: NDArray[np.intp]
    mean: NDArray[np.float64]
    root: NDArray[np.float64]
    step_size: float = 0.5

    @property
    def by_address(self) -> compiled.KnownByAddress | None:
        """What compiled code knows without the expansion; None where it needs Python."""
        address = self.exact.address
        return compiled.KnownByAddress(address) if isinstance(address, int) else address

    def about(self, expansion: Expansion) -> "SurrogatePosterior":
        """The same with another expansion of the rows."""
        return replace(self, expansion=expansion)

    def dispersed(self, width: float, rng: np.random.Generator) -> NDArray[np.float64]:
        """A point drawn in these coordinates, with `width` times the standard deviation.

        It is moved towards the mean while the log-density falls to it several times as far as that
        of a normal density, so that a trajectory from there would leave with great speed.
        """
        noise, middle = rng.standard_normal(self.mean.size), self.point(self.mean)
        for _ in range(_NEARER):
            found = self.point(self.mean + width * self.root.dot(noise))
            if self.difference(middle, found) <= _FALLS * 0.5 * width**2 * noise.dot(noise):
                break
            width /= 2.0
        return found

    def pairs(
        self, n_pairs: int, dtype: Any, rng: np.random.Generator
    ) -> list[tuple[NDArray, NDArray]]:
        """Pairs of points of a chain that begins at the mean, each of shape (d,)."""
        place, found = self.mean, np.empty((2 * n_pairs, self.mean.size), dtype)
        for number in range(len(found)):
            place, _, _ = self.walk(place, self.root, self.step_size, _TIME, _APART, rng)
            found[number] = self.point(place)
        return list(zip(found[:n_pairs], found[n_pairs:], strict=True))

    def difference(self, proposed: NDArray, current: NDArray) -> float:
        """Difference of the log-density between two points, nats."""
        exact = float(self.row_free_difference(proposed, current))
        return exact + self.expansion.difference(proposed, current)

    def walk(
        self,
        coordinates: NDArray[np.float64],
        root: NDArray[np.float64],
        size: float,
        time: float,
        n_trajectories: int,
        rng: np.random.Generator,
    ) -> tuple[NDArray[np.float64], float, int]:
        """Hamiltonian Monte Carlo: see `pymc_austerity.proposals.hamiltonian.walk`."""
        where = (coordinates, root, size, time, n_trajectories, rng)
        known, exact = (*self.expansion, self.scaled), self.by_address
        if exact is None:
            with np.errstate(all="ignore"):  # what is not finite is rejected
                return hamiltonian.walk(self.exact, known, *where)
        found: tuple[NDArray[np.float64], float, int]
        found = compiled.walk(exact, known, *where)
        return found

    def center_and_scale(self, x: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Conditional means and standard deviations of the scaled entries, shape (k,)."""
        (point, _, hessian), exact = self.expansion, self.by_address
        if exact is None:
            return hamiltonian.center_and_scale(self.exact, x, point, hessian, self.scaled)
        found: tuple[NDArray[np.float64], NDArray[np.float64]]
        found = compiled.center_and_scale(exact, x, point, hessian, self.scaled)
        return found


_FALLS, _NEARER = 2.0, 8
"""Fall of the log-density to a dispersed point, over that of a normal density, beyond which it is
moved, and how often that is done at most."""

_WINDOWS = (50, 50, 100, 200, 400)
"""Steps between two estimates of the metric."""

_TRAJECTORIES, _TIME, _TARGET = 2, 2.0, 0.8
_FEWEST_ACCEPTED = 0.3
PILOT_PAIRS, _APART = 8, 5
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
    x = surrogate.coordinates(start)
    shrinking: dict[str, Any] = {"known": root @ root.T, "per_entry": 2.0} if is_informed else {}
    averaging = DualAveraging.begin(surrogate.step_size)
    for length in _WINDOWS:
        places, n_accepted = np.empty((length, x.size)), 0
        averaging = DualAveraging.begin(averaging.end().size)
        for i in range(length):
            end_if_late()
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
