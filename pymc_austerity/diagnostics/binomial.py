"""An interval for a probability that is valid for every sample size."""

from scipy.stats import binomtest

__all__ = ["exact_interval"]


def exact_interval(n_hits: int, n_trials: int, prob: float) -> tuple[float, float]:
    """Clopper-Pearson interval of a probability, from hits in independent trials.

    Parameters
    ----------
    n_hits, n_trials : int
        Numbers of hits and of trials; without trials, the interval is (0, 1).
    prob : float
        Minimum coverage, in (0, 1).

    Returns
    -------
    tuple of float
        Lower and upper end, in [0, 1].

    References
    ----------
    Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated
    in the case of the binomial. Biometrika 26(4), 404-413.

    Examples
    --------
    >>> from pymc_austerity.diagnostics.binomial import exact_interval
    >>> low, high = exact_interval(0, 100, 0.95)
    >>> low, round(high, 4), round(1 - 0.025 ** (1 / 100), 4)
    (0.0, 0.0362, 0.0362)
    """
    if n_trials == 0:
        return 0.0, 1.0
    interval = binomtest(n_hits, n_trials).proportion_ci(prob, method="exact")
    return float(interval.low), float(interval.high)
