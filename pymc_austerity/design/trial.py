"""What a trial run reveals about decisions to come."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymc_austerity.errors import DataError

__all__ = ["TrialRun"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TrialRun:
    r"""Decisions of a trial run, each with the values of all rows.

    Parameters
    ----------
    mean : float array, shape (n,), nats
        :math:`\mu`, mean over all rows of the differences (less their control variates), for every
        triple :math:`(\theta, \theta', u)`.
    standard_deviation : float array, shape (n,), nats
        :math:`\sigma_l`, their standard deviation over all rows (ddof 0).
    log_threshold : float array, shape (n,), nats
        :math:`\psi`, which the sum must exceed for acceptance. Contains :math:`\log u`.
    n_rows : int
        Number of all rows, N.
    log_u : float array, shape (n,), optional
        :math:`\log u` of every triple. Without it, the errors of acceptance probabilities are
        unknown, but those of decisions are known.

    Raises
    ------
    DataError
        If arrays differ in length, are empty, or are not finite.

    Examples
    --------
    >>> from pymc_austerity.design import TrialRun
    >>> trial = TrialRun([0.02], [0.5], [-1.0], n_rows=10_001)
    >>> trial.mu_std.round(2)
    array([4.02])
    """

    mean: ArrayLike
    standard_deviation: ArrayLike
    log_threshold: ArrayLike
    n_rows: int
    log_u: ArrayLike | None = None

    def __post_init__(self) -> None:
        for name in ("mean", "standard_deviation", "log_threshold", "log_u"):
            if getattr(self, name) is not None:
                values = np.array(getattr(self, name), dtype=np.float64, ndmin=1)
                object.__setattr__(self, name, self._checked(name, values))
        if np.any(np.asarray(self.standard_deviation) <= 0.0):
            raise DataError(
                "standard_deviation must be positive: leave out decisions without spread"
            )

    @classmethod
    def from_distances(cls, distance: ArrayLike, spread: ArrayLike, n_rows: int) -> "TrialRun":
        r"""Decisions for which only the distance from the threshold is known.

        The errors of decisions are then known; those of acceptance probabilities are not.

        Parameters
        ----------
        distance : float array, shape (n,)
            Sum of the differences of all rows minus the threshold, in nats or any other unit.
        spread : float array, shape (n,) or ()
            :math:`N \sigma_l / \sqrt{N - 1}`, in the same unit.
        n_rows : int
            Number of all rows, N.

        Examples
        --------
        >>> from pymc_austerity.design import TrialRun
        >>> TrialRun.from_distances([3.0, -8.0], 2.0, n_rows=10_001).mu_std.round(6)
        array([ 1.5, -4. ])
        """
        mean = np.asarray(distance, dtype=np.float64) / n_rows
        deviation = np.broadcast_to(spread, mean.shape) * (math.sqrt(n_rows - 1) / n_rows)
        return cls(mean, deviation, np.zeros(mean.shape), n_rows)

    def _checked(self, name: str, values: Floats) -> Floats:
        if values.shape != np.shape(np.atleast_1d(self.mean)) or values.size == 0:
            raise DataError(f"{name} has shape {values.shape}: one value per decision is needed")
        if not np.all(np.isfinite(values)):
            raise DataError(f"{name} is not finite: leave out decisions that need no rows")
        return values

    @property
    def spread(self) -> Floats:
        r""":math:`N \sigma_l / \sqrt{N - 1}`, the unit of `mu_std`; shape (n,), nats."""
        return self.n_rows / np.sqrt(self.n_rows - 1) * np.asarray(self.standard_deviation)

    @property
    def mu_std(self) -> Floats:
        """Distance from the threshold in units of the spread, shape (n,)."""
        return self._distance / self.spread

    @property
    def log_ratio(self) -> Floats:
        """Log of the Metropolis-Hastings ratio, shape (n,), nats."""
        if self.log_u is None:
            raise DataError("log_u is needed for errors of the acceptance probability")
        return self._distance + np.asarray(self.log_u)

    @property
    def _distance(self) -> Floats:
        return np.asarray(self.mean) * self.n_rows - np.asarray(self.log_threshold)
