"""An exact decision: rows, their residuals, and the comparison."""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.exact.groups import Groups
from pymc_austerity.exact.select import rates_of
from pymc_austerity.exact.thin import weights_of_rows


class ExactDecision(NamedTuple):
    """An exact decision.

    Attributes
    ----------
    accept : bool
    n_rows_used : int
        Rows whose log-likelihood was evaluated.
    log_ratio : float
        The number that was compared with the log of a uniform number, nats.
    ratios : float array, shape (m,)
        Residuals of the candidates over their bounds, in [-1, 1].
    """

    accept: bool
    n_rows_used: int
    log_ratio: float
    ratios: NDArray[np.float64]


def decide(
    residuals: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    u: NDArray[np.float64],
    v: NDArray[np.float64],
    log_ratio: float,
    groups: Groups,
    rng: np.random.Generator,
    *,
    inflation: float = 1.0,
) -> ExactDecision:
    r"""Accept or reject a move from u to v such that the posterior is exactly invariant.

    Parameters
    ----------
    residuals : callable
        From positions of rows in storage to their residuals between the two points, nats:
        differences of log-likelihood minus those of the second-order expansion at the anchor.
    u, v : float array, shape (d,)
        Current and proposed point in whitened coordinates about the anchor.
    log_ratio : float
        The log acceptance ratio without the residuals: row-free part, sum of the expansion over all
        rows, proposal densities. Nats.
    groups : Groups
    rng : numpy.random.Generator
        Gives the rows, one uniform number for each candidate, and one for the comparison.
    inflation : float
        Factor of all bounds, at least 1. Larger values read more rows and bring acceptance nearer
        to that of a decision from all rows: the variance of the log-ratio is about
        :math:`\sum_i r_i^2 / B_i`.

    Raises
    ------
    BoundViolatedError
        Names the row, by its position in storage.

    References
    ----------
    Zhang, R., Cooper, A. F. and De Sa, C. (2020). Asymptotically optimal exact minibatch
    Metropolis-Hastings. NeurIPS.
    Prado, E., Nemeth, C. and Sherlock, C. (2024). Metropolis-Hastings with scalable subsampling.
    arXiv 2407.19602.
    """
    its = rates_of(u, v, inflation, groups)
    n_candidates = rng.poisson(its.totals[-1])
    uniform = rng.random(2 * n_candidates)
    found = weights_of_rows(residuals, its, uniform, groups.rounding, together=True)
    total = log_ratio + float(found.log_weight[0])
    accept = math.log1p(-rng.random()) < total
    return ExactDecision(accept, found.n_rows, total, found.ratios)


def expected_rows(
    groups: Groups, pairs: Iterable[tuple[NDArray[np.float64], NDArray[np.float64]]]
) -> float:
    """Mean number of rows that decisions between pairs of points read; see `rows_of_pairs`."""
    return float(rows_of_pairs(groups, pairs).mean())


def rows_of_pairs(
    groups: Groups,
    pairs: Iterable[tuple[NDArray[np.float64], NDArray[np.float64]]],
    *,
    inflation: float = 1.0,
) -> NDArray[np.float64]:
    """Expected number of rows that a decision between two points reads, for each pair of points.

    Parameters
    ----------
    groups : Groups
    pairs : iterable of pairs of float arrays, shape (d,)
        Current and proposed points in whitened coordinates.
    inflation : float
        Factor of all bounds.
    """
    counts = []
    for u, v in pairs:
        its = rates_of(u, v, inflation, groups)
        counts.append(its.n_read + its.totals[-1])
    return np.array(counts, dtype=np.float64)
