"""The surrogate of a posterior, in coordinates that suit its hierarchy, for the moves on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pymc_austerity import compiled
from pymc_austerity.proposals import hamiltonian


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
        """An expansion without curvature in the directions in which the log-density is convex."""
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
class SurrogatePosterior:
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

    def about(self, expansion: Expansion) -> "SurrogatePosterior":
        """The same with another expansion of the rows."""
        return replace(self, expansion=expansion)

    def coordinates(self, point: NDArray) -> NDArray[np.float64]:
        """The coordinates of a point, shape (d,)."""
        found = point.astype(np.float64)
        if self.scaled.size:
            center, scale = self._center_and_scale(found)
            found[self.scaled] = (found[self.scaled] - center) / scale
        return found

    def point(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """The point with these coordinates, shape (d,)."""
        found = coordinates.copy()
        if self.scaled.size:
            center, scale = self._center_and_scale(coordinates)
            found[self.scaled] = center + scale * coordinates[self.scaled]
        return found

    def dispersed(self, width: float, rng: np.random.Generator) -> NDArray[np.float64]:
        """A point drawn in these coordinates, with `width` times the standard deviation."""
        return self.point(self.mean + width * self.root.dot(rng.standard_normal(self.mean.size)))

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
        known = (*self.expansion, self.scaled)
        if self.exact.address is None:
            with np.errstate(all="ignore"):  # what is not finite is rejected
                return hamiltonian.walk(self.exact, known, *where)
        found: tuple[NDArray[np.float64], float, int]
        found = compiled.walk(self.exact.address, known, *where)
        return found

    def _center_and_scale(self, x: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        point, _, hessian = self.expansion
        if self.exact.address is None:
            return hamiltonian.center_and_scale(self.exact, x, point, hessian, self.scaled)
        found: tuple[NDArray[np.float64], NDArray[np.float64]]
        found = compiled.center_and_scale(self.exact.address, x, point, hessian, self.scaled)
        return found
