"""Terms of the row-free part by the levels of a factor, and its derivatives for some entries."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable, ancestors, grad, stabilized
from pymc_austerity.model.compiling import compiled, evaluated
from pymc_austerity.model.levels.level_rows import (
    LevelsAsRows,
    NotByLevelError,
    levels_as_rows,
)
from pymc_austerity.model.row_likelihood import ModelAt, RowLikelihood

_SMALL_STEP = 1e-4
"""Of differences of gradients."""

_TINY = 1e-300
_POINTS, _JITTER, _RETRIES = 2, 0.5, 6
"""Points besides the start at which levels are looked at, how far from it, and attempts at each."""


class LevelTerms(NamedTuple):
    """Terms of the row-free part that depend on each level of a factor.

    Attributes
    ----------
    terms : callable
        From a raveled point to a float array, shape (G,), nats.
    derivatives : callable
        From a raveled point to gradients, shape (G, q), and Hessians, shape (G, q, q), with respect
        to the entries of each level.
    given : int array
        Other entries that the terms depend on.
    is_quadratic : bool
        Whether they are quadratic functions of the entries of a level, as those of normal
        distributions are.
    sources : tuple of variables
        The terms of the row-free part that these are.
    as_rows : LevelsAsRows or None
        The same as functions of a few linear predictors, where that is possible.
    """

    terms: Callable[[NDArray], NDArray[np.float64]]
    derivatives: Callable[[NDArray], tuple[NDArray[np.float64], NDArray[np.float64]]]
    given: NDArray[np.int64]
    is_quadratic: bool
    sources: tuple[Variable, ...] = ()
    as_rows: LevelsAsRows | None = None


class PartialDerivatives(NamedTuple):
    """Derivatives of the row-free part with respect to some entries.

    Attributes
    ----------
    gradient : callable
        From a raveled point to a float array, shape (n,).
    hessian : callable
        From a raveled point to derivatives of that with respect to all entries, shape (n, d).
    given : int array
        Other entries that the terms with these ones depend on.
    """

    gradient: Callable[[NDArray], NDArray[np.float64]]
    hessian: Callable[[NDArray], NDArray[np.float64]]
    given: NDArray[np.int64]


@dataclass(frozen=True)
class _First:
    """First result of a function that returns a list."""

    function: Callable[..., list]

    def __call__(self, point: NDArray) -> Any:
        return self.function(point)[0]


@dataclass(frozen=True)
class _ByLevel:
    """Gradients, and Hessians by differences of gradients.

    Levels are independent, so that an entry of all levels is moved at once. A step of 1 is exact
    for quadratic functions; what proposals make of others need not be exact.
    """

    slope: Callable[..., list]
    entries: NDArray[np.int64]
    step: float

    def __call__(self, point: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        gradients = self.slope(point)[0]
        columns = []
        for own in self.entries.T:
            there = point.copy()
            there[own] += self.step
            columns.append((self.slope(there)[0] - gradients) / self.step)
        hessians = np.stack(columns, axis=2)
        return gradients, 0.5 * (hessians + hessians.swapaxes(1, 2))


def level_terms(at: ModelAt, entries: NDArray[np.int64]) -> LevelTerms:
    """Write the row-free part as a sum over the levels of a factor and a rest without them.

    Parameters
    ----------
    at : ModelAt
        Where it is verified: levels are moved by turns, and only their own terms may change.
    entries : int array, shape (G, q)
        Positions of the entries of each level.

    Raises
    ------
    NotByLevelError
        Some term is none of a level.
    """
    start, moved = at.raveled, _variables_with(at, entries)
    if any(variable not in at.likelihood.model.values_to_rvs for variable in moved):
        at = at._replace(likelihood=at.likelihood.without_joint_terms)
    likelihood, sources = at.likelihood, _sources(at, entries)
    terms, theta = at.joined(*sources)
    values = _made(likelihood, theta, terms)
    axes = _axes(values, entries, start)
    as_rows = levels_as_rows(at, sources, axes, entries)
    if as_rows is not None:
        _verify(as_rows, values, axes, entries, start)
        its = (as_rows.terms, as_rows.derivatives)
        is_quadratic = _is_quadratic(*its, entries, start)
        return LevelTerms(*its, as_rows.given, is_quadratic, sources, as_rows)
    total = sum(term.sum(axis=_others(term, axis)) for term, axis in zip(terms, axes, strict=True))
    slope = grad(stabilized(total.sum()), theta, disconnected_inputs="ignore")
    of_levels = _First(_made(likelihood, theta, [total]))
    own = compiled(likelihood.model, [theta], [slope[entries].astype("float64")], None)
    derivatives = _ByLevel(own, entries, 1.0)
    is_quadratic = _is_quadratic(of_levels, derivatives, entries, start)
    if not is_quadratic:  # evaluated at every step
        of_levels = _First(compiled(likelihood.model, [theta], [total.astype("float64")], None))
        derivatives = _ByLevel(own, entries, _SMALL_STEP)
    given = _given(at, sources, entries)
    return LevelTerms(of_levels, derivatives, given, is_quadratic, sources)


def _verify(
    as_rows: LevelsAsRows,
    values: Callable[..., list],
    axes: list[int],
    entries: NDArray[np.int64],
    start: NDArray,
) -> None:
    """Compare terms that were cut to levels with the terms themselves."""
    rng = np.random.default_rng(4)
    near = start + rng.uniform(-0.3, 0.3, size=start.size)
    far = near.copy()
    far[entries] += _widths(as_rows.derivatives(near)[1]) * rng.standard_normal(entries.shape)
    for point in (start, near, far):
        parts = zip(values(point), axes, strict=True)
        moved = (np.moveaxis(value, axis, 0) for value, axis in parts)
        expected = sum(value.reshape(len(value), -1).sum(axis=1) for value in moved)
        if not np.allclose(as_rows.terms(point), expected, rtol=1e-6, atol=1e-6):
            raise NotByLevelError("a prior gives other numbers for a level by itself")


def partial_row_free(at: ModelAt, entries: NDArray[np.int64]) -> PartialDerivatives:
    """Derivatives of the row-free part with respect to some entries, from the terms that have them.

    Parameters are those of `level_terms`, with entries of shape (n,).
    """
    sources = _sources(at, entries)
    if not sources:
        nothing = np.zeros((entries.size, at.raveled.size))
        return PartialDerivatives(lambda point: nothing[:, 0], lambda point: nothing, entries[:0])
    terms, theta = at.joined(*sources)
    value = stabilized(sum(term.sum() for term in terms))
    slope = grad(value, theta, disconnected_inputs="ignore")
    every = _made(at.likelihood, theta, [slope])

    def hessian(point: NDArray) -> NDArray[np.float64]:
        rows = np.empty((entries.size, point.size))
        for number, entry in enumerate(entries):
            step = np.zeros_like(point)
            step[entry] = _SMALL_STEP
            rows[number] = (every(point + step)[0] - every(point - step)[0]) / (2.0 * _SMALL_STEP)
        return rows

    gradient = _First(_made(at.likelihood, theta, [slope[entries]]))
    return PartialDerivatives(gradient, hessian, _given(at, sources, entries))


def _sources(at: ModelAt, entries: NDArray[np.int64]) -> tuple[Variable, ...]:
    """Terms that depend on variables with some of the entries."""
    own = _variables_with(at, entries)
    return tuple(term for term in at.likelihood.row_free_terms if own & set(ancestors([term])))


def _variables_with(at: ModelAt, entries: NDArray[np.int64]) -> set[Variable]:
    """Those that have some of the entries."""
    ends = np.cumsum([np.size(at.point[str(v.name)]) for v in at.variables])
    places = np.unique(np.searchsorted(ends, entries.ravel(), side="right"))
    return {at.variables[k] for k in places}


def _made(likelihood: RowLikelihood, theta: Variable, outputs: list) -> Callable[..., list]:
    exact = [output.astype("float64") for output in outputs]
    model = likelihood.model
    return evaluated(model, [theta], exact)


def _others(term: Variable, axis: int) -> list[int]:
    return [k for k in range(term.type.ndim) if k != axis]


def _axes(values: Callable[..., list], entries: NDArray[np.int64], start: NDArray) -> list[int]:
    """Axis of the levels in each term."""
    n_levels, rng = len(entries), np.random.default_rng(0)
    shapes = [np.shape(value) for value in values(start)]
    fitting = [[k for k, length in enumerate(shape) if length == n_levels] for shape in shapes]
    for here in (start, *(_finite_nearby(values, start, rng) for _ in range(_POINTS))):
        before = values(here)
        for is_moved in _halves(n_levels):
            there = here.copy()
            there[entries[is_moved]] += rng.uniform(0.1, 0.3, size=entries[is_moved].shape)
            for number, after in enumerate(values(there)):
                changed = ~np.isclose(after, before[number], rtol=0.0, atol=0.0, equal_nan=True)
                fitting[number] = [
                    axis for axis in fitting[number] if not _of(changed, axis)[~is_moved].any()
                ]
    if not all(fitting):
        raise NotByLevelError("a prior is not a sum over the levels")
    return [axes[0] for axes in fitting]


def _halves(n_levels: int) -> Iterator[NDArray[np.bool_]]:
    """Sets of levels: of any two, in either order, some set has the first and not the second."""
    every = np.arange(n_levels)
    for digit in range(max(int(every[-1]).bit_length(), 1)):
        has_it = (every >> digit) & 1 == 1
        yield has_it
        yield ~has_it


def _finite_nearby(
    values: Callable[..., list], start: NDArray, rng: np.random.Generator
) -> NDArray:
    """A point without special values, such as a coefficient of zero."""
    scale = _JITTER
    for _ in range(_RETRIES):
        here = start + rng.uniform(-scale, scale, size=start.size)
        if all(np.isfinite(value).all() for value in values(here)):
            return here
        scale /= 2.0
    return start


def _of(changed: NDArray[np.bool_], axis: int) -> NDArray[np.bool_]:
    """Whether anything of a level changed."""
    return np.asarray(changed.any(axis=tuple(k for k in range(changed.ndim) if k != axis)))


def _is_quadratic(
    terms: Callable[[NDArray], NDArray],
    derivatives: Callable[[NDArray], tuple[NDArray, NDArray]],
    entries: NDArray[np.int64],
    start: NDArray,
) -> bool:
    """Whether second-order expansions are right far away, wherever the other entries are."""
    rng = np.random.default_rng(2)
    for distance, is_relative in itertools.product((1.0, 10.0, 100.0), (False, True)):
        here = start + rng.uniform(-0.5, 0.5, size=start.size)
        gradients, hessians = derivatives(here)
        moves = distance * rng.standard_normal(entries.shape)
        if is_relative:
            moves *= _widths(hessians)
        there = here.copy()
        there[entries] += moves
        curved = np.einsum("gij,gi,gj->g", hessians, moves, moves)
        expected = (gradients * moves).sum(axis=1) + 0.5 * curved
        if not np.allclose(terms(there) - terms(here), expected, rtol=1e-8, atol=1e-8):
            return False
    return True


def _widths(hessians: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviations of the entries by the curvature of the terms; 1 where there is none."""
    curvatures = np.abs(np.einsum("gii->gi", hessians))
    return np.where(curvatures > 0.0, 1.0 / np.sqrt(np.maximum(curvatures, _TINY)), 1.0)


def _given(
    at: ModelAt, sources: Sequence[Variable], entries: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Other entries of the variables that terms are made of."""
    inside = set(ancestors(list(sources)))
    reads = [np.full(np.size(at.point[str(v.name)]), v in inside) for v in at.variables]
    return np.setdiff1d(np.flatnonzero(np.concatenate(reads)), entries)
