"""A sequential t-test whose early looks need more evidence than late ones, or less."""

import math
from dataclasses import dataclass
from functools import cached_property

from numba import types
from scipy.special import ndtri

from pymc_austerity.arguments import checked_number, checked_tail
from pymc_austerity.parts import part
from pymc_austerity.sequential.protocols import Evidence, TestDescription
from pymc_austerity.sequential.student_t import TailProbabilityTest

__all__ = ["WangTsiatisTest", "level_of_look", "normal_boundary"]

_ROOT_OF_HALF = math.sqrt(0.5)


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
class WangTsiatisTest(TailProbabilityTest):
    r"""Stop as soon as the tail probability of Student's t falls below the level of the look.

    The level is that of a normal variable beyond the boundary of Wang and Tsiatis, with
    :math:`\pi = n / N` the share of the rows seen:

    .. math:: \epsilon(\pi) = 1 - \Phi\left(G_0 \, \pi^{\alpha - 1/2}\right),
              \qquad G_0 = \Phi^{-1}(1 - \epsilon)

    With :math:`\alpha < 1/2`, early looks need stronger evidence than late ones, and the error of
    the whole test grows less with the number of looks.

    Parameters
    ----------
    epsilon : float
        Level as :math:`\pi \to 1`, in [0, 0.5].
    alpha : float
        Shape of the boundary. 1/2 is `StudentTTest`, 0 is the boundary of O'Brien and Fleming.
    relative : bool
        As for `StudentTTest`, with the level of the look as the share.

    Raises
    ------
    SettingError
        If `epsilon` lies outside [0, 0.5].

    Notes
    -----
    If the boundary is beyond some 37 standard errors, as at looks at a tiny share of the rows, the
    level is smaller than the smallest floating-point number, and no evidence stops the test.

    References
    ----------
    Wang, S. K. and Tsiatis, A. A. (1987). Approximately optimal one-parameter boundaries for group
    sequential trials. Biometrics 43(1), 193-199.
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. ICML, section 5.1 and supplement.

    Examples
    --------
    >>> from pymc_austerity.sequential import Evidence, StudentTTest, WangTsiatisTest
    >>> evidence = Evidence(20.0, 10.0, 499, n_seen=500, n_rows=10_000, n_looks=1)
    >>> [test.stops(evidence) for test in (StudentTTest(0.05), WangTsiatisTest(0.05, alpha=0.25))]
    [True, False]
    """

    epsilon: float
    alpha: float = 0.5
    relative: bool = False

    def __post_init__(self) -> None:
        checked_tail("epsilon", self.epsilon)
        checked_number("alpha", self.alpha, math.isfinite, "an exponent", "a finite number")

    @cached_property
    def description(self) -> TestDescription:
        """Properties that the rest of the package uses."""
        return TestDescription(
            name="WangTsiatisTest",
            summary=f"t-test of Wang and Tsiatis with epsilon={self.epsilon:g}",
            assumption="normal means",
            epsilon=self.epsilon,
            alpha=self.alpha,
        )

    def level(self, evidence: Evidence) -> float:
        """Level of the look, by the share of the rows seen."""
        share = evidence.n_seen / evidence.n_rows
        return level_of_look(self.epsilon, self.quantile, self.alpha, share)

    @cached_property
    def quantile(self) -> float:
        """Quantile of the normal distribution at `epsilon`."""
        return float(ndtri(self.epsilon))
