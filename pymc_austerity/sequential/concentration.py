"""Tests that err no more often than they say, whatever the rows, if the range is right."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.arguments import checked_number, checked_rate
from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.sequential.protocols import Evidence

__all__ = ["Concentration", "EmpiricalBernsteinTest", "HoeffdingTest"]

_TINY, _HUGE = 1e-300, 1e300
"""In place of 0, the bound between equal points, and of infinity, far beyond the posterior."""


@dataclass(frozen=True)
class Concentration:
    """What the two rules share: their parameters, and how the error is spread over looks."""

    largest_difference: float | Callable[[NDArray, NDArray], float]
    error_probability: float = 0.05
    power: float = 2.0

    growth: ClassVar[float] = 2.0
    """Batches double, so that few looks share the error."""

    uniform_only: ClassVar[bool] = True
    """The inequality holds for uniform samples."""

    def __post_init__(self) -> None:
        if not callable(self.largest_difference):
            checked_number(
                "largest_difference",
                self.largest_difference,
                lambda bound: 0.0 < bound < math.inf,
                "a bound of differences",
                "a positive number of nats, or a function of two points that returns one",
            )
        checked_rate("error_probability", self.error_probability, "the probability of an error")
        checked_number(
            "power",
            self.power,
            lambda power: power > 1.0,
            "a power whose shares of the error add up",
            "a number above 1",
        )

    def between(self, proposed: NDArray, current: NDArray) -> Self:
        """The same rule with the bound of the differences between two points as a number.

        Raises
        ------
        SettingError, SettingTypeError
            The user's function fails, or returns something else than a number of nats.
        """
        if not callable(self.largest_difference):
            return self
        try:
            bound = self.largest_difference(proposed, current)
        except Exception as error:
            raise SettingError(
                f"largest_difference(proposed, current) raised {type(error).__name__} ({error}): "
                "give a number of nats, or a function of two points that returns one."
            ) from error
        if isinstance(bound, np.ndarray) and bound.ndim == 0:
            bound = bound[()]
        bound = checked_number(
            "largest_difference(proposed, current)",
            bound,
            lambda value: value >= 0.0,
            "a bound of differences",
            "a function that returns a number of nats, 0 or more",
        )
        return replace(self, largest_difference=min(max(bound, _TINY), _HUGE))

    @property
    def epsilon(self) -> float:
        """Largest probability of a wrong decision."""
        return self.error_probability

    @property
    def bound(self) -> float:
        """Largest absolute difference, as a number."""
        if callable(self.largest_difference):
            raise SettingTypeError("largest_difference is a function of two points: see between()")
        return self.largest_difference

    def stops(self, evidence: Evidence) -> bool:
        """Whether the mean is further from the threshold than the inequality lets it stray."""
        return self.error(evidence) < self.share_of_error(evidence.n_looks)

    def share_of_error(self, look: int) -> float:
        r"""Error allowed at a look, :math:`\delta_k`: over all looks at most the whole."""
        return (self.power - 1.0) / (self.power * look**self.power) * self.error_probability

    def error(self, evidence: Evidence) -> float:
        """Bound of the probability of such a distance from the true mean, at most 1."""
        raise NotImplementedError


@dataclass(frozen=True)
class HoeffdingTest(Concentration):
    r"""Stop when Hoeffding's inequality without replacement leaves one side of the threshold.

    At look :math:`k`, with :math:`n` of :math:`N` rows seen and
    :math:`\delta_k = \frac{p - 1}{p k^p} \delta`,

    .. math:: |\bar l - \mu_0| > c_k = C \sqrt{\frac{2}{n} \left(1 - \frac{n-1}{N}\right)
              \log \frac{2}{\delta_k}}

    stops the test. The whole test errs with probability at most :math:`\delta`, whatever the
    number of looks and the distribution of the rows, provided that :math:`C` is a bound.

    Parameters
    ----------
    largest_difference : float or callable
        :math:`C`, nats: no row's log-likelihood difference (less its control variate) is larger in
        absolute value. Or a function ``(proposed, current) -> C`` of two points, arrays of shape
        (d,): for a logistic regression, say, the largest norm of a row of covariates times
        ``np.linalg.norm(proposed - current)``.
    error_probability : float
        :math:`\delta`, largest probability of a wrong decision.
    power : float
        :math:`p`: how fast the shares :math:`\delta_k` fall.

    Raises
    ------
    SettingError
        If a parameter is out of range.

    Notes
    -----
    For uniform samples only. With :math:`C` far above the standard deviation of the differences, as
    is usual, most decisions take all rows: this is the price of a guarantee. Samples
    that double from look to look spend less of :math:`\delta` on looks.

    References
    ----------
    Bardenet, R., Doucet, A. and Holmes, C. (2014). Towards scaling up Markov chain Monte Carlo: an
    adaptive subsampling approach. ICML, section 4 and algorithm 2.
    Serfling, R. J. (1974). Probability inequalities for the sum in sampling without replacement.
    The Annals of Statistics 2(1), 39-48.

    Examples
    --------
    >>> from pymc_austerity.sequential import Evidence, HoeffdingTest
    >>> rule = HoeffdingTest(largest_difference=1.0, error_probability=0.05)
    >>> rule.stops(Evidence(2_000.0, 60.0, 499, n_seen=500, n_rows=10_000, n_looks=1))
    True
    >>> rule.stops(Evidence(1_000.0, 60.0, 499, n_seen=500, n_rows=10_000, n_looks=1))
    False
    """

    def error(self, evidence: Evidence) -> float:
        """Bound of the probability of such a distance from the true mean, at most 1."""
        n, n_rows = evidence.n_seen, evidence.n_rows
        distance = evidence.distance / n_rows / self.bound
        exponent = 0.5 * n * distance * distance / (1.0 - (n - 1) / n_rows)
        return min(1.0, 2.0 * math.exp(-exponent))


@dataclass(frozen=True)
class EmpiricalBernsteinTest(Concentration):
    r"""Stop when the empirical Bernstein inequality leaves one side of the threshold.

    At look :math:`k`, with :math:`n` rows seen, :math:`s_n` the standard deviation of their
    differences and :math:`\delta_k = \frac{p - 1}{p k^p} \delta`,

    .. math:: |\bar l - \mu_0| > c_k = s_n \sqrt{\frac{2 \log(3 / \delta_k)}{n}}
              + \frac{6 C \log(3 / \delta_k)}{n}

    stops the test. The whole test errs with probability at most :math:`\delta`. The range enters
    divided by :math:`n`: with many rows the spread counts, not the range.

    Parameters
    ----------
    largest_difference : float or callable
        :math:`C`, nats: no row's log-likelihood difference (less its control variate) is larger in
        absolute value. Or a function ``(proposed, current) -> C`` of two points, arrays of shape
        (d,): for a logistic regression, say, the largest norm of a row of covariates times
        ``np.linalg.norm(proposed - current)``.
    error_probability : float
        :math:`\delta`, largest probability of a wrong decision.
    power : float
        :math:`p`: how fast the shares :math:`\delta_k` fall.

    Raises
    ------
    SettingError
        If a parameter is out of range.

    Notes
    -----
    For uniform samples only. :math:`s_n` is taken from the standard error, whose finite population
    correction is undone.

    References
    ----------
    Bardenet, R., Doucet, A. and Holmes, C. (2014). Towards scaling up Markov chain Monte Carlo: an
    adaptive subsampling approach. ICML, section 4 and algorithm 2.
    Audibert, J.-Y., Munos, R. and Szepesvári, C. (2009). Exploration-exploitation trade-off using
    variance estimates in multi-armed bandits. Theoretical Computer Science 410, theorem 1.

    Examples
    --------
    >>> from pymc_austerity.sequential import EmpiricalBernsteinTest, Evidence
    >>> rule = EmpiricalBernsteinTest(largest_difference=1.0, error_probability=0.05)
    >>> rule.stops(Evidence(2_000.0, 60.0, 499, n_seen=500, n_rows=10_000, n_looks=1))
    True
    """

    def error(self, evidence: Evidence) -> float:
        """Bound of the probability of such a distance from the true mean, at most 1."""
        n = evidence.n_seen
        distance = abs(evidence.distance) / evidence.n_rows
        # distance = s sqrt(2 y) + 6 C y, a quadratic in sqrt(y), with y = log(3 / error) / n
        half = row_standard_deviation(evidence) * math.sqrt(0.5)
        range_term = 6.0 * self.bound
        root = distance / (half + math.sqrt(half * half + range_term * distance))
        return min(1.0, 3.0 * math.exp(-n * root * root))


def row_standard_deviation(evidence: Evidence) -> float:
    """Sample standard deviation of the differences of a uniform sample, nats."""
    n, n_rows = evidence.n_seen, evidence.n_rows
    share_left = 1.0 - (n - 1) / (n_rows - 1)
    return evidence.standard_error / n_rows * math.sqrt(n / share_left)
