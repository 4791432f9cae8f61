"""Whether sums of rows are normal enough for a t-test, measured on real differences."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit
from scipy.stats import binom

from pymc_austerity.design.wording import percentage
from pymc_austerity.strata import Strata

Floats = NDArray[np.float64]
_TOLERATED = 2.0
"""Largest acceptable ratio of the weight of a tail to its nominal weight."""

_CHANCE = 1e-4
"""Probability of a false alarm where the tail is just tolerable."""

_HARMLESS = 0.5
"""Share of the limit that wrong decisions at the first look may use up without harm."""

_SMALLEST_TAIL = 0.005
"""Tail probability below which a few thousand samples are not informative."""


@dataclass(frozen=True, eq=False)
class NormalityCheck:
    r"""How close the t statistic of the first look is to Student's t.

    Tails that are too heavy do harm only if the threshold often lies within them. A decision is
    wrong if the estimate of the sum is off by :math:`e`, and the true distance from the threshold
    is on the other side and less than :math:`|e| - q s`, with :math:`s` the standard error and
    :math:`q` the quantile at which the test stops. As the threshold contains :math:`\log u`,
    distances of about a nat are common: their density is taken to be that of a Laplace variable.

    Parameters
    ----------
    statistics : float array, shape (R,)
        The t statistic of R samples, centered at the sum of all rows.
    degrees_of_freedom : float array, shape (R,)
        Degrees of freedom of these statistics.
    standard_errors : float array, shape (R,), nats
        Estimated standard error of the sum.
    within : float array, shape (R, H)
        The t statistic of the mean of each stratum; NaN where all of its rows are read.
    within_degrees_of_freedom : float array, shape (H,)
        Degrees of freedom of these statistics.
    epsilon : float
        Tail probability at which the test stops.
    n_independent : int, optional
        Number of samples without overlap that would be as informative; by default all of them.
    limit : float, optional
        Acceptable share of wrong decisions; by default `epsilon`.

    References
    ----------
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land: Cutting the
    Metropolis-Hastings Budget. arXiv:1304.5299v1, section 4 and figure 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.design import NormalityCheck, first_look_statistics
    >>> from pymc_austerity.strata import Strata
    >>> rng = np.random.default_rng(1)
    >>> uniform = Strata.single(10_000, 100)
    >>> normal, skewed = rng.normal(size=10_000), rng.lognormal(sigma=4.0, size=10_000)
    >>> for rows in (normal, skewed):
    ...     samples = first_look_statistics([rows], uniform, n_samples=2_000, rng=rng)
    ...     print(NormalityCheck(*samples, epsilon=0.05).passes)
    True
    False
    """

    statistics: Floats
    degrees_of_freedom: Floats
    standard_errors: Floats
    within: Floats
    within_degrees_of_freedom: Floats
    epsilon: float
    n_independent: int | None = None
    limit: float | None = None

    @property
    def tail(self) -> float:
        """Tail probability at which tails are compared: `epsilon`, unless it is too small."""
        return max(self.epsilon, _SMALLEST_TAIL)

    @property
    def tail_shares(self) -> tuple[float, float]:
        """Shares of the statistics in the lower and upper tail; each is `tail` under normality."""
        return _shares(stdtr(self.degrees_of_freedom, self.statistics), self.tail)

    @property
    def wrong_decisions(self) -> float:
        """Expected share of wrong decisions at the first look."""
        quantile = np.abs(stdtrit(self.degrees_of_freedom, self.epsilon))
        beyond = self.standard_errors * np.maximum(np.abs(self.statistics) - quantile, 0.0)
        return float(-0.5 * np.mean(np.expm1(-beyond)))

    @property
    def is_light_tailed(self) -> bool:
        """Whether no tail is heavier than acceptable."""
        n_samples = self.n_independent or self.statistics.size
        most = binom.isf(_CHANCE, n_samples, min(1.0, _TOLERATED * self.tail))
        return bool(max(self.tail_shares) * n_samples <= most)

    @property
    def passes(self) -> bool:
        """Whether the tails are light or harmless."""
        limit = self.epsilon if self.limit is None else self.limit
        return self.is_light_tailed or self.wrong_decisions <= _HARMLESS * limit

    @property
    def worst_stratum(self) -> int:
        """The sampled stratum with the heaviest tail."""
        probabilities = stdtr(self.within_degrees_of_freedom, self.within)
        shares = [max(_shares(column, self.tail)) for column in probabilities.T]
        return int(np.argmax(shares))

    def __str__(self) -> str:
        low, high = self.tail_shares
        verdict = "NOT Student's t"
        if self.is_light_tailed:
            verdict = f"near enough to Student's t (a tail may be {_TOLERATED:g} times as heavy)"
        elif self.passes:
            verdict = "not Student's t, which does no harm"
        return (
            f"The t statistic of the first look is {verdict}: {low:.1%} and {high:.1%} of "
            f"{self.statistics.size:,} samples are in tails that have {self.tail:.1%} each under "
            f"Student's t; at the first look about {percentage(self.wrong_decisions)} of the "
            "decisions would be wrong."
        )


def _shares(probabilities: Floats, tail: float) -> tuple[float, float]:
    known = probabilities[np.isfinite(probabilities)]
    if not known.size:
        return 0.0, 0.0
    return float(np.mean(known < tail)), float(np.mean(known > 1.0 - tail))


def first_look_statistics(
    strata_of_pairs: list[Floats],
    strata: Strata,
    *,
    n_samples: int,
    rng: np.random.Generator,
    counts: NDArray[np.int64] | None = None,
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Statistics of first looks at real differences.

    Every sample consists of consecutive rows of each stratum from a random start, wrapping around,
    as in the step method.

    Parameters
    ----------
    strata_of_pairs : list of float arrays, each of shape (N,), nats
        Differences of all rows between two points, stratum by stratum and in random order within
        each, for every pair of points.
    strata : Strata
        Sizes of the strata and of the first look; one stratum for uniform samples.
    n_samples : int
        Number of samples for each pair.
    rng : numpy.random.Generator
        Draws the starts.
    counts : int array, shape (H,), optional
        Number of rows of each stratum whose differences are given, if these are a random sample.

    Returns
    -------
    statistics, degrees_of_freedom, standard_errors : float arrays, shape (R,)
        R is the number of pairs times `n_samples`, minus the samples without spread.
    within : float array, shape (R, H)
    within_degrees_of_freedom : float array, shape (H,)
        See `NormalityCheck`.
    """
    counts = strata.sizes if counts is None else counts
    found = [_of_pair(values, strata, counts, n_samples, rng) for values in strata_of_pairs]
    samples = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    statistics, freedom, errors, within = samples
    return statistics, freedom, errors, within, np.maximum(strata.first_counts - 1.0, 1.0)


def _of_pair(
    differences: Floats,
    strata: Strata,
    counts: NDArray[np.int64],
    n_samples: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Floats, Floats]:
    pieces = np.split(differences, np.cumsum(counts)[:-1])
    moments = [
        _window_moments(values, int(count), n_samples, rng)
        for values, count in zip(pieces, strata.first_counts, strict=True)
    ]
    errors = np.array([error for error, _ in moments]).T
    left = (counts - strata.first_counts) / np.maximum(counts - 1, 1)
    variances = np.array([variance for _, variance in moments]).T / strata.first_counts * left
    of_sum = variances * strata.sizes**2.0
    total = of_sum.sum(axis=1)
    known = total > 0.0
    free = np.maximum(strata.first_counts - 1.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics = (errors @ strata.sizes)[known] / np.sqrt(total[known])
        freedom = total[known] ** 2 / (of_sum[known] ** 2 @ (1.0 / free))
        within = errors[known] / np.sqrt(variances[known])
    return statistics, freedom, np.sqrt(total[known]), within


def _window_moments(
    values: Floats, count: int, n_samples: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Error of the mean and sample variance of `count` consecutive values from random starts."""
    if count >= values.size:
        return np.zeros(n_samples), np.zeros(n_samples)
    starts, mean = rng.integers(values.size, size=n_samples), values.mean()
    if n_samples * count <= values.size:  # else running sums take less time and memory
        seen = values[(starts[:, None] + np.arange(count)) % values.size] - mean
        return seen.mean(axis=1), seen.var(axis=1, ddof=1) if count > 1 else np.zeros(n_samples)
    centered = values - mean
    around = np.concatenate([centered, centered[: count - 1]])
    means = _window_sums(around, starts, count) / count
    squares = _window_sums(around * around, starts, count)
    variances = (squares - count * means * means) / (count - 1)
    return means, np.maximum(variances, 0.0)


def _window_sums(values: Floats, starts: NDArray[np.int64], count: int) -> Floats:
    totals = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(totals[starts + count] - totals[starts])
