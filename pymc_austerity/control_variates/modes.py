"""Other modes than the nearest one: searches from dispersed points, on some of the rows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.stats.qmc import LatinHypercube
from threadpoolctl import threadpool_limits

from pymc_austerity.control_variates.anchor import Anchor, NoAnchorError, find_anchor
from pymc_austerity.control_variates.influence import differences_of_all
from pymc_austerity.control_variates.search import (
    IMPOSSIBLE,
    LogDensity,
    NoModeError,
    RowDensity,
    approach_mode,
    climb,
    inverse_root,
    some_rows,
    trust_region,
)

_N_SEARCHES = 8
_REACH = 2.0
"""Each entry is dispersed uniformly over twice this width, in unconstrained space, as in Stan."""
_HALVINGS = 10
_SOME_ROWS = 2_000
_MOST_STEPS = 100

_APART = 1.0
"""Distance in standard deviations of either mode beyond which two ends are different modes."""
_SURELY = 4.0
"""Standard errors of a difference of log-densities that was estimated on some of the rows."""
_FAR_BELOW = 20.0
"""Nats below the best mode that rule a mode out before its width is known."""
_NEGLIGIBLE = 7.0
"""Nats below the best mode, widths included, at which a mode has a thousandth of its mass."""
_MOST_COMPARED = 3
"""Modes that are evaluated on all the rows."""


@dataclass(frozen=True, eq=False)
class Mode:
    """A mode of the posterior.

    Attributes
    ----------
    point : float array, shape (d,)
        In unconstrained space.
    root : float array, shape (d, d)
        Lower Cholesky factor of the inverse of minus the Hessian of the log-posterior.
    log_weight : float
        Log of the mass of its normal approximation over that of the anchor's, nats.
    """

    point: NDArray[np.float64]
    root: NDArray[np.float64]
    log_weight: float


@dataclass(frozen=True, eq=False)
class Modes:
    """Where the posterior has its mass, judged by searches from dispersed points.

    Attributes
    ----------
    anchor : Anchor
        At the best mode found.
    others : tuple of Mode
        Modes of comparable weight: at least a thousandth of the best one's.
    n_found : int
        Modes at which searches ended.
    n_at_best : int
        Searches that ended at the best one.
    rise : float
        Log-density of the anchor minus that of the mode nearest to the start, nats.
    """

    anchor: Anchor
    others: tuple[Mode, ...] = ()
    n_found: int = 1
    n_at_best: int = 1
    rise: float = 0.0


@dataclass(eq=False)
class _End:
    """Where searches on some of the rows ended."""

    point: NDArray[np.float64]
    root: NDArray[np.float64]
    log_density: float
    n_searches: int = 1


def find_modes(
    start: NDArray,
    density: RowDensity,
    *,
    rng: np.random.Generator,
    order: int = 2,
    nearest: Anchor | None = None,
    angles: NDArray[np.intp] | None = None,
) -> Modes:
    """The best mode that searches from the start and from points dispersed about it find.

    The searches use 2,000 rows that represent all; the modes that they find are compared on all the
    rows. Where there is one mode, they cost less than a gradient of a million rows.

    Parameters
    ----------
    start, density, rng, order
        As in `find_anchor`.
    nearest : Anchor, optional
        What a search from near the start has found; otherwise it is made.
    angles : int array, optional
        Entries that are the same after a full turn.

    Raises
    ------
    NoAnchorError
        No search ends at a mode.

    References
    ----------
    Starts within 2 of the origin of unconstrained space: Stan Reference Manual,
    "Initialization". Latin hypercubes: McKay, Beckman and Conover (1979).
    """
    dispersing = rng.spawn(1)[0]
    some = some_rows(density, _SOME_ROWS, dispersing)

    def anchor_from(point: NDArray) -> Anchor | str:
        try:
            return find_anchor(point.astype(start.dtype), density, rng=rng, order=order)
        except NoAnchorError as error:
            return str(error)

    first = found = nearest or anchor_from(start)
    nearest = None if isinstance(first, str) else first
    ends = _ends(start, nearest, some, dispersing, np.arange(0) if angles is None else angles)
    untried = ends[:_MOST_COMPARED]
    while isinstance(found, str) and untried:
        found = anchor_from(untried.pop(0).point)
    if isinstance(found, str):
        raise NoAnchorError(first)
    with threadpool_limits(1, user_api="blas"):
        return _Comparison(density, some, found).modes(ends)


def heaviest_modes(start: NDArray, density: LogDensity, *, rng: np.random.Generator) -> list[Mode]:
    """Modes of comparable weight of any log-density, the heaviest first.

    Parameters
    ----------
    start : float array, shape (d,)
        The middle of the cube from which searches start.
    density : LogDensity
    rng : numpy.random.Generator
    """
    ends = _ends(start, None, density, rng, np.arange(0))
    weights = [end.log_density + np.log(np.diag(end.root)).sum() for end in ends]
    heaviest = max(weights, default=0.0)
    its = zip(ends, weights, strict=True)
    modes = [Mode(end.point, end.root, float(weight - heaviest)) for end, weight in its]
    modes.sort(key=lambda mode: -mode.log_weight)
    return list(_comparable(modes, 0.0))


@dataclass(frozen=True)
class _Given:
    """A log-density of some entries, the others being fixed."""

    density: RowDensity
    point: NDArray[np.float64]
    free: NDArray[np.intp]

    def whole(self, own: NDArray[np.float64]) -> NDArray[np.float64]:
        """All entries."""
        whole = self.point.copy()
        whole[self.free] = own
        return whole

    def gradient(self, own: NDArray) -> tuple[float, NDArray[np.float64]]:
        value, gradient = self.density.gradient(self.whole(own))
        return value, gradient[self.free]

    def hessian(self, own: NDArray) -> NDArray[np.float64]:
        return self.density.hessian(self.whole(own))[np.ix_(self.free, self.free)]


def conditional_mode(
    start: NDArray,
    free: NDArray[np.intp],
    density: RowDensity,
    *,
    rng: np.random.Generator,
) -> NDArray:
    """A point whose free entries are near their mode given the others, on some of the rows.

    Parameters
    ----------
    start : array, shape (d,)
        Where the search starts, with the values of the others.
    free : int array, shape (k,)
        Entries to search for.
    density, rng
        As in `find_anchor`.

    Returns
    -------
    array, shape (d,)
        The start, if there is no such mode.
    """
    some = some_rows(density, _SOME_ROWS, rng)
    given = _Given(some, start.astype(np.float64), free)
    try:
        with threadpool_limits(1, user_api="blas"):
            return given.whole(trust_region(given.point[free], given)).astype(start.dtype)
    except NoModeError:
        return start


# ---------------------------------------------------------------------- on some of the rows


def _ends(
    start: NDArray,
    nearest: Anchor | None,
    some: LogDensity,
    rng: np.random.Generator,
    angles: NDArray[np.intp],
) -> list[_End]:
    """Modes on some of the rows, the highest first."""
    ends: list[_End] = []
    begins: list[NDArray] = []
    about, root = start.astype(np.float64), np.eye(start.size)
    if nearest is not None:
        about, root = nearest.point, nearest.root
        begins = [about]
    with threadpool_limits(1, user_api="blas"), np.errstate(all="ignore"):
        for begin in chain(begins, _dispersed(start, some, rng)):
            point = _climb(begin, about, root, some)
            if point is not None:
                turns = np.round((point - about)[angles] / (2.0 * np.pi))
                point[angles] -= 2.0 * np.pi * turns
                _note(point, ends, some)
    return sorted(ends, key=lambda end: -end.log_density)


def _note(point: NDArray[np.float64], ends: list[_End], some: LogDensity) -> None:
    """Count one more search that ended at a mode, known or new."""
    distances = [_distance(end.root, point, end.point) for end in ends]
    if distances and min(distances) < _APART:
        ends[int(np.argmin(distances))].n_searches += 1
        return
    found = _polished(point, some)
    if found is None:
        return
    known = next((end for end in ends if not _are_apart(end, found)), None)
    if known is None:
        ends.append(found)
    else:
        known.n_searches += 1


def _dispersed(
    start: NDArray, some: LogDensity, rng: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    """Points all over a cube about the start, closer where the log-density is not finite."""
    cube = LatinHypercube(start.size, seed=rng).random(_N_SEARCHES)
    for moves in _REACH * (2.0 * cube - 1.0):
        for _ in range(_HALVINGS):
            value, gradient = some.gradient(start + moves)
            if np.isfinite(value) and np.isfinite(gradient).all():
                yield start + moves
                break
            moves = moves / 2.0


def _climb(
    begin: NDArray[np.float64],
    about: NDArray[np.float64],
    root: NDArray[np.float64],
    some: LogDensity,
) -> NDArray[np.float64] | None:
    """The end of a search in the coordinates of a normal approximation; None if there is none."""
    result = climb(begin, about, root, some, maxiter=_MOST_STEPS, ftol=1e-12, gtol=0.1)
    return about + root @ result.x if result.success and result.fun < IMPOSSIBLE else None


def _polished(point: NDArray[np.float64], some: LogDensity) -> _End | None:
    try:
        point = approach_mode(point, some, some)
        return _End(point, inverse_root(-some.hessian(point)), some.gradient(point)[0])
    except NoModeError:
        return None


def _distance(root: NDArray, one: NDArray, other: NDArray) -> float:
    return float(np.linalg.norm(solve_triangular(root, one - other, lower=True)))


def _are_apart(one: _End | Mode | Anchor, other: _End | Mode | Anchor) -> bool:
    roots = (one.root, other.root)
    return min(_distance(root, one.point, other.point) for root in roots) > _APART


# ---------------------------------------------------------------------- on all the rows


@dataclass(frozen=True, eq=False)
class _Comparison:
    """Modes on some of the rows beside the anchor, on all of them."""

    density: RowDensity
    some: RowDensity
    nearest: Anchor

    def modes(self, ends: list[_End]) -> Modes:
        """Where the mass is."""
        if not ends:
            return Modes(self.nearest)
        own = min(ends, key=lambda end: _distance(self.nearest.root, end.point, self.nearest.point))
        found = [(self._on_all_rows(end), end) for end in self._in_question(ends, own)]
        others = [(mode, end.n_searches) for mode, end in found if mode is not None]
        best, n_at_best = max(others, key=lambda other: other[0].log_weight, default=(None, 0))
        n_found = len(ends)
        if best is None or best.log_weight <= 0.0:
            modes = Modes(self.nearest, n_found=n_found, n_at_best=own.n_searches)
            return replace(modes, others=_comparable([mode for mode, _ in others], 0.0))
        anchor = self._anchor_at(best)
        here = Mode(self.nearest.point, self.nearest.root, 0.0)
        rest = [here, *(mode for mode, _ in others if mode is not best)]
        return Modes(
            anchor,
            _comparable(rest, best.log_weight),
            n_found,
            n_at_best,
            rise=self._height(best.point),
        )

    def _in_question(self, ends: list[_End], own: _End) -> list[_End]:
        """Ends that may be modes of some weight on all the rows."""
        heights = [self._least_height(end, own) for end in ends if end is not own]
        return [end for height, end in heights if height > -_FAR_BELOW][:_MOST_COMPARED]

    def _least_height(self, end: _End, own: _End) -> tuple[float, _End]:
        """Largest height above the anchor that is compatible with the search on some rows."""
        (sample, weight), *_ = self.some.parts
        here, there = (its.point.astype(self.density.dtype) for its in (own, end))
        seen = differences_of_all(self.density.differences, there, here, sample)
        error = weight * np.sqrt(seen.size) * float(np.std(seen)) if weight > 1.0 else 0.0
        return end.log_density - own.log_density + _SURELY * error, end

    def _on_all_rows(self, end: _End) -> Mode | None:
        try:
            point = self.density.as_evaluated(approach_mode(end.point, self.some, self.density))
            root = inverse_root(-self.density.hessian(point))
        except NoModeError:
            return None
        widths = np.log(np.diag(root)).sum() - np.log(np.diag(self.nearest.root)).sum()
        mode = Mode(point, root, self._height(point) + float(widths))
        return mode if _are_apart(mode, self.nearest) else None

    def _height(self, point: NDArray[np.float64]) -> float:
        return self.density.gradient(point)[0] - self.density.gradient(self.nearest.point)[0]

    def _anchor_at(self, mode: Mode) -> Anchor:
        gradient = self.density.row_gradient(mode.point)
        hessian = self.density.row_hessian(mode.point)
        return Anchor(mode.point, gradient, hessian, mode.root, self.nearest.order)


def _comparable(modes: list[Mode], best: float) -> tuple[Mode, ...]:
    return tuple(mode for mode in modes if mode.log_weight > best - _NEGLIGIBLE)
