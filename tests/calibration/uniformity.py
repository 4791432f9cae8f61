"""Are ranks uniform, and do two samples come from the same distribution? P-values."""

import numpy as np
from numpy.typing import NDArray
from scipy import stats


def rank_among(value: float, others: NDArray, rng: np.random.Generator) -> int:
    """How many of the others are smaller, equal ones counted at random.

    With ties broken so, the rank of one of L + 1 exchangeable numbers is uniform on 0, ..., L,
    also if they are discrete.
    """
    smaller, equal = int((others < value).sum()), int((others == value).sum())
    return smaller + int(rng.integers(0, equal + 1))


def chi_square_of_ranks(ranks: NDArray, n_ranks: int, n_bins: int = 10) -> float:
    """P-value of the hypothesis that ranks are uniform on 0, ..., n_ranks - 1.

    Parameters
    ----------
    ranks : int array, shape (n,)
        Independent ranks.
    n_ranks : int
        Number of possible ones.
    n_bins : int
        Largest number of bins; fewer if `n_ranks` is not a multiple of it or if fewer than
        five ranks are expected in each.
    """
    possible = [k for k in range(2, n_bins + 1) if n_ranks % k == 0 and ranks.size >= 5 * k]
    if not possible:
        raise ValueError(f"{ranks.size} ranks of {n_ranks} are too few for a test")
    counts = np.bincount(ranks * max(possible) // n_ranks, minlength=max(possible))
    return float(stats.chisquare(counts).pvalue)


def smooth_test_of_ranks(ranks: NDArray, n_ranks: int) -> float:
    """P-value of the same hypothesis, from the mean and the spread of the ranks alone.

    A posterior in the wrong place shifts ranks, and one of the wrong width spreads them: few ranks
    tell more of these two than of everything at once. Parameters are those of
    `chi_square_of_ranks`.

    References
    ----------
    Neyman, J. (1937). "Smooth" test for goodness of fit. Skandinavisk Aktuarietidskrift 20,
    149-199.
    """
    possible = np.arange(n_ranks) - (n_ranks - 1) / 2.0
    statistic = 0.0
    for score in (possible, possible**2 - (possible**2).mean()):
        of_ranks = score[ranks] / np.sqrt((score**2).mean())
        statistic += of_ranks.sum() ** 2 / ranks.size
    return float(stats.chi2.sf(statistic, 2))


def same_distribution(first: NDArray, second: NDArray) -> float:
    """P-value of the hypothesis that two independent samples have the same distribution.

    The Kolmogorov-Smirnov test for numbers with many values, and a chi-square test of the table of
    counts for those with few: it is exact for the former, and holds for the latter.
    """
    values = np.unique(np.concatenate([first, second]))
    if values.size > 20:
        return float(stats.ks_2samp(first, second).pvalue)
    if values.size == 1:
        return 1.0
    table = np.array([[(sample == value).sum() for value in values] for sample in (first, second)])
    return float(stats.chi2_contingency(table, correction=False).pvalue)
