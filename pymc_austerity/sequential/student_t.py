"""The sequential t-test of Korattikara, Chen and Welling (2014)."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numba import types
from scipy.special import stdtr

from pymc_austerity.arguments import checked_tail
from pymc_austerity.parts import part
from pymc_austerity.sequential.protocols import Evidence, TestDescription
from pymc_austerity.sequential.relative import relative_excess
from pymc_austerity.sequential.stopping import StoppingTest

__all__ = ["StudentTTest", "TailProbabilityTest", "excess_of", "is_clear"]


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


class TailProbabilityTest(StoppingTest):
    """Common part of t-tests: the level of a look is the tail probability at which they stop."""

    relative: bool

    @abstractmethod
    def level(self, evidence: Evidence) -> float:
        """Level of a look."""

    def stops(self, evidence: Evidence) -> bool:
        """Whether the tail probability of Student's t is below the level of this look."""
        excess = excess_of(evidence.distance, evidence.standard_error, self.relative)
        return bool(is_clear(self.error(evidence), excess, self.level(evidence)))

    def error(self, evidence: Evidence) -> float:
        """Tail probability of Student's t beyond the observed statistic."""
        statistic = abs(evidence.distance) / evidence.standard_error
        return float(stdtr(evidence.degrees_of_freedom, -statistic))


@dataclass(frozen=True)
class StudentTTest(TailProbabilityTest):
    r"""Stop as soon as the tail probability of Student's t falls below a threshold.

    With :math:`\bar l` the mean of the differences seen so far, :math:`\mu_0` the threshold and
    :math:`s` the standard error of the mean under sampling without replacement,

    .. math:: \delta = 1 - F_{n-1}\left(|\bar l - \mu_0| / s\right) < \epsilon

    stops the test. The boundary is the same at every look (a Pocock boundary), and `epsilon`
    bounds the error of ONE look: the whole test is wrong more often, up to several times as often
    when the mean lies close to the threshold.

    Parameters
    ----------
    epsilon : float
        Largest tail probability at which the test stops, in [0, 0.5]. At 0 it never stops before
        all rows are read; at 0.5 it stops at the first look.
    relative : bool
        Whether a look accepts only where that raises a small acceptance probability by at most a
        share of `epsilon` (`relative_excess`). The papers' test does not ask for this.
        `AusterityMH` does where there are control variates: they make standard errors small, so
        that it costs little.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, algorithm 1.

    Raises
    ------
    SettingError, SettingTypeError
        If `epsilon` is out of range or not a number.

    Examples
    --------
    >>> from pymc_austerity.sequential import Evidence, StudentTTest
    >>> rule = StudentTTest(epsilon=0.05)
    >>> rule.stops(Evidence(20.0, 10.0, 499, n_seen=500, n_rows=10_000, n_looks=1))
    True
    >>> rule.stops(Evidence(-10.0, 10.0, 499, n_seen=500, n_rows=10_000, n_looks=1))
    False
    """

    epsilon: float
    relative: bool = False

    def __post_init__(self) -> None:
        checked_tail("epsilon", self.epsilon)

    @cached_property
    def description(self) -> TestDescription:
        """Properties that the rest of the package uses."""
        return TestDescription(
            name="StudentTTest",
            summary=f"Student's t-test with epsilon={self.epsilon:g}",
            assumption="normal means",
            epsilon=self.epsilon,
        )

    def level(self, evidence: Evidence) -> float:
        """`epsilon`, the same for all looks."""
        return self.epsilon
