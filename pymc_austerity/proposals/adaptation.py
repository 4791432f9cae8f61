"""What is learned while a chain is tuning: a scale, a step size, a covariance."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_FEWEST_MOVES = 10
"""Moves of a chain below which its points say less about the covariance than what was known."""

_SHRINKAGE, _OFFSET, _FORGETTING = 0.05, 10.0, 0.75
"""Gamma, t0 and kappa of Hoffman and Gelman (2014), section 3.2.1."""

_CHUNK = 64
"""Largest number of points that are copied when one is appended."""


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


def linear_average(mean: Any, value: Any, n_steps: int) -> Any:
    """Average with linearly growing weights, after one more value: the first ones count least."""
    return mean + (value - mean) * 2 / (n_steps + 1)


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
        n_steps = self.n_steps + 1
        log_scale = self.log_scale + learning_rate(n_steps) * (accepted - target)
        log_scale = min(log_scale, math.log(self.largest))
        mean = linear_average(self.mean_log_scale, log_scale, n_steps)
        return ScaleSearch(log_scale, mean, n_steps, self.largest)

    def end(self) -> "ScaleSearch":
        """Replace the scale by the average."""
        return self._replace(log_scale=self.mean_log_scale)


class Average(NamedTuple):
    """Robbins-Monro recursion on the mean of what a chain shows.

    Attributes
    ----------
    value : float array
        Current value.
    mean : float array
        Average of past values with linearly growing weights: the first values count least.
    n_steps : int
        Steps so far.
    """

    value: NDArray[np.float64]
    mean: NDArray[np.float64]
    n_steps: int = 0

    @classmethod
    def begin(cls, shown: NDArray[np.float64]) -> "Average":
        """The average of one value."""
        return cls(shown, shown, 1)

    def step(self, shown: NDArray[np.float64]) -> "Average":
        """The average after one more value; entries that are NaN stay as they are."""
        n_steps = self.n_steps + 1
        rate = min(learning_rate(n_steps), 1.0)
        value = np.where(np.isnan(shown), self.value, self.value + rate * (shown - self.value))
        return Average(value, linear_average(self.mean, value, n_steps), n_steps)

    def end(self) -> "Average":
        """Replace the value by the average of past ones."""
        return self._replace(value=self.mean)


def covariance_estimate(
    points: NDArray[np.float64],
    *,
    full: bool,
    known: NDArray[np.float64] | None = None,
    per_entry: float = 5.0,
) -> NDArray[np.float64] | None:
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
    known : float array, shape (d, d), optional
        Covariance towards which to shrink, variances and all, instead of the diagonal.
    per_entry : float
        What stands for 5 in the weight.

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
    weight = n_points / (n_points + per_entry * n_entries)
    covariance = weight * np.atleast_2d(np.cov(points, rowvar=False))
    if known is not None:
        return covariance + (1.0 - weight) * known
    covariance[np.diag_indices(n_entries)] = variances
    return covariance


class DualAveraging(NamedTuple):
    r"""Stochastic approximation of the step size with a given mean acceptance probability.

    .. math::
        \log \epsilon_{t+1} = \mu - \frac{\sqrt t}{\gamma} \frac{1}{t + t_0}
        \sum_{i \le t} (\delta - \alpha_i)

    with :math:`\mu = \log(10 \epsilon_1)`, and finally an average of :math:`\log \epsilon_t` whose
    weights favor late steps.

    Attributes
    ----------
    log_size, mean_log_size : float
        Current value, and the average of past values.
    about : float
        :math:`\mu`.
    deficit : float
        Average shortfall of the acceptance probability.
    n_steps : int
        :math:`t`.

    References
    ----------
    Hoffman, M. D. and Gelman, A. (2014). The No-U-Turn sampler. JMLR 15, 1593-1623, section 3.2.

    Examples
    --------
    >>> search = DualAveraging.begin(1.0)
    >>> for _ in range(500):  # acceptance falls with the step size
    ...     search = search.after(1.0 - 0.4 * min(search.size, 2.0), target=0.8)
    >>> round(search.end().size, 1)
    0.5
    """

    log_size: float
    mean_log_size: float
    about: float
    deficit: float = 0.0
    n_steps: int = 0

    @classmethod
    def begin(cls, size: float) -> "DualAveraging":
        """Search that starts at a given step size."""
        return cls(math.log(size), math.log(size), math.log(10.0 * size))

    @property
    def size(self) -> float:
        """Step size to use now."""
        return math.exp(self.log_size)

    def after(self, acceptance: float, target: float) -> "DualAveraging":
        """The search after one more acceptance probability."""
        n = self.n_steps + 1
        deficit = self.deficit + (target - acceptance - self.deficit) / (n + _OFFSET)
        log_size = self.about - math.sqrt(n) / _SHRINKAGE * deficit
        weight = n**-_FORGETTING
        mean = weight * log_size + (1.0 - weight) * self.mean_log_size
        return DualAveraging(log_size, mean, self.about, deficit, n)

    def end(self) -> "DualAveraging":
        """Replace the step size by the average."""
        return self._replace(log_size=self.mean_log_size)


class Path(NamedTuple):
    """An immutable sequence of points; appending cheaply makes a new one.

    Attributes
    ----------
    chunks : tuple of tuples of arrays, each of shape (d,)
        All points but the last few.
    latest : tuple of arrays, each of shape (d,)
        The last few.

    Examples
    --------
    >>> import numpy as np
    >>> path = Path().append(np.zeros(2)).append(np.ones(2))
    >>> path.to_array()
    array([[0., 0.],
           [1., 1.]])
    """

    chunks: tuple[tuple[NDArray, ...], ...] = ()
    latest: tuple[NDArray, ...] = ()

    def append(self, point: NDArray) -> "Path":
        """The path with one more point."""
        latest = (*self.latest, point)
        if len(latest) < _CHUNK:
            return Path(self.chunks, latest)
        return Path((*self.chunks, latest))

    def to_array(self) -> NDArray[np.float64]:
        """All points, shape (n, d)."""
        points = [point for chunk in (*self.chunks, self.latest) for point in chunk]
        return np.asarray(points, dtype=np.float64)
