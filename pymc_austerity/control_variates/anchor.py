"""The anchor: a mode, and the sums over all rows of the terms of the expansion about it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from threadpoolctl import threadpool_limits

from pymc_austerity.control_variates.influence import influence_scores
from pymc_austerity.control_variates.kinks import (
    approximate_mode,
    falls_as_curved,
    have_kinks,
    mode_beside_kinks,
)
from pymc_austerity.control_variates.search import (
    KinkError,
    LogPosterior,
    NoModeError,
    RowDensity,
    approach_mode,
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
    posterior: LogPosterior,
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
    posterior : LogPosterior
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
    density = posterior.density(start.dtype)
    root = None
    try:
        # matrices that fit the cache gain nothing from threads, which on busy machines wait for
        # each other hundreds of times as long as they compute
        with threadpool_limits(1, user_api="blas"):
            if at is None:
                at, root = _mode(start, posterior, rng)
            point, is_smooth = density.as_evaluated(at), root is None
            gradient, hessian = density.row_derivatives(point)
            if root is None:
                root = inverse_root(-(hessian + density.row_free_hessian(point)))
    except NoModeError as error:
        raise NoAnchorError(str(error)) from error
    return Anchor(point, gradient, hessian, root, order, is_smooth)


def _mode(
    start: NDArray, posterior: LogPosterior, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """The mode, and the root of a covariance where rows have kinks.

    The search is on some rows first, unless there are few rows or these do not determine the mode.
    """
    point, density = start.astype(np.float64), posterior.density(start.dtype)
    source = posterior.source
    may_have_kinks = density.has_averages and not isinstance(source, SampledRows)
    may_have_kinks &= point.size <= _MOST_WITH_KINKS

    def refuse_kinks(at: NDArray[np.float64]) -> None:
        (own,) = rng.spawn(1)
        if have_kinks(some_rows(density, source, _SOME_ROWS, own), at, own):
            raise KinkError("rows have kinks")

    check = refuse_kinks if may_have_kinks else None
    searches = [lambda: (trust_region(point, density, check), density)]
    if isinstance(source, SampledRows) or source.n_rows > 4 * _SOME_ROWS:
        searches.insert(0, lambda: _mode_on_some_rows(point, density, posterior, rng, check))
    for search in searches:
        found = _tried(search, density, check=may_have_kinks)
        if may_have_kinks and not found.is_sure:
            some = some_rows(density, source, _SOME_ROWS, rng)
            near = approximate_mode(point, some)
            if have_kinks(some, near, rng):
                return mode_beside_kinks(near, some, density)
            may_have_kinks = False
        if found.mode is not None:
            return found.mode, None
        if isinstance(found.reason, KinkError):
            break
    raise found.reason


class _Tried(NamedTuple):
    """What a search found: a mode, of which it may be sure, or why there is none."""

    mode: NDArray[np.float64] | None
    is_sure: bool = False
    reason: NoModeError = NoModeError()


def _tried(search: Callable[..., Any], density: RowDensity, *, check: bool) -> _Tried:
    try:
        near, some = search()
        mode = approach_mode(near, some, density)
        return _Tried(mode, not check or falls_as_curved(some, mode))
    except NoModeError as error:
        return _Tried(None, reason=error)


def _mode_on_some_rows(
    point: NDArray[np.float64],
    density: RowDensity,
    posterior: LogPosterior,
    rng: np.random.Generator,
    check: Callable[[NDArray], None] | None,
) -> tuple[NDArray[np.float64], RowDensity]:
    """Search on random rows first, then on those that matter at its end."""
    source = posterior.source
    if isinstance(source, SampledRows):
        some = some_rows(density, source, source.n_rows, rng)
        return trust_region(point, some), some
    some = some_rows(density, source, _SOME_ROWS, rng)
    point = trust_region(point, some, check)
    for _ in range(_MOST_ROUNDS):
        root = inverse_root(-some.hessian(point))
        some = density.on(_rows_that_matter(point, root, posterior, rng))
        before, point = point, trust_region(point, some)
        moved = solve_triangular(root, point - before, lower=True)
        if float(moved.dot(moved)) < _WITHIN_CHANCE * source.n_rows / _SOME_ROWS * point.size:
            break
    return point, some


def _rows_that_matter(
    point: NDArray, root: NDArray, posterior: LogPosterior, rng: np.random.Generator
) -> list[tuple[RowSource, float]]:
    """The rows with the most influence near a point, and a sample that represents the others."""
    dtype, source = point.dtype, posterior.source
    pairs = [
        ((point + root.dot(rng.standard_normal(point.size))).astype(dtype), point.astype(dtype))
        for _ in range(_PILOT_PAIRS)
    ]
    scores = influence_scores(posterior.differences, pairs, source)
    top = np.argpartition(scores, scores.size - _SOME_ROWS)[-_SOME_ROWS:]
    drawn = rng.choice(scores.size, 2 * _SOME_ROWS, replace=False)
    sample = np.setdiff1d(drawn, top)
    weight = (scores.size - top.size) / sample.size
    return [(taken(source, top), 1.0), (taken(source, sample), weight)]
