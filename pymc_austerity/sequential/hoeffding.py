"""The test by Hoeffding's inequality."""

import math
from dataclasses import dataclass

from pymc_austerity.sequential.concentration import ConcentrationTest
from pymc_austerity.sequential.protocols import Evidence

__all__ = ["HoeffdingTest"]


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
