"""The anchor: a mode, and the sums over all rows of the terms of the expansion about it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import simpson
from scipy.linalg import solve_triangular
from threadpoolctl import threadpool_limits

from pymc_austerity.control_variates.influence import influence_scores
from pymc_austerity.control_variates.search import (
    KinkError,
    NoModeError,
    RowDensity,
    approach_mode,
    climb,
    inverse_root,
    some_rows,
    taken,
    trust_region,
)
from pymc_austerity.rows import RowSource, SampledRows

_SOME_ROWS = 10_000
"""Rows on which the search for the mode begins."""

_PILOT_PAIRS = 2
_MOST_ROUNDS = 5
_MOST_WITH_KINKS = 300
"""Dimensions up to which kinks are looked for."""
_WITHIN_CHANCE = 2.0
"""Modes on different samples differ by their sampling error: its variance in each direction is that
of the posterior times the number of rows that each sampled one stands for, once for either."""


class NoAnchorError(ValueError):
    """The likelihood cannot be expanded about a point; the message says why, as half a sentence."""


@dataclass(frozen=True, eq=False)
class Anchor:
    r"""A point with the sums over all rows of gradients and Hessians there.

    Attributes
    ----------
    point : float array, shape (d,)
        :math:`\theta^*`, in unconstrained space.
    gradient : float array, shape (d,)
        :math:`G = \sum_i g_i`.
    hessian : float array, shape (d, d)
        :math:`H = \sum_i H_i`.
    root : float array, shape (d, d)
        Lower Cholesky factor of the inverse of minus the Hessian of the whole log-posterior.
    order : {1, 2}
        Order of the expansion.
    is_smooth : bool
        Whether `hessian` and `root` belong together. Rows that are linear but for a kink have no
        curvature at the point, and `root` is that of their averaged curvature.
    """

    point: NDArray[np.float64]
    gradient: NDArray[np.float64]
    hessian: NDArray[np.float64]
    root: NDArray[np.float64]
    order: int = 2
    is_smooth: bool = True

    @cached_property
    def inverse_root(self) -> NDArray[np.float64]:
        """Inverse of `root`."""
        return solve_triangular(self.root, np.eye(self.point.size), lower=True)

    def draw(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """A draw of the normal approximation of the posterior about the anchor, shape (d,)."""
        return self.point + self.root.dot(rng.standard_normal(self.point.size))

    def expansion(self, proposed: NDArray, current: NDArray) -> float:
        r"""Expansion of the sum of all differences, nats.

        .. math:: \sum_i c_i = G \cdot d + \tfrac12 d' H s

        with :math:`d = \theta' - \theta` and :math:`s = (\theta' - \theta^*) + (\theta -
        \theta^*)`, up to the order of the expansion.
        """
        moved = (proposed - current).astype(np.float64, copy=False)
        first = float(self.gradient.dot(moved))
        if self.order == 1:
            return first
        new, old = proposed - self.point, current - self.point
        return first + 0.5 * float(moved.dot(self.hessian.dot(new + old)))


def find_anchor(
    start: NDArray,
    density: RowDensity,
    *,
    rng: np.random.Generator,
    order: int = 2,
    at: NDArray | None = None,
) -> Anchor:
    """Posterior mode in unconstrained space, and the sums of the Taylor terms there.

    Parameters
    ----------
    start : array, shape (d,)
        Where the search starts.
    density : RowDensity
        The log-posterior, with all rows.
    rng : numpy.random.Generator
        Chooses the rows on which the search begins.
    order : {1, 2}
        Order of the expansion.
    at : float array, shape (d,), optional
        The anchor, if it is not the mode.

    Raises
    ------
    NoAnchorError
        There is no mode, or the log-posterior is not concave there.
    """
    root = None
    try:
        # matrices that fit the cache gain nothing from threads, which on busy machines wait for
        # each other hundreds of times as long as they compute
        with threadpool_limits(1, user_api="blas"):
            if at is None:
                at, root = _mode(start, density, rng)
            point, is_smooth = density.as_evaluated(at), root is None
            gradient, hessian = density.row_derivatives(point)
            if root is None:
                root = inverse_root(-(hessian + density.row_free_hessian(point)))
    except NoModeError as error:
        raise NoAnchorError(str(error)) from error
    return Anchor(point, gradient, hessian, root, order, is_smooth)


def _mode(
    start: NDArray, density: RowDensity, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """The mode, and the root of a covariance where rows have kinks.

    The search is on some rows first, unless there are few rows or these do not determine the mode.
    """
    point, source = start.astype(np.float64), density.source
    may_have_kinks = density.has_averages and not isinstance(source, SampledRows)
    may_have_kinks &= point.size <= _MOST_WITH_KINKS

    def refuse_kinks(at: NDArray[np.float64]) -> None:
        (own,) = rng.spawn(1)
        if have_kinks(some_rows(density, _SOME_ROWS, own), at, own):
            raise KinkError("rows have kinks")

    check = refuse_kinks if may_have_kinks else None
    searches = [lambda: (trust_region(point, density, check), density)]
    if isinstance(source, SampledRows) or source.n_rows > 4 * _SOME_ROWS:
        searches.insert(0, lambda: _mode_on_some_rows(point, density, rng, check))
    ended = None
    for search in searches:
        if ended is not None and _is_higher(ended, point, density):
            point = ended
        found = _tried(search, density, check=may_have_kinks)
        ended = found.near
        if may_have_kinks and not found.is_sure:
            some = some_rows(density, _SOME_ROWS, rng)
            near = approximate_mode(point, some)
            if have_kinks(some, near, rng):
                return mode_beside_kinks(near, some, density)
            may_have_kinks = False
        if found.mode is not None:
            return found.mode, None
        if isinstance(found.reason, KinkError):
            break
    raise found.reason


def _is_higher(first: NDArray, second: NDArray, density: RowDensity) -> bool:
    """Whether a log-density is higher at the first point than at the second; not where NaN."""
    return density.gradient(first)[0] > density.gradient(second)[0]


class _Tried(NamedTuple):
    """A mode, of which a search may be sure, or why there is none, and where the search ended."""

    mode: NDArray[np.float64] | None
    is_sure: bool = False
    reason: NoModeError = NoModeError()
    near: NDArray[np.float64] | None = None


def _tried(search: Callable[..., Any], density: RowDensity, *, check: bool) -> _Tried:
    near = None
    try:
        near, some = search()
        mode = approach_mode(near, some, density)
        return _Tried(mode, not check or falls_as_curved(some, mode))
    except NoModeError as error:
        return _Tried(None, reason=error, near=near)


def _mode_on_some_rows(
    point: NDArray[np.float64],
    density: RowDensity,
    rng: np.random.Generator,
    check: Callable[[NDArray], None] | None,
) -> tuple[NDArray[np.float64], RowDensity]:
    """Search on random rows first, then on those that matter at its end."""
    source = density.source
    if isinstance(source, SampledRows):
        some = some_rows(density, source.n_rows, rng)
        return trust_region(point, some), some
    some = some_rows(density, _SOME_ROWS, rng)
    point = trust_region(point, some, check)
    for _ in range(_MOST_ROUNDS):
        root = inverse_root(-some.hessian(point))
        some = density.on(_rows_that_matter(point, root, density, rng))
        before, point = point, trust_region(point, some)
        moved = solve_triangular(root, point - before, lower=True)
        if float(moved.dot(moved)) < _WITHIN_CHANCE * source.n_rows / _SOME_ROWS * point.size:
            break
    return point, some


def _rows_that_matter(
    point: NDArray, root: NDArray, density: RowDensity, rng: np.random.Generator
) -> list[tuple[RowSource, float]]:
    """The rows with the most influence near a point, and a sample that represents the others."""
    dtype, source = point.dtype, density.source
    pairs = [
        ((point + root.dot(rng.standard_normal(point.size))).astype(dtype), point.astype(dtype))
        for _ in range(_PILOT_PAIRS)
    ]
    scores = influence_scores(density.differences, pairs, source)
    top = np.argpartition(scores, scores.size - _SOME_ROWS)[-_SOME_ROWS:]
    drawn = rng.choice(scores.size, 2 * _SOME_ROWS, replace=False)
    sample = np.setdiff1d(drawn, top)
    weight = (scores.size - top.size) / sample.size
    return [(taken(source, top), 1.0), (taken(source, sample), weight)]


# ------------------------------------------------------------------ rows with kinks


_CLOSE, _OF_AN_ENTRY, _ON_SOME = 1.0, 0.5, 2.0
"""Distance from the mode that is near enough, because beside it single rows turn: in posterior
standard deviations; in those of each entry where a search gets no nearer, because many rows turn at
once; and on some of the rows, in those of a posterior of these alone."""
_MOST_STEPS, _CLIMBS = 200, 2
"""Of a search without curvature; and more of these, each in the widths where the last one ended."""
_ROUNDS = 3
"""Of averages, each over the approximation that the one before gives."""
_ENTRIES = 8
"""Entries along which kinks are looked for."""
_STEEPER = 3.0
"""Times the curvature at single points that the averaged one has where rows have kinks."""
_INTERVALS = 2, 8, 32
"""Between single points: where few rows with extreme predictors turn, the curvature is narrow."""
_LEAST, _MOST, _TRIES = 0.5, 2.0, 20
"""Fall of a log-density over twice its width, nats, and searches for the width."""
_LONGEST = 4.0
_MOST_FALL = 10.0
"""Nats, over twice a standard deviation; one in a normal distribution."""


class AveragedCurvature:
    """A log-density whose rows have an averaged curvature.

    A row whose log-likelihood is linear but for a kink has no curvature at any point, but many of
    them have a smooth sum. The average is over the normal approximation that has this curvature.

    Parameters
    ----------
    density : RowDensity
    root : float array, shape (d, d), optional
        Root of a covariance that is tried first.

    Notes
    -----
    Few rows turn within the approximation where each stands for many; so it is widened to that of
    these rows alone.
    """

    def __init__(self, density: RowDensity, root: NDArray[np.float64] | None = None) -> None:
        self._density, self.root = density, root
        self.wider = math.sqrt(max(weight for _, weight in density.parts))

    def gradient(self, point: NDArray) -> tuple[float, NDArray[np.float64]]:
        """Log-density in nats, and its gradient, shape (d,)."""
        return self._density.gradient(point)

    def hessian(self, point: NDArray) -> NDArray[np.float64]:
        """Averaged Hessian, shape (d, d)."""
        root = self.root
        if root is None:
            root = self.wider * np.diag(widths(self._density, point))
        for _ in range(_ROUNDS):
            found = self._density.averaged_hessian(point, root)
            root = self.wider * inverse_root(-found)
        self.root = root
        return found


def widths(density: RowDensity, point: NDArray) -> NDArray[np.float64]:
    """Moves of each entry over which a log-density falls by half a nat, shape (d,)."""
    found = np.ones(point.size)
    value, _ = density.gradient(point)
    for k in range(point.size):
        for _ in range(_TRIES):
            move = np.zeros(point.size)
            move[k] = found[k]
            fall = _fall(density, point, move, value)
            if _LEAST < fall < _MOST:
                break
            ratio = 1.0 / np.sqrt(fall) if fall > 0.0 else _LONGEST  # NaN where it is not finite
            found[k] *= np.clip(np.nan_to_num(ratio, nan=0.0), 1.0 / _LONGEST, _LONGEST)
    return found


def _fall(density: RowDensity, point: NDArray, move: NDArray, value: float) -> float:
    """Sum of the falls of a log-density from a value along a move and back from it, nats."""
    return 2.0 * value - sum(density.gradient(point + m)[0] for m in (move, -move))


def falls_as_curved(density: RowDensity, point: NDArray) -> bool:
    """Whether a log-density falls about as its curvature at a mode says.

    Between two kinks it may have a mode and hardly any curvature.
    """
    try:
        root = inverse_root(-density.hessian(point))
    except NoModeError:
        return False
    value, _ = density.gradient(point)
    for move in root.T[:: -(-point.size // _ENTRIES)]:
        if not _fall(density, point, move, value) < _MOST_FALL:
            return False
    return True


def have_kinks(density: RowDensity, point: NDArray, rng: np.random.Generator) -> bool:
    """Whether rows are curved over the width of the log-density, and not at single points."""
    own = widths(density, point)
    for k in rng.permutation(point.size)[:_ENTRIES]:
        move = np.zeros(point.size)
        move[k] = own[k]
        ends = [density.row_gradient(point + m) for m in (-move, move)]
        averaged = (ends[0] - ends[1])[k] * own[k] / 2.0
        if averaged <= _LEAST / 2.0:
            continue
        single = (_mean_curvature(density, point, move, n) for n in _INTERVALS)
        if all(averaged > _STEEPER * each for each in single):
            return True
    return False


def _mean_curvature(density: RowDensity, point: NDArray, move: NDArray, n: int) -> float:
    """Mean of the curvatures at single points from one end of a move to the other."""
    (k,) = np.flatnonzero(move)
    at = [density.row_hessian(point + t * move)[k, k] for t in np.linspace(-1.0, 1.0, n + 1)]
    return float(-simpson(at, dx=1.0 / n) * move[k] ** 2)


def approximate_mode(start: NDArray, density: RowDensity) -> NDArray[np.float64]:
    """The end of a search that needs no curvature."""
    return _climbed(start, np.eye(start.size), density)


def _climbed(
    start: NDArray[np.float64], root: NDArray[np.float64], density: RowDensity
) -> NDArray[np.float64]:
    found = climb(start, start, root, density, maxiter=_MOST_STEPS)
    return start + root @ np.asarray(found.x)


def mode_beside_kinks(
    near: NDArray, some: RowDensity, density: RowDensity
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A point near the mode, and the root of the covariance of a normal approximation.

    Parameters
    ----------
    near : float array, shape (d,)
        Where the search starts.
    some, density : RowDensity
        On some of the rows, and on all.

    Raises
    ------
    NoModeError
        The search failed, or the log-density is not concave there.
    """
    for _ in range(_CLIMBS):
        near = _climbed(near, np.diag(widths(some, near)), some)
    cheap, at_end = AveragedCurvature(some), _OF_AN_ENTRY * math.sqrt(near.size)
    limits = {"close": _ON_SOME * cheap.wider, "at_end": at_end * cheap.wider}
    near = approach_mode(near, cheap, cheap, **limits)
    full = AveragedCurvature(density, inverse_root(-cheap.hessian(near)))
    point = approach_mode(near, cheap, full, close=_CLOSE, at_end=at_end)
    return point, inverse_root(-full.hessian(point))
