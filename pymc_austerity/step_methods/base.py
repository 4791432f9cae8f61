"""PyMC's contract for all step methods of this package, whatever they propose and decide."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.progress import TextColumn
from rich.table import Column

from pymc_austerity._pymc import (
    ArrayStepShared,
    RaveledVars,
    get_random_generator,
)
from pymc_austerity.errors import StaleDataError
from pymc_austerity.setup.coordinates import Coordinates
from pymc_austerity.setup.problem import Problem
from pymc_austerity.setup.setup_progress import Say
from pymc_austerity.step_methods.austerity_step import AusterityStep
from pymc_austerity.step_methods.interrupts import (
    defer_interrupts,
)
from pymc_austerity.step_methods.statistics import STATISTICS, of_draw
from pymc_austerity.step_methods.summary import explain, row_length_deterministics


class Phase(NamedTuple):
    """The phase of a chain.

    Attributes
    ----------
    is_start : bool
        Whether the first step of the chain has not been taken yet.
    is_tuning : bool
        Whether learned quantities may still change.
    """

    is_start: bool
    is_tuning: bool

    def begun(self) -> "Phase":
        """The phase at the first step."""
        return self._replace(is_start=False)


_MEMORY = 100
"""The columns of progress show averages over about this many draws of all the chains."""


def columns(n_chains: int) -> tuple[list[TextColumn], dict[str, list[float]]]:
    """Columns for the acceptance rate and the rows of a draw, and their initial values."""
    texts = [
        TextColumn("{task.fields[acceptance]:.2f}", table_column=Column("Acceptance", ratio=1)),
        TextColumn("{task.fields[rows]:,.0f}", table_column=Column("Rows read", ratio=1)),
    ]
    return texts, {"acceptance": [0.0] * n_chains, "rows": [0.0] * n_chains}


def running_averages() -> Callable[[dict[str, Any]], dict[str, float]]:
    """Function that maps the statistics of a step to the values of the columns."""
    n_seen, acceptance, rows = 0, 0.0, 0.0

    def update(statistics: dict[str, Any]) -> dict[str, float]:
        nonlocal n_seen, acceptance, rows
        n_seen += 1
        weight = 1.0 / min(n_seen, _MEMORY)
        acceptance += weight * (statistics["accepted"] - acceptance)
        rows += weight * (statistics["n_rows_used"] - rows)
        return {"acceptance": acceptance, "rows": rows}

    return update


class SubsamplingStep(AusterityStep, ArrayStepShared):
    """A step method that was built from rows: its chains, pickle, statistics and descriptions.

    A subclass has ``constants``, ``_words``, ``reset_tuning`` and what ``astep`` calls. It calls
    `_begin` and then `_describe` in its ``__init__``; set-up ends with `end_setup`.
    """

    default_blocked = True
    default_tune_steps = 1_000
    stats_dtypes_shapes = STATISTICS

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Show the arguments of ``__init__``, which PyMC's ``__new__`` hides."""
        super().__init_subclass__(**kwargs)
        _, *arguments = inspect.signature(cls.__init__).parameters.values()
        cls.__signature__ = inspect.Signature(arguments)

    def _begin(
        self,
        problem: Problem,
        *,
        blocked: bool,
        rng: Any,
    ) -> None:
        """Tell PyMC which variables are moved, and record what is subsampled."""
        super().__init__(problem.variables, problem.shared, blocked=blocked, rng=rng)
        self.n_rows = problem.likelihood.n_rows
        self.subsampled = problem.likelihood.subsampled
        self.data_fingerprint = problem.prepared.fingerprint
        rows = problem.prepared.from_sources
        self._rows_elsewhere = {} if rows is None else {"data": ", ".join(rows.sources)}
        self.deterministics_by_row = tuple(row_length_deterministics(problem.likelihood))
        self.phase = Phase(is_start=False, is_tuning=True)
        self._replaced_data: Callable[[], list[str]] = problem.likelihood.stale
        self._is_for(problem.model)

    def _describe(self, problem: Problem, **about_rows: Any) -> None:
        """Keep what `explain` says, with other facts about the rows; nothing is learned yet."""
        self.reset_tuning()
        its = problem.likelihood, problem.variables
        self._explanation = explain(*its, doubts=problem.doubts, **about_rows)

    @property
    def _common_constants(self) -> dict[str, Any]:
        steps = {"steps_per_draw": self.steps_per_draw}
        return super()._common_constants | self._rows_elsewhere | steps

    def take(self, steps_per_draw: int, say: Say) -> None:
        """Make the rest of a candidate that is chosen.

        Parameters
        ----------
        steps_per_draw : int
            Transitions between recorded draws.
        say : callable
            Shows the stage.
        """
        self.steps_per_draw, self.is_chosen_by_default = steps_per_draw, True
        self._compile(say)

    def _compile(self, say: Say) -> None:
        """Compile what chains will need, if set-up has not done so."""

    # ------------------------------------------------------------------ one step

    coordinates: Coordinates

    def astep(self, apoint: RaveledVars) -> tuple[RaveledVars, list[dict[str, Any]]]:
        """Make as many transitions as there are in a draw, and record the cost."""
        to = self.coordinates
        current = to.inner(apoint.data)
        if self.phase.is_start:
            self.phase = self.phase.begun()
            if np.array_equal(apoint.data, to.start):
                current = self._start()
            else:  # the user chose it
                self._refuse_impossible_start(self._row_free_part(current))
        self._begin_draw(current)
        transitions = []
        for _ in range(self.steps_per_draw):
            current, statistics = self._transition(current)
            transitions.append(statistics)
        return RaveledVars(to.outer(current), apoint.point_map_info), [of_draw(transitions)]

    def _start(self) -> NDArray:
        """An overdispersed start of a chain."""
        raise NotImplementedError

    def _row_free_part(self, point: NDArray) -> float:
        """Row-free part of the log-density relative to the initial point, nats."""
        raise NotImplementedError

    def _begin_draw(self, current: NDArray) -> None:
        """Do what is due before the transitions of a draw."""

    def _transition(self, current: NDArray) -> tuple[NDArray, dict[str, Any]]:
        """The point after one, and its statistics."""
        raise NotImplementedError

    # ------------------------------------------------------------------ a chain

    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        """Begin a chain (PyMC 6)."""
        self.set_rng(rng)

    def set_rng(self, rng: Any) -> None:
        """Begin a chain (PyMC 5): workers of parallel runs call nothing else before they step."""
        defer_interrupts()
        self._refuse_stale_data()
        self.rng = get_random_generator(rng, copy=False)
        self.phase = Phase(is_start=True, is_tuning=True)
        self.reset_tuning()

    @property
    def tune(self) -> bool:
        """Whether the chain is tuning; PyMC sets it."""
        return self.phase.is_tuning

    @tune.setter
    def tune(self, tuning: bool) -> None:
        self.phase = self.phase._replace(is_tuning=tuning)

    def reset_tuning(self) -> None:
        """Forget what was learned."""
        raise NotImplementedError

    def _refuse_stale_data(self) -> None:
        replaced = self._replaced_data()
        if replaced:
            name = type(self).__name__
            raise StaleDataError(
                f"{', '.join(map(repr, replaced))} was changed after this {name} "
                f"had read it: construct a new {name} for the new data."
            )

    # ------------------------------------------------------------------ PyMC's contract

    def __reduce_ex__(self, protocol: Any) -> tuple:
        """Pickle what was built, not how: the path of the rows, and no model."""
        self._refuse_stale_data()
        return _rebuild, (type(self), self.__getstate__())

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_BlockedStep__newargs", None)
        state["_replaced_data"] = list  # nobody can change the data of another process
        state["_model"] = None
        return state

    @staticmethod
    def _progressbar_config(n_chains: int = 1) -> tuple:
        defer_interrupts()  # PyMC asks once, before the first draw, where the draws are collected
        return columns(n_chains)

    @staticmethod
    def _make_progressbar_update_functions() -> tuple:
        return (running_averages(),)


def _rebuild(cls: type, state: dict[str, Any]) -> Any:
    step: Any = object.__new__(cls)
    step.__dict__.update(state)
    return step
