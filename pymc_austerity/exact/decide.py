"""An exact decision: rows, their residuals, and the comparison."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.exact.groups import Groups
from pymc_austerity.exact.select import select_rows
from pymc_austerity.exact.thin import log_weight

__all__ = ["BoundViolatedError", "ExactDecision", "decide"]


class BoundViolatedError(ArithmeticError):
    """A row changed by more than its bound: decisions would not be exact."""


class ExactDecision(NamedTuple):
    """An exact decision.

    Attributes
    ----------
    accept : bool
    n_rows_used : int
        Rows whose log-likelihood was evaluated.
    """

    accept: bool
    n_rows_used: int


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
        differences of log-likelihood less those of the second-order expansion at the anchor.
    u, v : float array, shape (d,)
        Current and proposed point in whitened coordinates about the anchor.
    log_ratio : float
        All the rest of the log acceptance ratio: exact part, sum of the expansion over all rows,
        proposal densities. Nats.
    groups : Groups
    rng : numpy.random.Generator
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
    rows, bounds = select_rows(
        u, v, inflation, rng, groups.starts, groups.radii, groups.constants, groups.largest,
        groups.directions, groups.direction, groups.angles,
    )  # fmt: skip
    found = residuals(rows) if rows.size else np.empty(0)
    weight, violated = log_weight(found, bounds, rng)
    if violated >= 0:
        raise BoundViolatedError(
            f"row {rows[violated]} in storage order changed by {found[violated]:.3g} nats, more "
            f"than its bound of {bounds[violated]:.3g}: use test='auto' without exact decisions."
        )
    log_uniform = math.log1p(-rng.random())
    return ExactDecision(bool(log_uniform < log_ratio + weight), int(rows.size))
