"""The row-free part of models with groups: loops over levels, and entries that are normal."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels import RowFreeTerms
from pymc_austerity.model import DensityKernel, Kernel, LevelTerms
from pymc_austerity.setup.problem import Problem


def row_free_difference_by_levels(
    problem: Problem,
    terms: Sequence[LevelTerms],
    means: Sequence[tuple[NDArray[np.int64], int]] = (),
) -> Callable[..., Any]:
    """Like that of a `Problem`, with little to compile where many terms are sums over levels.

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
        return problem.row_free_difference
    of_sums, own = dict(likelihood.joint_terms), set(sources)
    every = enumerate(likelihood.row_free_terms)
    others = [of_sums.get(k, term).sum() for k, term in every if term not in own]
    rest = None
    if others:
        found = DensityKernel.of(problem.parts, sum(others))
        if isinstance(found, str):
            return problem.row_free_difference
        rest = found
    function = RowFreeTerms(loops, rest, tuple(means))
    return function if problem.agrees_row_free(function) else problem.row_free_difference


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
