"""The coordinates in which points move: the user's, or products of entries with their scales."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.settings import Settings
from pymc_austerity.model import Centered, candidates_for_centering, centered, verify_centered
from pymc_austerity.proposals import Proposal
from pymc_austerity.setup.prepared import PreparedModel
from pymc_austerity.setup.problem import Problem

__all__ = ["Coordinates", "best_coordinates", "centered_problem"]

_ENOUGH_ROWS = 50
"""Rows for each product from which on they are known better from the rows than from their prior."""

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
    if problem.shared:
        return problem, Coordinates(problem.start)
    likelihood, variables, _, point = problem.parts
    known = problem.prepared.centered
    key = _names(variables), _names(candidates_for_centering(likelihood, variables, point, fewest))
    if key not in known:
        known[key] = _centered(problem, fewest)
    own, coordinates = known[key]
    return own, coordinates


def _names(variables: Sequence) -> tuple[str, ...]:
    return tuple(variable.name for variable in variables)


def _centered(problem: Problem, fewest: int) -> tuple[Problem, Coordinates]:
    likelihood, variables, _, point = problem.parts
    found = centered(likelihood, variables, point, fewest)
    if found is None:
        return problem, Coordinates(problem.start)
    own = replace(problem, prepared=_prepared(problem, found), start=found.products(problem.start))
    return own, Coordinates(problem.start, found.names, found.products, found.factors)


def best_coordinates(
    problem: Problem, settings: Settings, proposal: Proposal[Any] | None
) -> tuple[Problem, Coordinates]:
    """Products instead of factors where there are many rows, and nothing speaks against it.

    Rows know a product ``scale * z`` and not its factors, which lie on a ridge. With few rows it is
    the product that depends on its scale.

    Parameters
    ----------
    problem : Problem
    settings : Settings
        What the user chose.
    proposal : Proposal or None
        That of the user, which sees the coordinates of the user.

    Returns
    -------
    problem, coordinates
        As from `centered_problem`.
    """
    as_it_is = problem, Coordinates(problem.start)
    if (
        proposal is not None
        or settings.order == 0
        or problem.prepared.from_sources
        or not problem.layout.is_continuous
    ):
        return as_it_is
    found, coordinates = centered_problem(problem)
    blocks = [block for block in problem.layout.blocks if block.name in coordinates.names]
    n_products = sum(int(np.prod(block.shape)) for block in blocks)
    if problem.likelihood.n_rows < _ENOUGH_ROWS * n_products:
        return as_it_is
    return found, coordinates


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
