"""From a model to the moves of its levels."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pymc as pm

from pymc_austerity.setup.coordinates import grouped_problem
from pymc_austerity.setup.levels.build import (
    FEWEST_PRODUCTS,
    GroupedTarget,
    NoGroupsError,
    build_grouped,
)
from pymc_austerity.setup.prepared import PreparedModel, prepare
from pymc_austerity.setup.problem import Problem, pose
from pymc_austerity.setup.setup_progress import setup_progress

__all__ = ["BuiltGroups", "build_groups"]


class BuiltGroups(NamedTuple):
    """The parts of a step method.

    Attributes
    ----------
    posed : Problem
        In terms of the user's variables.
    problem : Problem
        In terms of the variables that are moved.
    target : GroupedTarget
    started : float
        When set-up began, by the performance counter.
    """

    posed: Problem
    problem: Problem
    target: GroupedTarget
    started: float


def build_groups(
    model: pm.Model,
    variables: Sequence,
    compile_kwargs: dict[str, Any],
    where: dict[str, Any],
    keep: Callable[[PreparedModel], object] = bool,
    prepared: PreparedModel | None = None,
    *,
    only_where_best: bool = False,
    only_beyond: int = 0,
) -> BuiltGroups:
    """Prepare the model and build the moves of its levels.

    Parameters
    ----------
    model : pymc.Model
    variables : sequence of variables
        Value variables.
    compile_kwargs, where : dict
        Arguments of ``pymc.compile``, and of `prepare`.
    keep : callable
        Receives the prepared model, for use where there are no groups.
    prepared : PreparedModel, optional
        The model, if it is prepared already.
    only_where_best : bool
        As in `build_grouped`.
    only_beyond : int
        Models with this number of entries or fewer are refused.

    Raises
    ------
    NoGroupsError
        The message says why there are no groups, or no moves for them.
    """
    started = time.perf_counter()
    with setup_progress("AusterityMH" if only_where_best else "GroupedMH") as say:
        prepared = prepared or prepare(model, **where, say=say)
        keep(prepared)
        posed = pose(prepared, variables, compile_kwargs)
        if posed.start.size <= only_beyond:
            raise NoGroupsError("everything can be moved at once")
        problem, coordinates = grouped_problem(posed, FEWEST_PRODUCTS)
        target = build_grouped(problem, coordinates, say, only_where_best=only_where_best)
        return BuiltGroups(posed, problem, target, started)
