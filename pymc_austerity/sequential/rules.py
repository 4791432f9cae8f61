"""Stopping rules: sequential t-tests, and inequalities for rows of any distribution."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from numba import types
from scipy.special import ndtri, stdtr

from pymc_austerity.arguments import checked_number, checked_rate, checked_tail
from pymc_austerity.parts import part
from pymc_austerity.sequential.protocols import BoundOfDifferences, Evidence, TestDescription
from pymc_austerity.sequential.stopping import StoppingTest

_ROOT_OF_HALF = math.sqrt(0.5)
_LARGE = 700.0
"""Its exponential is still a floating-point number."""

Schedule: TypeAlias = Callable[[int], float]
"""Maps the number of a draw, counted from 0 at the first tuning draw, to its epsilon."""


@part(types.float64)
def relative_excess(distance: float, standard_error: float) -> float:
    r"""Share by which a look raises small acceptance probabilities, if it accepts at this distance.

    Let the acceptance probability be :math:`\alpha = e^\Lambda < 1`, and let the estimate of the
    log-ratio :math:`\Lambda` be normal with standard error :math:`s`. A look that accepts
    wherever the estimate is at least :math:`c` above :math:`\log u` accepts wrongly with
    probability

    .. math::
        \int_\alpha^1 \Phi\left(\frac{\Lambda - \log u - c}{s}\right) du \le
        \alpha \left[ e^{s^2 / 2 - c} \, \Phi(s - c / s) - \Phi(-c / s) \right] ,

    by :math:`u = \alpha e^v`, the integral over all :math:`v > 0`, and integration by parts.

    Parameters
    ----------
    distance : float
        :math:`c`, nats, above 0.
    standard_error : float
        :math:`s`, nats, above 0.

    Returns
    -------
    float
        The factor of :math:`\alpha` in the bound.

    Notes
    -----
    (Derived here.) A wrong acceptance that is improbable by itself matters where the right one is
    even less probable. A chain in a tail makes many proposals that should be rejected, and one of
    them accepted by mistake ends its stay. The stationary distribution depends on the ratio of the
    acceptance probabilities of a move and of its reverse. Rejections need no such care:
    with probability :math:`\epsilon` of a wrong one, they lower :math:`\alpha` by a share of
    :math:`\epsilon` at most.

    Examples
    --------
    >>> [round(relative_excess(1.645 * s, s), 3) for s in (0.3, 1.0, 2.0)]
    [0.007, 0.033, 0.126]
    """
    exponent = min(0.5 * standard_error * standard_error - distance, _LARGE)
    statistic = distance / standard_error
    tilted = math.exp(exponent) * math.erfc((statistic - standard_error) * _ROOT_OF_HALF)
    return 0.5 * (tilted - math.erfc(statistic * _ROOT_OF_HALF))


@dataclass(frozen=True)
class Tightening:
    """Linear decrease from a loose tail probability to the final one, which then stays constant.

    A loose test is cheaper. It suffices during tuning: far from the posterior, most decisions are
    clear, and draws of the tuning phase are discarded.

    Parameters
    ----------
    epsilon : float
        Final tail probability, in [0, 0.5].
    loosest : float
        Tail probability of the first draw; not below `epsilon`.
    n_draws : int
        Draws after which `epsilon` is reached.

    Examples
    --------
    >>> from pymc_austerity.sequential import Tightening
    >>> schedule = Tightening(0.05, loosest=0.25, n_draws=100)
    >>> [round(schedule(draw), 3) for draw in (0, 50, 100, 10_000)]
    [0.25, 0.15, 0.05, 0.05]
    """

    epsilon: float
    loosest: float = 0.2
    n_draws: int = 500

    def __call__(self, draw: int) -> float:
        """Tail probability of a draw."""
        if draw >= self.n_draws or self.loosest <= self.epsilon:
            return self.epsilon
        return self.loosest + (self.epsilon - self.loosest) * (draw / self.n_draws)


@part(types.boolean)
def is_clear(error: Any, excess: Any, level: Any) -> Any:
    """Whether a t-test stops, of numbers or arrays of them.

    Parameters
    ----------
    error : float
        Tail probability beyond its statistic.
    excess : float
        `relative_excess` where it accepts and this matters, else 0.
    level : float
        Largest tail probability at which it stops, in [0, 0.5].
    """
    return ((error < level) | (level >= 0.5)) & (excess <= level)


@part(types.float64)
def excess_of(distance: float, standard_error: float, relative: bool) -> float:
    """`relative_excess` of a look that accepts, if it matters, else 0."""
    return relative_excess(distance, standard_error) if relative and distance > 0.0 else 0.0


@part(types.float64)
def normal_boundary(quantile: float, alpha: float, share: float) -> float:
    """Quantile of the normal distribution at the level of a look at a share of the rows."""
    return quantile if alpha == 0.5 else quantile * share ** (alpha - 0.5)


@part(types.float64)
def level_of_look(epsilon: float, quantile: float, alpha: float, share: float) -> float:
    """Level of a look at a share of the rows; `quantile` is the normal one at `epsilon`."""
    if alpha == 0.5:
        return epsilon
    return 0.5 * math.erfc(-normal_boundary(quantile, alpha, share) * _ROOT_OF_HALF)


@dataclass(frozen=True)
class StudentTTest(StoppingTest):
    r"""Stop as soon as the tail probability of Student's t falls below the level of the look.

    With :math:`\bar l` the mean of the differences seen so far, :math:`\mu_0` the threshold and
    :math:`s` the standard error of the mean under sampling without replacement,

    .. math:: \delta = 1 - F_{n-1}\left(|\bar l - \mu_0| / s\right) < \epsilon(\pi)

    stops the test. With `alpha` 1/2, the papers' test, the level is `epsilon` at every look (a
    Pocock boundary), which bounds the error of ONE look: the whole test is wrong more often, up to
    several times as often when the mean lies close to the threshold. Otherwise the level is that
    of a normal variable beyond the boundary of Wang and Tsiatis, with :math:`\pi = n / N` the share
    of the rows seen:

    .. math:: \epsilon(\pi) = 1 - \Phi\left(G_0 \, \pi^{\alpha - 1/2}\right),
              \qquad G_0 = \Phi^{-1}(1 - \epsilon)

    With :math:`\alpha < 1/2`, early looks need stronger evidence than late ones, and the error of
    the whole test grows less with the number of looks.

    Parameters
    ----------
    epsilon : float
        Largest tail probability at which the test stops as :math:`\pi \to 1`, in [0, 0.5]. At 0 it
        never stops before all rows are read; at 0.5 it stops at the first look.
    relative : bool
        Whether a look accepts only where that raises a small acceptance probability by at most a
        share of the level (`relative_excess`). The papers' test does not ask for this.
        `AusterityMH` does where there are control variates: they make standard errors small, so
        that it costs little.
    alpha : float
        Shape of the boundary: 1/2 for the same level at all looks, 0 for the boundary of O'Brien
        and Fleming.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, algorithm 1, section 5.1 and supplement.
    Wang, S. K. and Tsiatis, A. A. (1987). Approximately optimal one-parameter boundaries for group
    sequential trials. Biometrics 43(1), 193-199.

    Raises
    ------
    SettingError, SettingTypeError
        If `epsilon` is out of range or not a number, or `alpha` is not finite.

    Notes
    -----
    If the boundary is beyond some 37 standard errors, as at looks at a tiny share of the rows with
    a small `alpha`, the level is smaller than the smallest floating-point number, and no evidence
    stops the test.

    Examples
    --------
    >>> from pymc_austerity.sequential import Evidence, StudentTTest
    >>> rule = StudentTTest(epsilon=0.05)
    >>> rule.stops(Evidence(-10.0, 10.0, 499, n_seen=500, n_rows=10_000, n_looks=1))
    False
    >>> evidence = Evidence(20.0, 10.0, 499, n_seen=500, n_rows=10_000, n_looks=1)
    >>> [test.stops(evidence) for test in (rule, StudentTTest(0.05, alpha=0.25))]
    [True, False]
    """

    epsilon: float
    relative: bool = False
    alpha: float = 0.5

    def __post_init__(self) -> None:
        checked_tail("epsilon", self.epsilon)
        checked_number("alpha", self.alpha, math.isfinite, "an exponent", "a finite number")

    @cached_property
    def description(self) -> TestDescription:
        """Properties that the rest of the package uses."""
        shape = "" if self.alpha == 0.5 else f" and alpha={self.alpha:g}"
        return TestDescription(
            name="StudentTTest",
            summary=f"Student's t-test with epsilon={self.epsilon:g}{shape}",
            assumption="normal means",
            epsilon=self.epsilon,
            alpha=self.alpha,
        )

    def stops(self, evidence: Evidence) -> bool:
        """Whether the tail probability of Student's t is below the level of this look."""
        share, quantile = evidence.n_seen / evidence.n_rows, self._quantile
        level = level_of_look(self.epsilon, quantile, self.alpha, share)
        excess = excess_of(evidence.distance, evidence.standard_error, self.relative)
        return bool(is_clear(self.error(evidence), excess, level))

    def error(self, evidence: Evidence) -> float:
        """Tail probability of Student's t beyond the observed statistic."""
        statistic = abs(evidence.distance) / evidence.standard_error
        return float(stdtr(evidence.degrees_of_freedom, -statistic))

    @cached_property
    def _quantile(self) -> float:
        return float(ndtri(self.epsilon))


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
        return self.error(evidence) < share_of_error(self.error_prob, evidence.n_looks)


@part(types.float64)
def share_of_error(error_prob: float, look: int) -> float:
    r"""Error allowed at a look, :math:`\delta_k`; all looks together have at most the whole."""
    return 0.5 / look**2 * error_prob


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
        return bernstein_error(evidence, self.bound_of(evidence))


@part(types.float64)
def bernstein_error(evidence: Evidence, largest_difference: float) -> float:
    """See `EmpiricalBernsteinTest`."""
    n, distance = evidence.n_seen, abs(evidence.distance) / evidence.n_rows
    # distance = s sqrt(2 y) + 6 C y, a quadratic in sqrt(y), with y = log(3 / error) / n
    half = row_standard_deviation(evidence) * _ROOT_OF_HALF
    root = distance / (half + math.sqrt(half * half + 6.0 * largest_difference * distance))
    return min(1.0, 3.0 * math.exp(-n * root * root))


@part(types.float64)
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
        return hoeffding_error(evidence, self.bound_of(evidence))


@part(types.float64)
def hoeffding_error(evidence: Evidence, largest_difference: float) -> float:
    """See `HoeffdingTest`."""
    n, n_rows = evidence.n_seen, evidence.n_rows
    distance = evidence.distance / n_rows / largest_difference
    exponent = 0.5 * n * distance * distance / (1.0 - (n - 1) / n_rows)
    return min(1.0, 2.0 * math.exp(-exponent))
