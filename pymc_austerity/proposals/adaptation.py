"""Learning the scale and the covariance of a proposal while a chain is tuning."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ScaleSearch",
    "covariance_estimate",
    "learning_rate",
    "optimal_scaling",
    "usual_acceptance",
]


def usual_acceptance(n_entries: int) -> float:
    """Acceptance rate to aim for: 0.44 in one dimension, falling to 0.234 from five on.

    Source: Gelman, Roberts and Gilks (1996), Efficient Metropolis jumping rules, table 1.
    """
    return 0.234 + 0.206 * max(0.0, (5 - n_entries) / 4)


def optimal_scaling(n_entries: int) -> float:
    """Standard deviation of an efficient random walk, in posterior standard deviations.

    ``2.38 / sqrt(d)``; source: Gelman, Roberts and Gilks (1996).
    """
    return 2.38 / math.sqrt(n_entries)


def learning_rate(n_steps: int) -> float:
    """Gain of the Robbins-Monro recursion on the log-scale at its ``n_steps``-th step.

    Decreases as ``n**-0.6``: slowly enough to reach any scale, and fast enough to converge
    (Andrieu and Thoms 2008, section 5.1).
    """
    return 2.0 / n_steps**0.6


class ScaleSearch(NamedTuple):
    """Robbins-Monro recursion on the log of one scale, towards a given acceptance rate.

    Attributes
    ----------
    log_scale : float
        Current value.
    mean_log_scale : float
        Average of past values with linearly growing weights: the first values count least.
    n_steps : int
        Steps so far.
    largest : float
        Upper limit of the scale.
    """

    log_scale: float
    mean_log_scale: float
    n_steps: int = 0
    largest: float = math.inf

    @classmethod
    def begin(cls, scaling: float, largest: float = math.inf) -> "ScaleSearch":
        """Search that starts at a given scale."""
        log_scale = math.log(min(scaling, largest))
        return cls(log_scale, log_scale, largest=largest)

    @property
    def scale(self) -> float:
        """Scale to use now."""
        return math.exp(self.log_scale)

    def step(self, accepted: bool, target: float) -> "ScaleSearch":
        """The search after one more decision."""
        n_steps, mean = self.n_steps + 1, self.mean_log_scale
        log_scale = self.log_scale + learning_rate(n_steps) * (accepted - target)
        log_scale = min(log_scale, math.log(self.largest))
        mean += (log_scale - mean) * 2 / (n_steps + 1)
        return ScaleSearch(log_scale, mean, n_steps, self.largest)

    def end(self) -> "ScaleSearch":
        """Replace the scale by the average."""
        return self._replace(log_scale=self.mean_log_scale)


_FEWEST_MOVES = 10
"""Moves of a chain below which its points say less about the covariance than what was known."""


def covariance_estimate(points: NDArray[np.float64], *, full: bool) -> NDArray[np.float64] | None:
    """Covariance of a stretch of a chain, shrunk towards its diagonal if the stretch is short.

    A random walk in d dimensions needs about d steps for an independent point, so n points tell as
    much about correlations as ``n / d`` independent ones: the correlations get the weight
    ``n / (n + 5 d)``.

    Parameters
    ----------
    points : float array, shape (n, d)
        Successive points of the chain.
    full : bool
        Whether to estimate correlations.

    Returns
    -------
    float array, shape (d, d) or (d,)
        Positive definite covariance, or the variances if not `full`; None if the chain has hardly
        moved. An entry that has not moved while others have gets the variance 1: it is an integer,
        whose moves are rounded.
    """
    moved = points[1:] != points[:-1]
    if np.count_nonzero(moved.any(axis=1)) < _FEWEST_MOVES:
        return None
    variances = np.where(moved.any(axis=0), points.var(axis=0, ddof=1), 1.0)
    if not full:
        return variances
    n_points, n_entries = points.shape
    weight = n_points / (n_points + 5.0 * n_entries)
    covariance = weight * np.atleast_2d(np.cov(points, rowvar=False))
    covariance[np.diag_indices(n_entries)] = variances
    return covariance
