"""Barker's acceptance, with the logistic variable made from the noise of the estimate."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.special import expit, ndtr

from pymc_austerity.arguments import checked_number
from pymc_austerity.parts import part
from pymc_austerity.sequential.protocols import Decision, Evidence, Survey, TestDescription
from pymc_austerity.sequential.stopping import exceeds

_RANGE = 20.0
"""Largest correction, nats; a logistic variable exceeds it with probability 2e-9."""

_SPACING = 0.2
"""Spacing of possible corrections, nats. The normal variable added to them fills the gaps."""

_N_POINTS = 400
"""Points at which the distribution functions are matched."""


class LogisticCorrection(NamedTuple):
    """A variable that, added to a normal one, makes a standard logistic variable.

    Attributes
    ----------
    values : float array, shape (n,), nats
        Possible values, increasing.
    cumulative : float array, shape (n,)
        Its distribution function at `values`; the last one is 1.
    error : float
        Largest difference between the distribution function of the sum and the logistic one.
    """

    values: NDArray[np.float64]
    cumulative: NDArray[np.float64]
    error: float

    def draw(self, rng: np.random.Generator) -> float:
        """One correction, nats."""
        return float(drawn_correction(self.values, self.cumulative, rng))


@part(types.float64)
def drawn_correction(values: Any, cumulative: Any, rng: np.random.Generator) -> Any:
    """One of some values, with the probabilities that their distribution function has."""
    k, uniform = 0, rng.random()
    while uniform >= cumulative[k]:
        k += 1
    return values[k]


@part(types.boolean)
def accepts_at_random(
    distance: float, standard_error: float, noise: float, values: Any, cumulative: Any, rng: Any
) -> bool:
    """Whether a distance plus logistic noise is above 0; see `BarkerTest`.

    Parameters
    ----------
    distance, standard_error : float
        Estimated distance from the threshold, nats; the error is 0 where all rows were read.
    noise : float
        As in `BarkerTest`.
    values, cumulative : sequences of float
        As in `LogisticCorrection`.
    rng : numpy.random.Generator
    """
    if standard_error == 0.0:
        return distance + rng.logistic() > 0.0
    missing = math.sqrt(noise * noise - standard_error * standard_error)
    total = distance + missing * rng.standard_normal()
    return total + drawn_correction(values, cumulative, rng) > 0.0


@lru_cache(maxsize=64)
def logistic_correction(standard_deviation: float) -> LogisticCorrection:
    r"""Distribution that turns normal noise into logistic noise, computed numerically.

    Finds probabilities :math:`p_k \ge 0` of symmetric corrections :math:`\pm x_k` such that

    .. math:: \sum_k \frac{p_k}{2} \left[ \Phi\left(\frac{y - x_k}{\sigma}\right)
              + \Phi\left(\frac{y + x_k}{\sigma}\right) \right] \approx \frac{1}{1 + e^{-y}}

    in the sense of least squares over a grid of :math:`y`. No exact solution exists: the
    characteristic function :math:`\pi t / \sinh(\pi t)` of the logistic distribution falls more
    slowly than that of the normal one. The remaining error is part of the result.

    Parameters
    ----------
    standard_deviation : float
        :math:`\sigma` of the normal variable, nats, between 0.5 and 1.2. The error grows with it.

    Returns
    -------
    LogisticCorrection
        A few dozen possible values and their distribution.

    Notes
    -----
    Non-negative least squares leave few values with positive probability. The
    original paper instead solves for a density on a fine grid by ridge regression, and clips
    negative values.

    References
    ----------
    Seita, D., Pan, X., Chen, H. and Canny, J. (2017). An efficient minibatch acceptance test for
    Metropolis-Hastings. UAI, section 4.

    Examples
    --------
    >>> from pymc_austerity.sequential import logistic_correction
    >>> logistic_correction(1.0).error < 1e-6 < logistic_correction(1.2).error
    True
    """
    values = np.arange(0.0, _RANGE + _SPACING / 2.0, _SPACING)
    points = np.linspace(0.0, _RANGE + 4.0, _N_POINTS)
    sums_to_one = np.full(values.size, 100.0)
    matrix = np.vstack([_distribution(points, values, standard_deviation) - 0.5, sums_to_one])
    halves, _ = nnls(matrix, np.append(expit(points) - 0.5, 100.0), maxiter=100 * values.size)
    halves /= halves.sum()
    fine = np.linspace(0.0, 2.0 * _RANGE, 10 * _N_POINTS)
    error = np.abs(_distribution(fine, values, standard_deviation) @ halves - expit(fine)).max()
    kept = halves > 0.0
    return _symmetric(values[kept], halves[kept], float(error))


def _distribution(
    points: NDArray[np.float64], values: NDArray[np.float64], standard_deviation: float
) -> NDArray[np.float64]:
    """Distribution function of normal noise plus or minus each value, at each point."""
    above = ndtr((points[:, None] - values) / standard_deviation)
    below = ndtr((points[:, None] + values) / standard_deviation)
    return np.asarray(0.5 * (above + below))


def _symmetric(
    values: NDArray[np.float64], probabilities: NDArray[np.float64], error: float
) -> LogisticCorrection:
    both = np.concatenate([-values[::-1], values])
    cumulative = np.cumsum(np.concatenate([probabilities[::-1], probabilities]) / 2.0)
    cumulative[-1] = 1.0
    return LogisticCorrection(both, cumulative, error)


class _SmallNoise(NamedTuple):
    """Stops as soon as the standard error is small, whatever the side; its error is just that."""

    largest: float

    def stops(self, evidence: Evidence) -> bool:
        return evidence.standard_error <= self.largest

    def error(self, evidence: Evidence) -> float:
        return evidence.standard_error


@dataclass(frozen=True)
class BarkerTest:
    r"""Accept with Barker's probability, reading as few rows as the test's own noise allows.

    Barker's acceptance probability :math:`1 / (1 + e^{-\Delta})`, with
    :math:`\Delta = \sum_i l_i - \psi_1` and :math:`\psi_1` the Metropolis-Hastings threshold at
    :math:`u = 1`, is the probability that :math:`\Delta + X > 0` for a standard logistic
    :math:`X`. The estimate of :math:`\Delta` itself has normal noise of standard deviation
    :math:`s`. As soon as :math:`s \le \sigma`,

    .. math:: \hat\Delta + \mathrm{Normal}(0, \sigma^2 - s^2) + X_\mathrm{corr} > 0

    is decided instead, with a correction that makes the total noise logistic.

    The test does not depend on the evidence for one side, and there is no uniform random number:
    the decision is random, not right or wrong.

    Parameters
    ----------
    noise : float
        :math:`\sigma`, nats: the standard error of the sum at which the test decides.

    Raises
    ------
    SettingError
        If `noise` lies outside [0.5, 1.2]. With more noise, the correction would be too inaccurate;
        with less, the correction would dominate, and rows would be read to no avail.

    Notes
    -----
    The test leaves the posterior invariant, as Metropolis-Hastings does, but accepts less often:
    half as often at :math:`\Delta = 0`. Its errors are those of the normal approximation, of the
    estimated standard error, and of the correction (`LogisticCorrection.error`). The number of
    rows that it reads depends only on their spread, never on the side on which the sum lies.

    References
    ----------
    Seita, D., Pan, X., Chen, H. and Canny, J. (2017). An efficient minibatch acceptance test for
    Metropolis-Hastings. UAI.
    Barker, A. A. (1965). Monte Carlo calculations of the radial distribution functions for a
    proton-electron plasma. Australian Journal of Physics 18, 119-133.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.sequential import BarkerTest, UniformSurvey
    >>> class Stream:
    ...     def __init__(self, values):
    ...         self.values, self.n_seen = values, 0
    ...     def read(self, n_rows):
    ...         self.n_seen += n_rows
    ...         yield self.values[self.n_seen - n_rows : self.n_seen]
    >>> rng = np.random.default_rng(1)
    >>> differences = rng.normal(0.001, 0.002, size=10_000)
    >>> survey = UniformSurvey(Stream(differences), n_rows=10_000, batch_size=100)
    >>> decision = BarkerTest().decide(survey, 0.0, rng)
    >>> decision.accept, decision.n_rows_used
    (True, 400)
    """

    noise: float = 1.0

    def __post_init__(self) -> None:
        checked_number(
            "noise",
            self.noise,
            lambda noise: 0.5 <= noise <= 1.2,
            "the standard error of a sum to decide at",
            "a number of nats between 0.5 and 1.2",
        )

    @cached_property
    def correction(self) -> LogisticCorrection:
        """Variable that is added to normal noise of standard deviation `noise`."""
        return logistic_correction(self.noise)

    @cached_property
    def description(self) -> TestDescription:
        """Properties that the rest of the package uses; batches double until the error is small."""
        return TestDescription(
            name="BarkerTest",
            summary=f"Barker's test with noise of {self.noise:g} nats",
            acceptance="barker",
            growth=2.0,
        )

    def decide(self, survey: Survey, log_ratio: float, rng: np.random.Generator) -> Decision:
        r"""Accept or reject at random.

        Parameters
        ----------
        survey : Survey
            A sample of which no rows have been read.
        log_ratio : float
            Log of the Metropolis-Hastings ratio without the sum of all differences, nats:
            :math:`-\psi_1`.
        rng : numpy.random.Generator
            Draws the noise.

        Returns
        -------
        Decision
            A rejection as soon as a difference is not finite. `decision_error` is the error of
            the acceptance probability due to the correction; 0 when all rows were read.
        """
        decision = exceeds(survey, -log_ratio, rule=_SmallNoise(self.noise))
        decision = decision._replace(log_threshold=math.nan)
        distance = survey.total + log_ratio
        if not math.isfinite(distance):
            return decision
        values, cumulative, error = self.correction
        its_own = decision.decision_error, self.noise, values, cumulative
        accept = bool(accepts_at_random(distance, *its_own, rng))
        return decision._replace(accept=accept, decision_error=0.0 if decision.exact else error)
