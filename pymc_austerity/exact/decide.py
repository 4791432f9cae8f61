"""What the rows of a decision add to the log-ratios that they determine, and an exact decision."""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import types
from numpy.typing import NDArray

from pymc_austerity.exact.groups import ROUNDING, Groups
from pymc_austerity.exact.select import (
    Candidates,
    candidates_of,
    number_of_candidates,
    rates_of,
    selected,
)
from pymc_austerity.parts import compiled_once, part, pointers

RELATIVE = 1e-6
"""Share of a bound that may be rounding of the bound itself."""


class BoundViolatedError(ArithmeticError):
    """A row changed by more than its bound: decisions would not be exact.

    Attributes
    ----------
    row : int
        Its position in storage.
    residual, bound : float
        Its change, and its bound, nats.
    """

    def __init__(self, row: int, residual: float, bound: float) -> None:
        super().__init__(
            f"row {row} in storage changed by {residual:.3g} nats, more than its bound of "
            f"{bound:.3g}."
        )
        self.row = row
        self.residual = residual
        self.bound = bound

    def __reduce__(self) -> tuple:
        return type(self), (self.row, self.residual, self.bound)


class Weights(NamedTuple):
    """Log weights, from the rows that were read.

    Attributes
    ----------
    log_weight : float array, shape (G,) or (1,)
        For each group, or for all together, in place of the sum of the residuals of all rows, nats.
    n_rows : int
        Rows that were read.
    ratios : float array, shape (n_candidates,)
        Residuals of the candidates over their bounds.
    """

    log_weight: NDArray[np.float64]
    n_rows: int
    ratios: NDArray[np.float64]


@part(types.float64)
def added_by(residual: float, bound: float, uniform: float, rounding: float) -> float:
    r"""What a candidate adds to a log weight; NaN where it is beyond its bound.

    With residuals r and bounds B that hold for both directions of the move, candidates are kept
    with probability :math:`\phi / B`, :math:`\phi = B - \max(0, r)`, and each one kept adds
    :math:`\log(\psi / \phi)`, :math:`\psi = \phi + r`.

    References
    ----------
    Zhang, R., Cooper, A. F. and De Sa, C. (2020). Asymptotically optimal exact minibatch
    Metropolis-Hastings. NeurIPS, algorithm 1.
    """
    if not abs(residual) <= bound * (1.0 + RELATIVE) + rounding:
        return math.nan
    residual = min(bound, max(-bound, residual))
    phi = bound - max(0.0, residual)
    return math.log1p(residual / phi) if uniform * bound < phi else 0.0


@part(types.int64)
def weigh(
    its: Candidates, groups: Any, found: Any, uniform: Any, n_candidates: int, rounding: float,
    weights: Any, together: bool,
) -> int:  # fmt: skip
    """Add to the log weight of each group, or to a single one, what its rows determine.

    Parameters
    ----------
    its : Candidates
    groups, found : sequences of int and float
        Of the rows of `select`: their groups, and their residuals, nats. Those that are always read
        are added as they are.
    uniform : sequence of float
        One for each candidate, after those of `select`.
    n_candidates : int
    rounding : float
        Nats by which rounding may take a residual beyond its bound.
    weights : sequence of float
        Changed in place.
    together : bool
        Whether there is one log weight for all groups.

    Returns
    -------
    int
        The number of the first row that exceeds its bound, where the function stops; -1 for none.
    """
    for k in range(its.n_read):
        weights[0 if together else groups[k]] += found[k]
    for number in range(n_candidates):
        k = its.n_read + number
        bound, chance = its.bounds[groups[k]], uniform[n_candidates + number]
        added = added_by(found[k], bound, chance, rounding)
        if math.isnan(added):
            return k
        weights[0 if together else groups[k]] += added
    return -1


@compiled_once
def _weigh(
    its: Candidates,
    groups: NDArray[np.int64],
    found: NDArray[np.float64],
    uniform: NDArray[np.float64],
    rounding: float,
    weights: NDArray[np.float64],
    ratios: NDArray[np.float64],
    together: bool,
) -> int:
    """Also the residuals of candidates over their bounds."""
    for number in range(ratios.size):
        k = its.n_read + number
        ratios[number] = found[k] / its.bounds[groups[k]]
    n_candidates, out = ratios.size, pointers(weights)
    drawn, owners, values, chances = pointers((its, groups, found, uniform))
    return weigh(drawn, owners, values, chances, n_candidates, rounding, out, together)


def weights_of_rows(
    residuals: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    its: Candidates,
    uniform: NDArray[np.float64],
    rounding: float = ROUNDING,
    positions: NDArray[np.int64] | None = None,
    *,
    together: bool,
) -> Weights:
    """Read all rows of groups without a bound, and some of the others.

    With these log weights in place of the sums of residuals the posterior is exactly invariant, for
    every group by itself and for all together.

    Parameters
    ----------
    residuals : callable
        From positions of rows in storage to their residuals: differences of log-likelihood
        minus those of the expansion, nats.
    its : Candidates
    uniform : float array, shape (2 n,)
        Uniform numbers of n candidates, with n a Poisson variable: their places, and whether they
        are kept.
    rounding, together
        As in `weigh`.
    positions : int array, optional
        Positions in storage of the rows, group by group, if they are not stored in this order.

    Raises
    ------
    BoundViolatedError
        The residual of a row exceeds its bound; the row is named by its position in storage.
    """
    n_candidates, weights = uniform.size // 2, np.zeros(1 if together else its.n_groups)
    if not its.n_read + n_candidates:
        return Weights(weights, 0, uniform)
    rows, groups = selected(its, uniform, n_candidates)
    rows = rows if positions is None else positions[rows]
    found, ratios = residuals(rows), np.empty(n_candidates)
    k = _weigh(its, groups, found, uniform, rounding, weights, ratios, together)
    if k >= 0:
        raise BoundViolatedError(int(rows[k]), float(found[k]), float(its.bounds[groups[k]]))
    return Weights(weights, rows.size, ratios)


_STEP = 1e-4
_SAFETY = 8.0
"""Largest rounding expected in a run over the largest one that was measured."""


def measured_rounding(
    residuals: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
    start: NDArray[np.float64],
    direction: NDArray[np.float64],
) -> float:
    r"""Nats by which rounding may take a residual beyond its bound, at least 1e-9.

    Third differences of the residuals :math:`r(s)` between a point and those at :math:`s` times a
    direction from it,

    .. math:: r(3h) - 3 r(2h) + 3 r(h), \qquad h = 10^{-4},

    are :math:`h^3` times a third derivative, so only rounding remains. This cannot hide rows that
    violate their bounds: their change over the whole direction is multiplied by :math:`h^3`, too.

    Parameters
    ----------
    residuals : callable
        From two points to the residuals of some rows between them, nats; rows with large third
        derivatives, which are always read, should not be among them.
    start, direction : float array, shape (d,)
        A point where a chain may be, and a move of usual size.

    Examples
    --------
    Terms of the size of 10\ :sup:`8` leave a rounding of about :math:`10^{-8}`:

    >>> import numpy as np
    >>> size = np.array([1.0, 1e8])
    >>> def residuals(new, old):
    ...     return (size + new[0] ** 3) - (size + old[0] ** 3)
    >>> one, move = np.array([1.0]), np.array([1.0])
    >>> measured_rounding(lambda new, old: residuals(new, old)[:1], one, move)
    1e-09
    >>> 1e-8 < measured_rounding(residuals, one, move) < 1e-6
    True
    """
    first, second, third = (residuals(start + k * _STEP * direction, start) for k in (1, 2, 3))
    found = abs(third - 3.0 * second + 3.0 * first)
    return max(ROUNDING, _SAFETY * float(found.max(initial=0.0, where=np.isfinite(found))))


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
        Residuals of the candidates over their bounds, in [-1, 1]; of some evenly spread ones where
        there are many.
    n_candidates : int
        How many there were.
    """

    accept: bool
    n_rows_used: int
    log_ratio: float
    ratios: NDArray[np.float64]
    n_candidates: int


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
    n_candidates = number_of_candidates(its.totals[-1], rng)
    uniform = rng.random(2 * n_candidates)
    found = weights_of_rows(residuals, its, uniform, groups.rounding, together=True)
    total = log_ratio + float(found.log_weight[0])
    accept = math.log1p(-rng.random()) < total
    return ExactDecision(accept, found.n_rows, total, found.ratios, n_candidates)


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
