"""The test by the empirical Bernstein inequality."""

import math
from dataclasses import dataclass

from pymc_austerity.sequential.concentration import ConcentrationTest
from pymc_austerity.sequential.protocols import Evidence

__all__ = ["EmpiricalBernsteinTest", "row_standard_deviation"]


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
