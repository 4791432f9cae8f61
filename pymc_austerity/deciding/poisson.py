"""The immutable arrays that exact decisions use."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.sampling import RowFunction
from pymc_austerity.exact import (
    BoundViolatedError,
    ExactDecision,
    FireflyDecision,
    Groups,
    decide,
    decide_by_fireflies,
)
from pymc_austerity.exact.firefly import bounds_at
from pymc_austerity.rows import LARGEST_BLOCK, RowSource


class RowBoundError(ArithmeticError):
    """A row changed by more than its bound, so that decisions would not be exact."""


@dataclass(frozen=True)
class StoredResiduals:
    """Residuals of rows by their positions in storage.

    Attributes
    ----------
    function : callable
        Residuals of a block of rows between two points, nats.
    source : RowSource
    """

    function: RowFunction
    source: RowSource

    def __call__(
        self, proposed: NDArray, current: NDArray, rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Residuals between two points, shape (n,), nats."""
        if not rows.size:
            return np.empty(0)
        if rows.size <= LARGEST_BLOCK:
            return self.function(proposed, current, *self.source.take(rows))
        starts = range(0, rows.size, LARGEST_BLOCK)
        parts = (self.source.take(rows[k : k + LARGEST_BLOCK]) for k in starts)
        return np.concatenate([self.function(proposed, current, *part) for part in parts])


@contextmanager
def rows_named(numbers: RowSource) -> Iterator[None]:
    """Name rows by their numbers in the user's data where they violate a bound.

    Parameters
    ----------
    numbers : RowSource
        Of the rows in the order of storage: one array.

    Raises
    ------
    RowBoundError
        In place of a `BoundViolatedError`.
    """
    try:
        yield
    except BoundViolatedError as error:
        (number,) = numbers.take(np.array([error.row]))
        raise RowBoundError(
            f"row {number[0]} of the data changed by {error.residual:.3g} nats between two "
            f"points, more than its bound of {error.bound:.3g}, so that decisions are not "
            "exact: use AusterityMH(epsilon=0.05) for a sequential test."
        ) from None


@dataclass(frozen=True, eq=False)
class PoissonSampling:
    r"""Rows are drawn by Poisson variables whose rates bound what the rows can change.

    Parameters
    ----------
    function : callable
        Residuals of rows about the anchor, in double precision.
    source : RowSource
        Rows, stored group by group.
    numbers : RowSource
        Their numbers in the user's data, in the same order: one array.
    center : float array, shape (d,)
        The anchor, :math:`\theta^*`.
    inverse_root : float array, shape (d, d)
        Inverse of R, where R R' is the covariance of the posterior at the anchor.
    groups : Groups
        Bounds of the rows.
    inflation : float
        Initial factor of the bounds, at least 1.
    expected_rows, typical_rows : float
        Rows that a decision between independent draws of the posterior is expected to read: mean
        and median over pairs of draws.
    accepted : float
        Share of draws of a normal approximation that a short run accepted, each in place of the
        one before.
    """

    function: RowFunction
    source: RowSource
    numbers: RowSource
    center: NDArray[np.float64]
    inverse_root: NDArray[np.float64]
    groups: Groups
    inflation: float = 1.0
    expected_rows: float = float("nan")
    typical_rows: float = float("nan")
    accepted: float = float("nan")

    @cached_property
    def constants(self) -> dict[str, Any]:
        """Constants of the run, by name."""
        return {
            "sampling": type(self).__name__,
            "row_groups": self.groups.n_groups,
            "largest_radius": float(self.groups.radii[-1]),
        }

    def whitened(self, point: NDArray) -> NDArray[np.float64]:
        """A point in units of the posterior's standard deviations, decorrelated, about the anchor.

        The result is the same in every call with the same point, as exactness requires.
        """
        return self.inverse_root.dot(point - self.center)

    def is_bounded_at(self, point: NDArray) -> bool:
        """Whether the log-likelihood of every row is finite at a point, by its bounds."""
        return bool(np.isfinite(bounds_at(self.whitened(point), self.groups)).all())

    def decide(
        self,
        proposed: NDArray,
        current: NDArray,
        log_ratio: float,
        inflation: float,
        rng: np.random.Generator,
    ) -> ExactDecision:
        """Accept or reject a proposal.

        Parameters
        ----------
        proposed, current : arrays, shape (d,)
            The two points.
        log_ratio : float
            The log acceptance ratio without the residuals, nats.
        inflation : float
            Factor of the bounds.
        rng : numpy.random.Generator
            Generator of the chain.

        Raises
        ------
        RowBoundError
            The message names the row.
        """
        residuals = self._residuals(proposed, current)
        u, v = self.whitened(current), self.whitened(proposed)
        with rows_named(self.numbers):
            return decide(residuals, u, v, log_ratio, self.groups, rng, inflation=inflation)

    def decide_by_fireflies(
        self, proposed: NDArray, current: NDArray, log_ratio: float, rng: np.random.Generator
    ) -> FireflyDecision:
        """Accept or reject a proposal given which rows are bright.

        Parameters and errors are those of `decide`.
        """
        anchor = self.center.astype(current.dtype, copy=False)
        now, then = self._residuals(current, anchor), self._residuals(proposed, anchor)
        u, v = self.whitened(current), self.whitened(proposed)
        with rows_named(self.numbers):
            return decide_by_fireflies(now, then, u, v, log_ratio, self.groups, rng)

    def _residuals(
        self, proposed: NDArray, current: NDArray
    ) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
        return partial(StoredResiduals(self.function, self.source), proposed, current)
