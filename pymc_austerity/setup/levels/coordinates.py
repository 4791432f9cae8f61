"""The coordinates in which levels move: the user's, or products of levels with their scales."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.model import Centered, centered, verify_centered
from pymc_austerity.setup.prepared import PreparedModel
from pymc_austerity.setup.problem import Problem

__all__ = ["Coordinates", "centered_problem"]

_NEARBY = 0.3
"""How far from the start the two forms are compared once more."""


def _same(point: NDArray) -> NDArray[np.float64]:
    return point


@dataclass(frozen=True)
class Coordinates:
    """A change of the raveled point.

    Attributes
    ----------
    start : float array, shape (d,)
        The user's raveled point at which the model was verified.
    names : tuple of str
        Variables that are moved as their products with their scales; there may be none.
    inner : callable
        From the user's raveled point to the one that is moved.
    outer : callable
        Its inverse.
    """

    start: NDArray[np.float64]
    names: tuple[str, ...] = ()
    inner: Callable[[NDArray], NDArray[np.float64]] = _same
    outer: Callable[[NDArray], NDArray[np.float64]] = _same


def centered_problem(problem: Problem, fewest: int = 2) -> tuple[Problem, Coordinates]:
    """The problem with non-centered factors in their centered form, and the way there and back.

    Parameters
    ----------
    problem : Problem
    fewest : int
        Levels that a factor has at least.

    Returns
    -------
    problem : Problem
        The same one where nothing is to be centered.
    coordinates : Coordinates
    """
    likelihood, variables, shared, point = problem.parts
    found = None if shared else centered(likelihood, variables, point, fewest)
    if found is None:
        return problem, Coordinates(problem.start)
    own = replace(problem, prepared=_prepared(problem, found), start=found.products(problem.start))
    return own, Coordinates(problem.start, found.names, found.products, found.factors)


def _prepared(problem: Problem, found: Centered) -> PreparedModel:
    before, rng = problem.prepared, np.random.default_rng(0)
    starts = (problem.start, problem.start + _NEARBY * rng.standard_normal(problem.start.size))
    points = [(_values(problem, at), _values(problem, found.products(at))) for at in starts]
    order = [variable.name for variable in found.likelihood.value_vars]
    pairs = [([old[n] for n in order], [new[n] for n in order]) for old, new in points]
    verified = verify_centered(found.likelihood, before.verified, pairs, rng=before.rng)
    return PreparedModel(found.likelihood, points[0][1], verified, before.rng)


def _values(problem: Problem, point: NDArray) -> dict[str, NDArray]:
    """Values of the variables by their names."""
    blocks = problem.layout.blocks
    return {block.name: point[block.entries].reshape(block.shape) for block in blocks}
