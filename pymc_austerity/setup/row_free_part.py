"""The difference of the row-free part: by code written for the model, or by PyTensor."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.levels import RowFreeTerms
from pymc_austerity.model import (
    DensityKernel,
    Kernel,
    LevelTerms,
    compile_row_free_difference,
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
