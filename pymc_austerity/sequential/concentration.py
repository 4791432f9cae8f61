"""Tests whose error is bounded for rows of any distribution, if the bound on the rows is right."""

import math
from dataclasses import dataclass
from functools import cached_property

from pymc_austerity.arguments import checked_number, checked_rate
from pymc_austerity.sequential.protocols import BoundOfDifferences, Evidence, TestDescription
from pymc_austerity.sequential.stopping import StoppingTest


@dataclass(frozen=True)
class ConcentrationTest(StoppingTest):
    """Common part of tests by inequalities: their bound, and the division of the error among looks.

    A bound that is a function of two points is evaluated when a survey begins, and the survey
    passes the number on with the evidence.
    """

    largest_difference: BoundOfDifferences
    error_prob: float = 0.05

    def __post_init__(self) -> None:
        if not callable(self.largest_difference):
            checked_number(
                "largest_difference",
                self.largest_difference,
                lambda bound: 0.0 < bound < math.inf,
                "a bound of differences",
                "a positive number of nats, or a function of two points that returns one",
            )
        checked_rate("error_prob", self.error_prob, "the probability of an error")

    @cached_property
    def description(self) -> TestDescription:
        """Properties that the rest of the package uses; batches double, so there are few looks."""
        name = type(self).__name__
        return TestDescription(
            name=name,
            summary=f"{name} with epsilon={self.error_prob:g}",
            assumption="bounded differences",
            epsilon=self.error_prob,
            growth=2.0,
            largest_difference=self.largest_difference,
        )

    @property
    def epsilon(self) -> float:
        """Largest probability of a wrong decision."""
        return self.error_prob

    def bound_of(self, evidence: Evidence) -> float:
        """Bound on the absolute difference of a row, nats."""
        bound = self.largest_difference
        return evidence.largest_difference if callable(bound) else bound

    def stops(self, evidence: Evidence) -> bool:
        """Whether the distance from the threshold is beyond what the inequality allows for."""
        return self.error(evidence) < self.share_of_error(evidence.n_looks)

    def share_of_error(self, look: int) -> float:
        r"""Error allowed at a look, :math:`\delta_k`; all looks together have at most the whole."""
        return 0.5 / look**2 * self.error_prob


@dataclass(frozen=True)
class EmpiricalBernsteinTest(ConcentrationTest):
    r"""Stop when the empirical Bernstein inequality leaves only one side of the threshold.

    At look :math:`k`, with :math:`n` rows seen, :math:`s_n` the standard deviation of their
    differences and :math:`\delta_k = \frac{\delta}{2 k^2}`,

    .. math:: |\bar l - \mu_0| > c_k = s_n \sqrt{\frac{2 \log(3 / \delta_k)}{n}}
              + \frac{6 C \log(3 / \delta_k)}{n}

    stops the test. The whole test is wrong with probability at most :math:`\delta`. The range is
    divided by :math:`n`: with many rows the spread matters, not the range.

    Parameters
    ----------
    largest_difference : float or callable
        :math:`C`, nats: no row's log-likelihood difference (minus its control variate) is larger in
        absolute value. Or a function ``(proposed, current) -> C`` of two points, arrays of shape
        (d,): for a logistic regression, for example, the largest norm of a row of covariates times
        ``np.linalg.norm(proposed - current)``.
    error_prob : float
        :math:`\delta`, largest probability of a wrong decision.

    Raises
    ------
    SettingError
        If a parameter is out of range.

    Notes
    -----
    For uniform samples only. :math:`s_n` is computed from the standard error, by undoing its finite
    population correction.

    References
    ----------
    Bardenet, R., Doucet, A. and Holmes, C. (2014). Towards scaling up Markov chain Monte Carlo: an
    adaptive subsampling approach. ICML, section 4 and algorithm 2.
    Audibert, J.-Y., Munos, R. and Szepesvári, C. (2009). Exploration-exploitation trade-off using
    variance estimates in multi-armed bandits. Theoretical Computer Science 410, theorem 1.

    Examples
    --------
    >>> from pymc_austerity.sequential import EmpiricalBernsteinTest, Evidence
    >>> rule = EmpiricalBernsteinTest(largest_difference=1.0, error_prob=0.05)
    >>> rule.stops(Evidence(2_000.0, 60.0, 499, n_seen=500, n_rows=10_000, n_looks=1))
    True
    """

    def error(self, evidence: Evidence) -> float:
        """Bound on the probability of such a distance from the true mean, at most 1."""
        n = evidence.n_seen
        distance = abs(evidence.distance) / evidence.n_rows
        # distance = s sqrt(2 y) + 6 C y, a quadratic in sqrt(y), with y = log(3 / error) / n
        half = row_standard_deviation(evidence) * math.sqrt(0.5)
        range_term = 6.0 * self.bound_of(evidence)
        root = distance / (half + math.sqrt(half * half + range_term * distance))
        return min(1.0, 3.0 * math.exp(-n * root * root))


def row_standard_deviation(evidence: Evidence) -> float:
    """Sample standard deviation of the differences of a uniform sample, nats."""
    n, n_rows = evidence.n_seen, evidence.n_rows
    share_left = 1.0 - (n - 1) / (n_rows - 1)
    return evidence.standard_error / n_rows * math.sqrt(n / share_left)


@dataclass(frozen=True)
class HoeffdingTest(ConcentrationTest):
    r"""Stop when Hoeffding's inequality without replacement leaves only one side of the threshold.

    At look :math:`k`, with :math:`n` of :math:`N` rows seen and
    :math:`\delta_k = \frac{\delta}{2 k^2}`,

    .. math:: |\bar l - \mu_0| > c_k = C \sqrt{\frac{2}{n} \left(1 - \frac{n-1}{N}\right)
              \log \frac{2}{\delta_k}}

    stops the test. The whole test is wrong with probability at most :math:`\delta`, for any
    number of looks and any distribution of the rows, provided that :math:`C` is a bound.

    Parameters
    ----------
    largest_difference : float or callable
        :math:`C`, nats: no row's log-likelihood difference (minus its control variate) is larger in
        absolute value. Or a function ``(proposed, current) -> C`` of two points, arrays of shape
        (d,): for a logistic regression, for example, the largest norm of a row of covariates times
        ``np.linalg.norm(proposed - current)``.
    error_prob : float
        :math:`\delta`, largest probability of a wrong decision.

    Raises
    ------
    SettingError
        If a parameter is out of range.

    Notes
    -----
    For uniform samples only. :math:`C` is usually far above the standard deviation of the
    differences, so most decisions read all rows: this is the cost of a guarantee. Samples
    that double from look to look divide :math:`\delta` among fewer looks.

    References
    ----------
    Bardenet, R., Doucet, A. and Holmes, C. (2014). Towards scaling up Markov chain Monte Carlo: an
    adaptive subsampling approach. ICML, section 4 and algorithm 2.
    Serfling, R. J. (1974). Probability inequalities for the sum in sampling without replacement.
    The Annals of Statistics 2(1), 39-48.

    Examples
    --------
    >>> from pymc_austerity.sequential import Evidence, HoeffdingTest
    >>> rule = HoeffdingTest(largest_difference=1.0, error_prob=0.05)
    >>> rule.stops(Evidence(2_000.0, 60.0, 499, n_seen=500, n_rows=10_000, n_looks=1))
    True
    >>> rule.stops(Evidence(1_000.0, 60.0, 499, n_seen=500, n_rows=10_000, n_looks=1))
    False
    """

    def error(self, evidence: Evidence) -> float:
        """Bound on the probability of such a distance from the true mean, at most 1."""
        n, n_rows = evidence.n_seen, evidence.n_rows
        distance = evidence.distance / n_rows / self.bound_of(evidence)
        exponent = 0.5 * n * distance * distance / (1.0 - (n - 1) / n_rows)
        return min(1.0, 2.0 * math.exp(-exponent))
