"""The difference of the row-free part: by code written for the model, or by PyTensor."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels import RowFreeTerms
from pymc_austerity.model import (
    DensityGradient,
    DensityKernel,
    Kernel,
    LevelTerms,
    RowFreeGradient,
    compile_row_free_difference,
    compile_row_free_gradient,
    row_free_difference_agrees,
)
from pymc_austerity.setup.problem import Problem


def row_free_difference(problem: Problem) -> Callable[..., Any]:
    """Compile the difference, and call it once so that it is ready when the chains start."""
    function: Callable[..., Any] | str
    function = DensityKernel.of(problem.parts, problem.likelihood.row_free)
    if isinstance(function, DensityKernel) and _agrees(function, problem):
        return function
    function = compile_row_free_difference(problem.parts, compile_kwargs=problem.compile_kwargs)
    function(problem.start, problem.start)
    return function


def row_free_difference_by_levels(
    problem: Problem,
    terms: Sequence[LevelTerms],
    means: Sequence[tuple[NDArray[np.int64], int]] = (),
) -> Callable[..., Any]:
    """Like `row_free_difference`, with little to compile where many terms are sums over levels.

    Parameters
    ----------
    problem : Problem
    terms : sequence of LevelTerms
        Terms of each factor.
    means : sequence of (int array, int)
        Levels that represent effects that sum to zero, and the entry that absorbs their mean.
    """
    likelihood = problem.likelihood
    levels = (t.as_rows for t in terms if t.as_rows is not None)
    loops = tuple((x.kernel, x.block) for x in levels if isinstance(x.kernel, Kernel))
    sources = [source for t in terms for source in t.sources]
    if len(loops) < len(terms) or len(set(sources)) < len(sources):
        return row_free_difference(problem)
    of_sums, own = dict(likelihood.joint_terms), set(sources)
    every = enumerate(likelihood.row_free_terms)
    others = [of_sums.get(k, term).sum() for k, term in every if term not in own]
    rest = None
    if others:
        found = DensityKernel.of(problem.parts, sum(others))
        if isinstance(found, str):
            return row_free_difference(problem)
        rest = found
    function = RowFreeTerms(loops, rest, tuple(means))
    return function if _agrees(function, problem) else row_free_difference(problem)


def _agrees(function: Callable[..., float], problem: Problem) -> bool:
    """Whether code that was written for the row-free part gives the numbers of the model."""
    verified, rng = problem.prepared.verified, np.random.default_rng(0)
    agrees = row_free_difference_agrees(function, problem.parts, verified, rng)
    if not agrees:
        problem.doubts.append("the function written for the terms that are evaluated in full")
    return agrees


_ROUNDING = 1e-6
"""Error of a slope, relative to its terms, that rounding may explain."""

_TRIALS = 3


def conditionally_normal(
    gradient: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    point: NDArray[np.float64],
    candidates: NDArray[np.intp],
    rng: np.random.Generator,
) -> NDArray[np.intp]:
    """Entries that are normal and independent given the rest, and whose moments depend on it.

    Parameters
    ----------
    gradient : callable
        Of the log-density, shape (d,).
    point : float array, shape (d,)
        Where the gradient is finite.
    candidates : int array
        Entries in question.
    rng : numpy.random.Generator
        Chooses the points at which the gradient is evaluated.

    Examples
    --------
    >>> import numpy as np
    >>> def gradient(x):  # x[1] ~ N(0, exp(x[0])), x[2] ~ N(0, 1), and x[3] ~ t_1
    ...     precision = np.exp(-2.0 * x[0])
    ...     slope = -2.0 * x[3] / (1.0 + x[3] ** 2)
    ...     return np.array([precision * x[1] ** 2, -precision * x[1], -x[2], slope])
    >>> rng = np.random.default_rng(1)
    >>> conditionally_normal(gradient, np.zeros(4), np.array([1, 2, 3]), rng)
    array([1])
    """
    others = np.setdiff1d(np.arange(point.size), candidates)
    entries = candidates
    if not others.size:
        return entries[:0]
    elsewhere = point.copy()
    elsewhere[others] += rng.normal(size=others.size)
    while entries.size:
        passed = np.ones(entries.size, dtype=bool)
        for _ in range(_TRIALS):
            here, there = (
                _slope_and_curvature(gradient, at, entries, rng) for at in (point, elsewhere)
            )
            for _, curvature, fits in (here, there):
                passed &= fits & (curvature < 0.0)
        if passed.all():
            depends = [~np.isclose(a, b, rtol=1e-6) for a, b in zip(here, there, strict=True)]
            return entries[depends[0] | depends[1]]
        entries = entries[passed]
    return entries


def _slope_and_curvature(
    gradient: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    point: NDArray[np.float64],
    entries: NDArray[np.intp],
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Both at a point, and whether the slope of each entry is linear in this entry alone."""

    def slope(by: NDArray[np.float64]) -> NDArray[np.float64]:
        there = point.copy()
        there[entries] += by
        return gradient(there)[entries]

    with np.errstate(all="ignore"):
        at, ahead, behind = (slope(k * np.ones(entries.size)) for k in (0.0, 1.0, -1.0))
        curvature = 0.5 * (ahead - behind)
        way = 2.0 * rng.normal(size=entries.size)
        error = np.abs(slope(way) - at - curvature * way)
        fits = error <= _ROUNDING * (np.abs(at) + np.abs(curvature * way))
    return at, curvature, fits


AnyGradient = DensityGradient | RowFreeGradient

_POINTS, _TOLERANCE = 3, 1e-8


def row_free_gradient(problem: Problem) -> AnyGradient:
    """Compile the row-free part with its gradient.

    Raises
    ------
    NotImplementedError, NullTypeGradError
        An operation of the model has no derivative.
    """
    written = DensityGradient.of(problem.parts, problem.likelihood.row_free)
    if isinstance(written, DensityGradient) and _slopes_agree(written, problem):
        return written
    return compile_row_free_gradient(problem.parts, compile_kwargs=problem.compile_kwargs)


def _slopes_agree(written: DensityGradient, problem: Problem) -> bool:
    """Whether gradients at a few points, and differences of values, are those of the graph."""
    rng, start = np.random.default_rng(0), problem.start.astype(np.float64)
    points = [start, *(start + rng.normal(size=(_POINTS - 1, start.size)))]
    own = _values_and_slopes([written(point) for point in points])
    expected = _values_and_slopes(
        [problem.row_free_derivatives.gradient(_like(point, problem)) for point in points]
    )
    return np.allclose(own, expected, _TOLERANCE, _TOLERANCE, equal_nan=True)


def _values_and_slopes(found: list) -> NDArray[np.float64]:
    """Gradients, and values up to a constant."""
    values, gradients = zip(*found, strict=True)
    with np.errstate(invalid="ignore"):  # both may be infinite
        return np.concatenate([np.diff(np.ravel(values)), np.ravel(gradients)])


def _like(point: NDArray[np.float64], problem: Problem) -> NDArray:
    return point.astype(problem.start.dtype)
