"""The coordinates in which points move: the user's, products with scales, levels with free mean."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.settings import Settings
from pymc_austerity.model import (
    RowLikelihood,
    centered,
    free_levels,
    verify_centered,
)
from pymc_austerity.proposals import Layout, Proposal
from pymc_austerity.setup.prepared import PreparedModel
from pymc_austerity.setup.problem import Problem, layout_of
from pymc_austerity.time_limit import end_if_late

_ENOUGH_ROWS = 50
"""Rows per product above which the rows are more informative than the prior."""

_NEARBY = 0.3
"""The two forms are compared at the start and at a point about this far from it in each entry."""


def _same(point: NDArray) -> NDArray[np.float64]:
    return point


class Absorbed(NamedTuple):
    """Levels that represent effects that sum to zero.

    Attributes
    ----------
    name : str
        Name of the variable.
    levels : int array, shape (G,)
        Entries of the point that is moved.
    absorber : int
        The entry that falls by as much as all levels rise.
    """

    name: str
    levels: NDArray[np.int64]
    absorber: int


@dataclass(frozen=True)
class Coordinates:
    """A change of coordinates of the raveled point.

    Attributes
    ----------
    start : float array, shape (d,)
        The user's raveled point at which the model was verified.
    names : tuple of str
        Variables that are replaced by their products with their scales; may be empty.
    inner : callable
        From the user's raveled point to the one that is moved.
    outer : callable
        Its inverse; a left inverse where levels represent effects.
    absorbed : tuple of Absorbed
        Variables whose entries sum to zero, moved as levels with a free mean.
    """

    start: NDArray[np.float64]
    names: tuple[str, ...] = ()
    inner: Callable[[NDArray], NDArray[np.float64]] = _same
    outer: Callable[[NDArray], NDArray[np.float64]] = _same
    absorbed: tuple[Absorbed, ...] = ()

    @property
    def are_changed(self) -> bool:
        """Whether they are others than those of the user's point."""
        return bool(self.names or self.absorbed)

    def then(self, second: "Coordinates") -> "Coordinates":
        """Return this change followed by another."""
        return Coordinates(
            self.start,
            self.names + second.names,
            _Chained(self.inner, second.inner),
            _Chained(second.outer, self.outer),
            self.absorbed + second.absorbed,
        )


@dataclass(frozen=True)
class _Chained:
    first: Callable[[NDArray], NDArray[np.float64]]
    second: Callable[[NDArray], NDArray[np.float64]]

    def __call__(self, point: NDArray) -> NDArray[np.float64]:
        return self.second(self.first(point))


def grouped_problem(problem: Problem) -> tuple[Problem, Coordinates]:
    """The problem in terms of levels that rows read directly, wherever that is possible.

    Effects that sum to zero are first written as levels with a free mean; then non-centered factors
    are written in their centered form.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    problem, coordinates
        As from `centered_problem`.
    """
    own, coordinates = _with_free_levels(problem)
    end_if_late()
    centered, products = centered_problem(own)
    return centered, coordinates.then(products)


def _with_free_levels(problem: Problem) -> tuple[Problem, Coordinates]:
    free: list[tuple[str, str, int]] = []
    coordinates = Coordinates(problem.start)
    while not problem.shared:
        found = free_levels(problem.parts)
        if found is None:
            break
        model = problem.model
        layout = layout_of(found.at.variables, model, found.at.point)
        prepared = _prepared(problem, found.at.likelihood, found.levels, layout)
        if prepared is None:
            break
        problem = replace(
            problem,
            prepared=prepared,
            variables=found.at.variables,
            start=found.levels(problem.start),
            layout=layout,
        )
        free.append((found.name, found.absorber, found.entry))
        change = Coordinates(problem.start, (), found.levels, found.effects)
        coordinates = coordinates.then(change)
    places = {block.name: block.entries for block in problem.layout.blocks}
    every = np.arange(problem.start.size)
    absorbed = [Absorbed(n, every[places[n]], places[other].start + k) for n, other, k in free]
    return problem, replace(coordinates, absorbed=tuple(absorbed))


def centered_problem(problem: Problem) -> tuple[Problem, Coordinates]:
    """The problem with non-centered factors in their centered form, and the change of coordinates.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    problem : Problem
        The same one if no variable is centered.
    coordinates : Coordinates
    """
    if problem.shared:
        return problem, Coordinates(problem.start)
    known, key = problem.prepared.centered, tuple(v.name for v in problem.variables)
    if key not in known:
        known[key] = _centered(problem)
    own, coordinates = known[key]
    return own, coordinates


def _centered(problem: Problem) -> tuple[Problem, Coordinates]:
    found = centered(problem.parts)
    if found is None:
        return problem, Coordinates(problem.start)
    prepared = _prepared(problem, found.likelihood, found.products, problem.layout)
    if prepared is None:
        return problem, Coordinates(problem.start)
    own = replace(problem, prepared=prepared, start=found.products(problem.start))
    return own, Coordinates(problem.start, found.names, found.products, found.factors)


def best_coordinates(
    problem: Problem, settings: Settings, proposal: Proposal[Any] | None
) -> tuple[Problem, Coordinates]:
    """Products instead of factors where there are many rows, unless something prevents it.

    Rows determine a product ``scale * z`` and not its factors, which lie on a ridge. With few rows
    the product depends on its scale.

    Parameters
    ----------
    problem : Problem
    settings : Settings
        What the user chose.
    proposal : Proposal or None
        The user's proposal, which uses the user's coordinates.

    Returns
    -------
    problem, coordinates
        As from `centered_problem`.
    """
    as_it_is = problem, Coordinates(problem.start)
    if proposal is not None or settings.order == 0 or not problem.layout.is_continuous:
        return as_it_is
    found, coordinates = centered_problem(problem)
    blocks = [block for block in problem.layout.blocks if block.name in coordinates.names]
    n_products = sum(int(np.prod(block.shape)) for block in blocks)
    if problem.likelihood.n_rows < _ENOUGH_ROWS * n_products:
        return as_it_is
    return found, coordinates


def _prepared(
    problem: Problem,
    likelihood: RowLikelihood,
    change: Callable[[NDArray], NDArray[np.float64]],
    layout: Layout,
) -> PreparedModel | None:
    """The prepared model in terms of other variables; None if it gives other numbers."""
    before, rng = problem.prepared, np.random.default_rng(0)
    starts = (problem.start, problem.start + _NEARBY * rng.standard_normal(problem.start.size))
    points = [(_values(problem.layout, at), _values(layout, change(at))) for at in starts]
    old_names = [variable.name for variable in problem.likelihood.value_vars]
    new_names = [variable.name for variable in likelihood.value_vars]
    pairs = [([old[n] for n in old_names], [new[n] for n in new_names]) for old, new in points]
    verified = verify_centered(likelihood, before.verified, pairs, rng=before.rng)
    if verified is None:
        problem.doubts.append("levels multiplied by their scales")
        return None
    return PreparedModel(
        likelihood, points[0][1], verified, before.rng, from_sources=before.from_sources
    )


def _values(layout: Layout, point: NDArray) -> dict[str, NDArray]:
    """Values of the variables by their names."""
    return {block.name: point[block.entries].reshape(block.shape) for block in layout.blocks}
