"""A decision of Firefly Monte Carlo, which reads only bright rows."""

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.exact.decide import RELATIVE, BoundViolatedError
from pymc_austerity.exact.groups import Groups
from pymc_austerity.exact.select import candidates_of, selected

_LOOSE = 1.0
"""Bound of a row, nats, above which it is read at every decision."""

Remainders: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.float64]]


class FireflyDecision(NamedTuple):
    """A decision of Firefly Monte Carlo.

    Attributes
    ----------
    accept : bool
    n_rows_used : int
        Rows whose log-likelihood was evaluated.
    n_bright : int
        Rows that were bright.
    log_ratio : float
        The number that was compared with the log of a uniform number, nats.
    """

    accept: bool
    n_rows_used: int
    n_bright: int
    log_ratio: float


def decide_by_fireflies(
    now: Remainders,
    then: Remainders,
    u: NDArray[np.float64],
    v: NDArray[np.float64],
    log_ratio: float,
    groups: Groups,
    rng: np.random.Generator,
) -> FireflyDecision:
    r"""Accept or reject a move from u to v, given which rows are bright at u.

    With :math:`R_i` a row's log-likelihood minus its expansion at the anchor, and
    :math:`|R_i(u)| \leq b_i(u)`, a row is bright with probability
    :math:`1 - e^{-(R_i(u) + b_i(u))}`. Given the bright rows, the log-ratio has

    .. math:: \sum_i [b_i(u) - b_i(v)]
              + \sum_{i\ \text{bright}} \log \frac{e^{R_i(v) + b_i(v)} - 1}{e^{R_i(u) + b_i(u)} - 1}

    in place of the sum of :math:`R_i(v) - R_i(u)`. Bright rows are drawn anew at every decision:
    thinning finds rows that may be bright, and only these are read. Groups of rows whose bound is
    above 1 at either point are always read.

    Parameters
    ----------
    now, then : callables
        From positions of rows in storage to their :math:`R_i` at u and at v, nats.
    u, v : float array, shape (d,)
        Current and proposed point in whitened coordinates about the anchor.
    log_ratio : float
        The log acceptance ratio without the residuals: row-free part, sum of the expansion over all
        rows, proposal densities. Nats.
    groups : Groups
    rng : numpy.random.Generator
        Draws the bright rows, and one uniform number for the comparison.

    Raises
    ------
    BoundViolatedError
        Names the row, by its position in storage.

    References
    ----------
    Maclaurin, D. and Adams, R. P. (2014). Firefly Monte Carlo: exact MCMC with subsets of data.
    UAI. arXiv 1403.5693.
    """
    bounds, bounds_then = bounds_at(u, groups), bounds_at(v, groups)
    glows = np.maximum(bounds, bounds_then) <= _LOOSE
    sizes = np.diff(groups.starts)
    most = -np.expm1(-2.0 * np.where(glows, bounds, 0.0))
    counts = rng.binomial(sizes, most)
    candidates, which = _drawn(groups.starts, counts, rng)
    remainder = _bounded(now(candidates), bounds[which], candidates, groups.rounding)
    bright = rng.random(which.size) * most[which] < -np.expm1(-(remainder + bounds[which]))
    always = candidates_of(groups.starts, np.where(glows, 0.0, np.inf))
    loose, _ = selected(always, np.empty(0), 0)
    read, which = np.concatenate([loose, candidates[bright]]), which[bright]
    remainder_then = then(read)
    log_ratio += float(remainder_then[: loose.size].sum() - now(loose).sum())
    remainder_then = _bounded(
        remainder_then[loose.size :], bounds_then[which], read[loose.size :], groups.rounding
    )
    log_ratio -= float(sizes[glows] @ (bounds_then[glows] - bounds[glows]))
    with np.errstate(divide="ignore"):
        glow = np.log(np.expm1(remainder[bright] + bounds[which]))
        log_ratio += float((np.log(np.expm1(remainder_then + bounds_then[which])) - glow).sum())
    accept = math.log1p(-rng.random()) < log_ratio
    return FireflyDecision(accept, candidates.size + loose.size, which.size, log_ratio)


def bounds_at(u: NDArray[np.float64], groups: Groups) -> NDArray[np.float64]:
    r"""Bounds of the remainder of a row of each group, nats.

    :math:`c_g x_g^3 / 6`, where :math:`x_g` is the largest :math:`|n \cdot u|` over the
    directions n of the group, and :math:`c_g` is continuous between the constants of the
    balls: chains would rarely cross a jump.

    Parameters
    ----------
    u : float array, shape (d,)
        A point in whitened coordinates about the anchor.
    groups : Groups

    Returns
    -------
    float array, shape (G,)
        Infinite beyond the largest ball.

    Examples
    --------
    >>> from pymc_austerity.exact import Grid, group_rows
    >>> constants = np.array([[1.0], [2.0], [3.0]])
    >>> _, groups = group_rows(constants, Grid.of(constants, np.array([1.0, 2.0, 3.0])))
    >>> [round(6.0 * float(bounds_at(np.array([x]), groups)[0]) / x**3, 6) for x in (1.0, 1.5, 3.0)]
    [2.0, 2.5, 3.0]
    """
    reach = np.full(groups.n_groups, np.sqrt(u @ u))
    if groups.is_single:
        length, along = reach, abs(groups.directions @ u)[groups.direction]
        across = np.sqrt(np.maximum(length**2 - along**2, 0.0))
        within = along * groups.cosines + across * groups.sines
        reach = np.where(along < length * groups.cosines, within, length)
    radii, largest = groups.radii, groups.largest
    outer = np.minimum(np.searchsorted(radii, reach), radii.size - 1)
    inside = np.where(outer > 0, radii[outer - 1], 0.0)
    share = (reach - inside) / (radii[outer] - inside)
    every = np.arange(groups.n_groups)
    here, further = largest[outer, every], largest[np.minimum(outer + 1, radii.size - 1), every]
    with np.errstate(invalid="ignore"):  # infinite constants
        constants = here + share * (further - here)
    known = (reach <= radii[-1]) & np.isfinite(further)
    return np.where(known, constants * reach**3 / 6.0, np.inf)


def _drawn(
    starts: NDArray[np.int64], counts: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A given number of different rows of each group, and the group of each row."""
    which = np.repeat(np.arange(counts.size), counts)
    sizes, rows = np.diff(starts)[which], np.full(which.size, -1)
    missing = np.arange(which.size)
    while missing.size:
        places = (rng.random(missing.size) * sizes[missing]).astype(np.int64)
        rows[missing] = starts[which[missing]] + places
        _, firsts = np.unique(rows, return_index=True)
        missing = np.setdiff1d(np.arange(which.size), firsts)
    return rows, which


def _bounded(
    remainders: NDArray[np.float64],
    bounds: NDArray[np.float64],
    rows: NDArray[np.int64],
    rounding: float,
) -> NDArray[np.float64]:
    """Remainders between their bounds, which they exceed by rounding at most."""
    within = abs(remainders) <= bounds * (1.0 + RELATIVE) + rounding
    if not within.all():
        k = int(np.argmin(within))
        raise BoundViolatedError(int(rows[k]), float(remainders[k]), float(bounds[k]))
    return np.clip(remainders, -bounds, bounds)
